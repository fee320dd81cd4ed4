// The status of a process during a change, computed from the known facts.

import { describe, expect, test } from 'vitest';
import type { Instance } from '../../../src/controller/instances/instances.ts';
import { instancesStatus, rolloutStatus, type RolloutFacts } from '../../../src/controller/rollout/status.ts';
import type { CFProcess, DeploymentStatus } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

const target = 'aaaaaaaaaa';
const old = 'bbbbbbbbbb';
const now = Date.parse('2026-01-01T00:01:00Z');
const earlier = '2026-01-01T00:00:00Z';
const generations = [{ process: 'web', hash: target, state: 'Current' as const, instances: 1, ready: 1, uid: 'u' }];

function instance(more: Partial<Instance> = {}): Instance {
  return {
    index: 0, generation: target, pod: 'pod-0', uid: 'pod-uid', state: 'RUNNING', ready: true, ending: false, created: 0, restarts: 0, ...more,
  }; // prettier-ignore
}

interface Given extends Partial<RolloutFacts> {
  before?: DeploymentStatus;
  isStarted?: boolean;
}

/** Facts of a version that serves, by default. */
function statusOf({ before, isStarted = true, ...more }: Given = {}): DeploymentStatus {
  const process = {
    metadata: {},
    spec: { processType: 'web' },
    ...(before === undefined ? {} : { status: { actualInstances: 1, rollout: before } }),
  };
  const facts: RolloutFacts = {
    process: asStored(process as unknown as CFProcess),
    deployId: 'deploy',
    target,
    targetUid: 'u',
    desired: 1,
    plan: { instances: { [target]: 1 }, weights: { [target]: 1 }, remove: [], goal: target, complete: true },
    generations,
    instances: [instance()],
    ready: 1,
    proven: true,
    switched: true,
    failed: false,
    now,
    ...more,
  };
  return rolloutStatus(facts, isStarted);
}

describe('the phase Serving', () => {
  test('is reported for a version that is ready, reached by a request, and alone behind all routes', () => {
    expect(statusOf()).toEqual({ id: 'deploy', phase: 'Serving', process: 'web', since: '2026-01-01T00:01:00Z', generations });
  });

  test.each([
    ['an instance is not ready', { desired: 2 }, { reason: 'Instances', message: '1 of 2 instances are ready.' }],
    ['no request has reached it', { proven: false }, { reason: 'Serving', message: 'Waiting for the first answer of the new version.' }],
    [
      'requests still reach another version',
      { switched: false },
      { reason: 'Instances', message: 'Waiting for all routes to lead to the new version.' },
    ],
  ])('is not reported while %s', (_what, facts, said) => {
    expect(statusOf(facts)).toMatchObject({ phase: 'Starting', ...said });
  });

  test('carries a note, for example that the gateway could not be asked', () => {
    const note = { reason: 'RouteNotVerified', message: 'The gateway could not be asked from inside the cluster; an instance answered.' };
    expect(statusOf({ note })).toMatchObject({ phase: 'Serving', ...note });
  });

  test('is reported for a version that should have no instances', () => {
    expect(statusOf({ desired: 0, ready: 0, instances: [], proven: false, switched: false }).phase).toBe('Serving');
  });

  test('stays if an instance fails later, for the same change and the same AppWorkload only', () => {
    const served = [{ ...generations[0]!, served: true }];
    const before: DeploymentStatus = { id: 'deploy', phase: 'Serving', since: earlier, generations: served };
    const fallen = { ready: 0, proven: false, instances: [instance({ ready: false, state: 'CRASHED' })] };
    expect(statusOf({ ...fallen, before })).toMatchObject({ phase: 'Serving', since: earlier });
    expect(statusOf({ ...fallen, before: { ...before, id: 'earlier' } }).phase).toBe('Starting');
    expect(statusOf({ ...fallen, before: { ...before, phase: 'Starting' } }).phase).toBe('Starting');
    expect(statusOf({ ...fallen, before, targetUid: 'made again' }).phase).toBe('Starting');
    expect(statusOf({ ...fallen, before: { ...before, generations: [{ ...served[0]!, state: 'Old' }] } }).phase).toBe('Starting');
  });

  test('does not stay if the version had no instances to start, and gets some', () => {
    const before = statusOf({ desired: 0, ready: 0, instances: [], proven: false, now: Date.parse(earlier) });
    expect(before).toMatchObject({ phase: 'Serving', since: earlier });
    const starting = { ready: 0, proven: false, instances: [instance({ ready: false, state: 'STARTING' })] };
    expect(statusOf({ ...starting, before })).toMatchObject({ phase: 'Starting', since: '2026-01-01T00:01:00Z' });
  });
});

test('the phase Paused stays until the next step, whatever one of its instances or the gateway does', () => {
  const canary = { step: 1, steps: 2 };
  const before: DeploymentStatus = { id: 'deploy', phase: 'Paused', step: 1, since: earlier, generations };
  expect(statusOf({ canary, reached: true })).toMatchObject({ phase: 'Paused', step: 1 });
  const fallen = { canary, reached: false, ready: 0, proven: false, instances: [instance({ ready: false, state: 'STARTING' })] };
  expect(statusOf({ ...fallen, before })).toMatchObject({ phase: 'Paused', step: 1, since: earlier });
  expect(statusOf({ ...fallen, before, canary: { ...canary, step: 2 } })).toMatchObject({ phase: 'Starting', step: 2 });
  expect(statusOf({ ...fallen, before: { ...before, id: 'earlier' } }).phase).toBe('Starting');
  expect(statusOf({ ...fallen, before, targetUid: 'made again' }).phase).toBe('Starting');
  expect(statusOf({ ...fallen, before, failed: true }).phase).toBe('Failed');
});

describe('a version on its way', () => {
  test('is Pending until an instance has been started', () => {
    const down = instance({ state: 'DOWN', ready: false });
    const others = [instance({ generation: old }), instance({ ending: true })];
    expect(statusOf({ ready: 0, instances: [down, ...others] }).phase).toBe('Pending');
    expect(statusOf({ ready: 0, instances: [instance({ state: 'STARTING', ready: false })] }).phase).toBe('Starting');
  });

  test('reports what it waits for', () => {
    const awaited = { reason: 'ImagePull', message: 'The registry does not answer.', final: false } as const;
    expect(statusOf({ ready: 0, awaited })).toMatchObject({ reason: 'ImagePull', message: 'The registry does not answer.' });
  });

  test('keeps the time of its last change while its phase stays', () => {
    const before: DeploymentStatus = { id: 'deploy', phase: 'Starting', since: earlier };
    expect(statusOf({ switched: false, before }).since).toBe(earlier);
    expect(statusOf({ before }).since).toBe('2026-01-01T00:01:00Z');
    expect(statusOf({ switched: false, before: { ...before, id: 'earlier' } }).since).toBe('2026-01-01T00:01:00Z');
  });
});

describe('the phase Failed', () => {
  const problem = {
    reason: 'Crashed',
    cause: 'exit-code',
    message: 'It ended with exit code 3.',
    final: true,
    container: 'application',
    exitCode: 3,
  } as const;
  const failed = { failed: true, ready: 0, proven: false, instances: [instance({ ready: false, state: 'CRASHED', restarts: 2 })] };

  test.each(['NotServing', 'RouteNotAccepted'] as const)('has the reason %s and its message', (reason) => {
    const cause = {
      problem: { reason, cause: 'not-serving' as const, message: 'Requests to a.example.com/ are answered with 502.', final: true },
    };
    expect(statusOf({ ...failed, cause })).toEqual({
      id: 'deploy', phase: 'Failed', reason, cause: 'not-serving', message: 'Requests to a.example.com/ are answered with 502.', process: 'web',
      since: '2026-01-01T00:01:00Z', generations,
    }); // prettier-ignore
  });

  test('has the instance that is the cause and the first and last lines of its log', () => {
    const log = { head: ['first'], omitted: 7, tail: ['last'] };
    expect(statusOf({ ...failed, cause: { problem, log, instance: failed.instances[0]! } })).toMatchObject({
      pod: 'pod-0', restarts: 2, container: 'application', exitCode: 3, logHead: ['first'], logOmitted: 7, logTail: ['last'],
    }); // prettier-ignore
  });

  test('mentions that another version is started, until that has an instance', () => {
    const plan = { instances: {}, weights: {}, remove: [], goal: old, complete: false };
    const woken = 'It ended with exit code 3. The version that served last is started in its place.';
    expect(statusOf({ ...failed, plan, cause: { problem } }).message).toBe(woken);
    const instances = [...failed.instances, instance({ generation: old })];
    expect(statusOf({ ...failed, plan, instances, cause: { problem } }).message).toBe('It ended with exit code 3.');
  });

  test('keeps its cause while it lasts', () => {
    const first = statusOf({ ...failed, cause: { problem, log: { head: [], omitted: 0, tail: ['last'] } } });
    expect(statusOf({ ...failed, before: { ...first, since: earlier } })).toEqual({ ...first, since: earlier });
  });
});

describe('a stopped app', () => {
  test('reports how many instances have not ended', () => {
    expect(statusOf({ isStarted: false, desired: 0, instances: [instance(), instance({ index: 1, ending: true, ready: false })] })).toMatchObject({
      phase: 'Pending', reason: 'Stopping', message: '1 instances are still to end.',
    }); // prettier-ignore
    expect(statusOf({ isStarted: false, desired: 0, instances: [] }).phase).toBe('Stopped');
  });

  test('keeps the message of the version that failed', () => {
    const before: DeploymentStatus = {
      id: 'earlier',
      phase: 'Failed',
      reason: 'Crashed',
      logHead: ['first'],
      logOmitted: 7,
      logTail: ['last'],
    };
    const { logHead, logOmitted, logTail, reason } = statusOf({ isStarted: false, desired: 0, instances: [], before });
    expect({ logHead, logOmitted, logTail, reason }).toEqual({ logHead: ['first'], logOmitted: 7, logTail: ['last'], reason: undefined });
  });
});

test('an instance of which a sidecar failed has that container with its exit code, and one of which the app failed has only the code', () => {
  const problem = { reason: 'Crashed', cause: 'exit-code', message: 'It ended.', final: true, exitCode: 3 } as const;
  const shown = (container: string) => {
    const failing = instance({ ready: false, state: 'STARTING', exitCode: 1, problem: { ...problem, container } });
    return instancesStatus([failing], target)['0'];
  };
  expect(shown('sidecar-0-proxy-s')).toMatchObject({ container: 'sidecar-0-proxy-s', exitCode: 3 });
  expect(shown('application')).toMatchObject({ exitCode: 1 });
  expect(shown('application')).not.toHaveProperty('container');
});

describe('of two instances with one index', () => {
  const shown = (...instances: Instance[]): [string, string][] =>
    Object.entries(instancesStatus(instances, target)).map(([index, { generation = '' }]) => [index, generation]);

  test('the running one is shown, then the one of the wanted version', () => {
    const [wanted, other] = [instance({ state: 'STARTING', ready: false }), instance({ generation: old })];
    expect(shown(wanted, other)).toEqual([['0', old]]);
    expect(shown(other, instance())).toEqual([['0', target]]);
    expect(shown(instance(), other)).toEqual([['0', target]]);
  });

  test('a terminating one is not shown', () => {
    expect(shown(instance({ ending: true }))).toEqual([]);
    expect(shown(instance({ ending: true }), instance({ generation: old, state: 'DOWN' }))).toEqual([['0', old]]);
  });
});
