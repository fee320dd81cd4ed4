import { expect, test } from 'vitest';
import type { CFApp, CFBuild } from '../../../src/lib/api/types.generated.ts';
import { failedBuildOf } from '../../../src/lib/ops/why/app.ts';
import { asStored } from '../../support/stored.ts';

const build = (name: string, creationTimestamp: string, state: 'FAILED' | 'STAGED', lastTransitionTime: string) =>
  asStored<CFBuild>({
    metadata: { name, namespace: 'space', creationTimestamp },
    spec: {} as CFBuild['spec'],
    status: {
      state,
      conditions: [{ type: 'Succeeded', status: state === 'STAGED' ? 'True' : 'False', reason: 'Any', message: '', lastTransitionTime }],
    },
  });
const app = (since: string) =>
  asStored<CFApp>({
    metadata: { name: 'app', namespace: 'space' },
    spec: {} as CFApp['spec'],
    status: { deployment: { id: 'id', phase: 'Serving', since } },
  });
const failed = build('second', '2026-01-01T10:00:00Z', 'FAILED', '2026-01-01T10:02:00Z');

test.each([
  ['after the version before began to serve, although it was made earlier', '2026-01-01T10:00:30Z', 'second'],
  ['before a later change of the app', '2026-01-01T10:05:00Z', undefined],
])('a build that failed %s', (_, since, expected) => {
  const first = build('first', '2026-01-01T09:59:00Z', 'STAGED', '2026-01-01T10:00:10Z');
  expect(failedBuildOf({ app: app(since), builds: [failed, first] })?.metadata.name).toBe(expected);
});

test('a failed build is not the cause when a newer one succeeded', () => {
  const newer = build('newer', '2026-01-01T10:01:00Z', 'STAGED', '2026-01-01T10:01:30Z');
  expect(failedBuildOf({ app: app('2026-01-01T10:00:30Z'), builds: [failed, newer] })).toBeUndefined();
});
