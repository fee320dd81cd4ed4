import { describe, expect, test } from 'vitest';
import { measureBuild, measureDeployment, noteChanges } from '../../../src/controller/durations.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import { Metrics } from '../../../src/controller/runtime/metrics.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { annotations } from '../../../src/lib/api/group.ts';
import type { CFApp, CFBuild } from '../../../src/lib/api/types.generated.ts';

const start = Date.parse('2026-01-01T00:00:00Z');

function scene() {
  const metrics = new Metrics();
  let now = start;
  const context = { memory: new Memory(), metrics, now: () => now } as unknown as Context;
  /** Sum and number of observations with the given labels. */
  const seen = async (name: string, labels: string): Promise<[number, number]> => {
    const lines = (await metrics.render()).split('\n');
    const valueOf = (part: string): number => Number(lines.find((line) => line.startsWith(`${name}_${part}{${labels}} `))?.split(' ')[1]);
    return [valueOf('sum'), valueOf('count')];
  };
  return { context, seen, at: (seconds: number) => (now = start + seconds * 1_000) };
}

const appWith = (marks: Record<string, string>, deployed = true): CFApp =>
  ({
    metadata: { name: 'a', namespace: 'ns', creationTimestamp: '2026-01-01T00:00:00Z', annotations: marks },
    ...(deployed ? { status: { deployment: { id: 'old', phase: 'Serving' } } } : {}),
  }) as unknown as CFApp;

const buildOf = (type: 'buildpack' | 'docker', pushId?: string): CFBuild =>
  ({
    metadata: {
      name: 'b', namespace: 'ns', creationTimestamp: '2026-01-01T00:00:00Z',
      annotations: pushId === undefined ? {} : { [annotations.pushId]: pushId },
    },
    spec: { appRef: { name: 'a' }, lifecycle: { type } },
  }) as unknown as CFBuild; // prettier-ignore

describe('a push', () => {
  test('of a new app is measured from its creation', async () => {
    const { context, seen, at } = scene();
    at(2);
    noteChanges(context, appWith({ [annotations.pushId]: 'p', [annotations.deployId]: 'p' }, false));
    at(30);
    measureDeployment(context, appWith({}), { id: 'p', phase: 'Serving' });
    expect(await seen('kf_push_duration_seconds', 'outcome="succeeded"')).toEqual([30, 1]);
  });

  test('of a known app is measured from its push id, and its rollout from its last write', async () => {
    const { context, seen, at } = scene();
    noteChanges(context, appWith({ [annotations.pushId]: 'old', [annotations.deployId]: 'old' }));
    at(10);
    noteChanges(context, appWith({ [annotations.pushId]: 'p', [annotations.deployId]: 'old' }));
    at(30);
    noteChanges(context, appWith({ [annotations.pushId]: 'p', [annotations.deployId]: 'p' }));
    at(35);
    for (const phase of ['Pending', 'Starting', 'Serving', 'Serving', 'Failed'])
      measureDeployment(context, appWith({}), { id: 'p', phase });
    expect(await seen('kf_push_duration_seconds', 'outcome="succeeded"')).toEqual([25, 1]);
    expect(await seen('kf_rollout_duration_seconds', 'outcome="succeeded"')).toEqual([5, 1]);
    expect(await seen('kf_push_duration_seconds', 'outcome="failed"')).toEqual([0, 0]);
  });

  test('whose build fails has failed then, and a build of another push does not affect it', async () => {
    const { context, seen, at } = scene();
    noteChanges(context, appWith({ [annotations.pushId]: 'p' }, false));
    at(20);
    measureBuild(context, buildOf('buildpack', 'earlier'), 'failed');
    expect(await seen('kf_push_duration_seconds', 'outcome="failed"')).toEqual([0, 0]);
    measureBuild(context, buildOf('buildpack', 'p'), 'failed');
    expect(await seen('kf_push_duration_seconds', 'outcome="failed"')).toEqual([20, 1]);
  });
});

test('a build is measured from its creation, by lifecycle and outcome', async () => {
  const { context, seen, at } = scene();
  at(40);
  measureBuild(context, buildOf('buildpack'), 'succeeded');
  measureBuild(context, buildOf('docker'), 'failed');
  expect(await seen('kf_build_duration_seconds', 'lifecycle="buildpack",outcome="succeeded"')).toEqual([40, 1]);
  expect(await seen('kf_build_duration_seconds', 'lifecycle="docker",outcome="failed"')).toEqual([40, 1]);
});
