// Whether an instance that is not ready may be ready again soon: it was in its present run, a short time ago.

import { describe, expect, test } from 'vitest';
import type { Instance, Problem } from '../../../src/controller/instances/instances.ts';
import { instanceOf, type PodFacts } from '../../../src/controller/instances/pod-state.ts';
import { isFirstStart, Lapses } from '../../../src/controller/rollout/lapse.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';

const started = Date.parse('2026-01-01T12:00:00Z');
const iso = (ms: number): string => new Date(ms).toISOString();
/** A minute after its start. */
const lapsedAt = started + 60_000;

const problem = (more: Partial<Problem>): Problem => ({
  reason: 'HealthCheckFailed',
  cause: 'health-http',
  message: '',
  final: false,
  ...more,
});

const instance = (more: Partial<Instance> = {}): Instance => ({
  index: 0,
  generation: 'old',
  pod: 'old-0',
  uid: 'uid-0',
  state: 'STARTING',
  since: iso(lapsedAt),
  ready: false,
  ending: false,
  created: started,
  startedAt: started,
  restarts: 0,
  ...more,
});

/** One whose program does not run. */
function unstarted(more: Partial<Instance>): Instance {
  const { startedAt: _startedAt, ...rest } = instance(more);
  return rest;
}

const leftOf = (one: Instance, now = lapsedAt + 1_000): number | undefined => new Lapses().leftOf([one], now);

describe('an instance that is not ready', () => {
  test.each<[string, Partial<Instance>]>([
    ['without a known cause', {}],
    ['whose readiness check fails in this run', { problem: problem({ ofPresentRun: true }) }],
    ['long after it was started again', { restarts: 3 }],
    ['on a node that was lost a moment ago', { state: 'DOWN', problem: problem({ reason: 'Unknown', cause: 'node-lost' }) }],
  ])('has lapsed: %s', (_, more) => {
    expect(leftOf(instance(more))).toBe(19_000);
    expect(leftOf(instance(more), lapsedAt + 19_999)).toBe(1);
    expect(leftOf(instance(more), lapsedAt + 20_000)).toBeUndefined();
  });

  test.each<[string, Instance]>([
    ['one that is ready', instance({ ready: true, state: 'RUNNING' })],
    ['one that ends', instance({ ending: true })],
    ['one that ends on a lost node', instance({ ending: true, state: 'DOWN', problem: problem({ cause: 'node-lost' }) })],
    ['one that has crashed', instance({ state: 'CRASHED' })],
    ['one that waits for its next start', unstarted({ state: 'CRASHED', restarts: 4 })],
    ['one that was never ready', instance({ since: iso(started) })],
    ['one that was just started again after a crash', instance({ restarts: 1, since: iso(started + 4_000) })],
    ['one whose sidecar has ended', instance({ problem: problem({ reason: 'Crashed', cause: 'exit-code' }) })],
    ['one that has no node yet', unstarted({ state: 'DOWN' })],
    ['one that did not run when its node was lost', unstarted({ state: 'DOWN', problem: problem({ cause: 'node-lost' }) })],
  ])('has not: %s', (_, one) => {
    expect(leftOf(one, started + 5_000)).toBeUndefined();
  });

  test('counts for 20 s from the first look at it, if the clock of its node is ahead', () => {
    const lapses = new Lapses();
    const ahead = instance({ since: iso(lapsedAt + 3_600_000) });
    expect(lapses.leftOf([ahead], lapsedAt)).toBe(20_000);
    expect(lapses.leftOf([ahead], lapsedAt + 15_000)).toBe(5_000);
    expect(lapses.leftOf([ahead], lapsedAt + 20_000)).toBeUndefined();
    // It was ready in between.
    expect(lapses.leftOf([{ ...ahead, ready: true }], lapsedAt + 21_000)).toBeUndefined();
    expect(lapses.leftOf([ahead], lapsedAt + 22_000)).toBe(20_000);
  });

  test('counts as long as the one that lapsed last', () => {
    const later = instance({ uid: 'uid-1', since: iso(lapsedAt + 500) });
    const crashed = instance({ uid: 'uid-2', state: 'CRASHED' });
    expect(new Lapses().leftOf([instance(), later, crashed], lapsedAt + 1_000)).toBe(19_500);
  });
});

describe('the first start of an instance', () => {
  const starting = (more: Partial<Instance> = {}): Instance => instance({ since: iso(started), ...more });
  test.each<[string, Instance]>([
    ['one that runs and was not ready yet', starting()],
    ['one whose program does not run yet', unstarted({ since: iso(started) })],
    ['one that has not answered so far', starting({ problem: problem({ cause: 'start-timeout' }) })],
  ])('is that of %s', (_, one) => {
    expect(isFirstStart(one)).toBe(true);
  });
  test.each<[string, Instance]>([
    ['one that is ready', starting({ ready: true, state: 'RUNNING' })],
    ['one that ends', starting({ ending: true })],
    ['one that has crashed', starting({ state: 'CRASHED' })],
    ['one that was started again after a crash', starting({ restarts: 1 })],
    ['one that has not answered in time', starting({ problem: problem({ cause: 'start-timeout', final: true }) })],
    [
      'one whose image cannot be pulled',
      unstarted({ since: iso(started), problem: problem({ reason: 'ImagePull', cause: 'image-not-found' }) }),
    ],
    ['one that was ready before', instance()],
    ['one that has no node', starting({ state: 'DOWN' })],
  ])('is not that of %s', (_, one) => {
    expect(isFirstStart(one)).toBe(false);
  });
});

/** The state of an instance by a pod whose container runs, with the last end of a run before. */
function ofPod(readySince: number, status: object): Instance {
  const pod = {
    metadata: { name: 'old-0', namespace: 'space', uid: 'uid-0', resourceVersion: '1', creationTimestamp: iso(started - 5_000) },
    spec: { containers: [] },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'PodScheduled', status: 'True', lastTransitionTime: iso(started - 5_000) },
        { type: 'Ready', status: 'False', lastTransitionTime: iso(readySince) },
      ],
      containerStatuses: [{ name: 'application', image: '', imageID: '', ready: false, restartCount: 0, started: true, ...status }],
    },
  } as unknown as Stored<Pod>;
  const readiness = { port: 8080, failsAfterSeconds: 15 };
  const facts: PodFacts = { now: readySince + 1_000, expectations: { startSeconds: 60, port: 8080, readiness }, firstSeen: () => started, wasSeen: () => false }; // prettier-ignore
  return instanceOf(pod, facts);
}

const running = { state: { running: { startedAt: iso(started) } } };
const ended = { exitCode: 137, reason: 'OOMKilled', startedAt: iso(started - 9_000), finishedAt: iso(started - 1_000) };

test.each<[string, number, object, boolean]>([
  ['whose readiness check fails', lapsedAt, running, true],
  ['that was never ready', started - 4_000, running, false],
  ['that has ended', lapsedAt, { started: false, state: { terminated: ended } }, false],
  ['that waits for its next start', lapsedAt, { started: false, restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: ended } }, false],
  ['that runs again after it used too much memory', started + 2_000, { ...running, restartCount: 1, lastState: { terminated: ended } }, false],
  ['that runs again, and was not ready yet', started - 1_000, { ...running, restartCount: 1, lastState: { terminated: ended } }, false],
])('by the status of its pod, an instance %s', (_, readySince, status, hasLapsed) => {
  expect(leftOf(ofPod(readySince, status), readySince + 1_000) !== undefined).toBe(hasLapsed);
}); // prettier-ignore
