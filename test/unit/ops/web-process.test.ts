import { describe, expect, it } from 'vitest';
import type { CFBuild, Droplet } from '../../../src/lib/api/types.generated.ts';
import { judgeWeb } from '../../../src/lib/ops/apps/web-process.ts';
import type { PushFlags } from '../../../src/lib/manifest/plan.ts';
import { warningsIn } from '../../support/reported.ts';

const warnings: string[] = [];
const session: Parameters<typeof judgeWeb>[0] = { bin: 'cf', report: (event) => void warnings.push(...warningsIn([event], 'cf')) };

interface Given {
  hasCommand?: boolean;
  type?: string;
  start?: boolean;
  flags?: PushFlags;
}

function judge(droplet: Partial<Droplet>, { hasCommand = false, type = 'buildpack', start = true, flags }: Given = {}): boolean {
  warnings.length = 0;
  const build = { spec: { lifecycle: { type } }, status: { droplet } } as CFBuild;
  return judgeWeb(session, { name: 'my-app', build, hasCommand, start, ...(flags === undefined ? {} : { flags }) });
}

const buildpacks = [{ name: 'kf/binary', version: '1' }];
const worker = [{ type: 'worker', command: 'w' }];

describe('a web process', () => {
  it('starts the command that the build found', () => {
    expect(judge({ buildpacks, processTypes: [{ type: 'web', command: 'x' }, ...worker] })).toBe(true);
    expect(warnings).toEqual([]);
  });

  it('has no command if the build found only other processes, and the message names a flag that starts one of them', () => {
    expect(judge({ buildpacks, processTypes: worker })).toBe(false);
    expect(warnings.join('\n')).toContain("found no process 'web', only: worker");
    expect(warnings.join('\n')).toContain('cf scale my-app --process worker -i 1');
  });

  it('gets a hint that repeats the push with a command, or names the folder to push from', () => {
    judge({ buildpacks, processTypes: worker });
    expect(warnings[0]).toContain("`cf push my-app -c COMMAND`, in the folder of the app's source, starts one.");
    judge({ buildpacks, processTypes: worker }, { flags: { path: 'app' } });
    expect(warnings[0]).toContain('`cf push my-app -p app -c COMMAND` starts one.');
  });

  it('starts its own command, whatever the build found', () => {
    expect(judge({ buildpacks, processTypes: worker }, { hasCommand: true })).toBe(true);
    expect(judge({ buildpacks, processTypes: [] }, { hasCommand: true })).toBe(true);
  });

  it('is an error if the build found no process at all, but not for an image or an unreadable droplet', () => {
    expect(() => judge({ buildpacks, processTypes: [] })).toThrow("The build of app 'my-app' found no process to start.");
    expect(judge({ buildpacks, processTypes: [] }, { start: false })).toBe(true);
    expect(judge({ processTypes: [] })).toBe(true);
    expect(judge({ buildpacks, processTypes: [] }, { type: 'docker' })).toBe(true);
  });
});
