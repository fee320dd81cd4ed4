import { describe, expect, it } from 'vitest';
import type { CFBuild, Droplet } from '../../../src/lib/api/types.generated.ts';
import type { AppPlan } from '../../../src/lib/manifest/plan.ts';
import type { AppFacts } from '../../../src/lib/ops/push/app-snapshot.ts';
import { judgeWeb } from '../../../src/lib/ops/push/web-process.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';

const warnings: string[] = [];
const session = { bin: 'cf', reporter: { warn: (text: string) => warnings.push(text) } } as unknown as SpaceSession;
const facts = { processes: [] } as unknown as AppFacts;
const plan = (more: Partial<AppPlan> = {}): AppPlan =>
  ({ name: 'my-app', lifecycle: 'buildpack', processes: [], ...more }) as unknown as AppPlan;

function judge(droplet: Partial<Droplet>, more: Partial<AppPlan> = {}, start = true): boolean {
  warnings.length = 0;
  return judgeWeb(session, plan(more), facts, { build: { status: { droplet } } as CFBuild, start });
}

const buildpacks = [{ name: 'kf/binary', version: '1' }];
const worker = [{ type: 'worker', command: 'w' }];

describe('a web process', () => {
  it('starts what the build found', () => {
    expect(judge({ buildpacks, processTypes: [{ type: 'web', command: 'x' }, ...worker] })).toBe(true);
    expect(warnings).toEqual([]);
  });

  it('has nothing to start where the build found other processes only: said, with the command that starts one of them', () => {
    expect(judge({ buildpacks, processTypes: worker })).toBe(false);
    expect(warnings.join('\n')).toContain("found no process 'web', only: worker");
    expect(warnings.join('\n')).toContain('cf scale my-app --process worker -i 1');
  });

  it('starts the command of the plan, whatever the build found', () => {
    expect(judge({ buildpacks, processTypes: worker }, { processes: [{ type: 'web', command: './run' }] })).toBe(true);
    expect(judge({ buildpacks, processTypes: [] }, { processes: [{ type: 'web', command: './run' }] })).toBe(true);
  });

  it('is an error where the build found no process at all, but not of an image or of a droplet that nobody could read', () => {
    expect(() => judge({ buildpacks, processTypes: [] })).toThrow("The build of app 'my-app' found no process to start.");
    expect(judge({ buildpacks, processTypes: [] }, {}, false)).toBe(true);
    expect(judge({ processTypes: [] })).toBe(true);
    expect(judge({ buildpacks, processTypes: [] }, { lifecycle: 'docker' })).toBe(true);
  });
});
