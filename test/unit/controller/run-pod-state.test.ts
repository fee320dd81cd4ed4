import { describe, expect, test } from 'vitest';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import type { ContainerState, ContainerStatus, CoreCondition } from '../../../src/lib/api/pod.ts';
import { whyUnanswered } from '../../../src/controller/instances/failed-check.ts';
import { instanceOf, problemOf, type PodFacts } from '../../../src/controller/instances/pod-state.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { asStored } from '../../support/stored.ts';

const now = Date.parse('2026-11-21T10:00:00Z');
const ago = (seconds: number): string => new Date(now - seconds * 1_000).toISOString();
const facts = (more: Partial<PodFacts> = {}): PodFacts => ({
  now,
  expectations: { startSeconds: 60, port: 8080 },
  firstSeen: () => now,
  wasSeen: () => false,
  ...more,
});

function withSidecar(of: Stored<Pod>, sidecar: Partial<ContainerStatus>): Stored<Pod> {
  const status = { name: 'sidecar-0-proxy-s', image: 'i', imageID: '', ready: false, restartCount: 0, ...sidecar };
  return { ...of, status: { ...of.status, initContainerStatuses: [status] } };
}

interface PodParts {
  state?: ContainerState;
  lastState?: ContainerState;
  restarts?: number;
  ready?: boolean;
  started?: boolean;
  scheduled?: CoreCondition;
  deleted?: boolean;
  age?: number;
  pullSecrets?: string[];
  /** Seconds since the pod is not ready. */
  notReady?: number;
}

function pod({
  state,
  lastState,
  restarts = 0,
  ready = false,
  started = false,
  scheduled,
  deleted = false,
  age = 5,
  pullSecrets = [],
  notReady = 1,
}: PodParts): Stored<Pod> {
  const status: ContainerStatus = {
    name: 'application', image: 'registry.example/app:1', imageID: '', ready, started, restartCount: restarts,
    ...(state === undefined ? {} : { state }), ...(lastState === undefined ? {} : { lastState }),
  }; // prettier-ignore
  return asStored<Pod>({
    metadata: {
      name: 'app-space-0123456789-2',
      uid: 'u',
      creationTimestamp: ago(age),
      labels: { 'apps.kubernetes.io/pod-index': '2', 'kf.cloudfoundry.org/generation': 'abc' },
      ...(deleted ? { deletionTimestamp: ago(1) } : {}),
    },
    spec: { containers: [], imagePullSecrets: pullSecrets.map((secret) => ({ name: secret })) },
    status: {
      phase: 'Running',
      conditions: [
        scheduled ?? { type: 'PodScheduled', status: 'True', lastTransitionTime: ago(age) },
        { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: ago(notReady) },
      ],
      ...(state === undefined ? {} : { containerStatuses: [status] }),
    },
  });
}

const running = (seconds: number): ContainerState => ({ running: { startedAt: ago(seconds) } });
const waiting = (reason: string, message = ''): ContainerState => ({ waiting: { reason, message } });
const terminated = (exitCode: number, seconds: number, more: Record<string, unknown> = {}): ContainerState => ({
  terminated: { exitCode, startedAt: ago(seconds + 1), finishedAt: ago(seconds), reason: 'Error', ...more },
});
const unschedulable = (seconds: number): CoreCondition => ({
  type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes are available: 1 Insufficient memory.', lastTransitionTime: ago(seconds),
}); // prettier-ignore

describe('an instance that no node takes', () => {
  const stuck = pod({ scheduled: unschedulable(30), age: 30 });
  const motion = (seconds: number, away: string[]): PodFacts => facts({ nodesInMotion: () => ({ away, until: now + seconds * 1_000 }) });

  test('waits for a node that went away a moment ago, and names it', () => {
    expect(problemOf(stuck, motion(40, ['node-1']))).toEqual({
      reason: 'Unschedulable',
      cause: 'no-room',
      message: 'No node can run the instance: 0/1 nodes are available: 1 Insufficient memory. Not ready: node-1.',
      final: false,
      lookAgainMs: 40_000,
    });
  });

  test('waits for the scheduler after a node came back', () => {
    expect(problemOf(stuck, motion(5, []))).toMatchObject({ final: false, lookAgainMs: 5_000 });
  });

  test('has failed when the nodes have been away for long, and five of them are named', () => {
    const away = ['a', 'b', 'c', 'd', 'e', 'f'];
    expect(problemOf(stuck, motion(-1, away))).toMatchObject({
      final: true,
      message: expect.stringMatching(/ Not ready: a, b, c, d, e, …\.$/),
    });
  });

  test.each([
    ['that come and go all the time', 59],
    ['with a clock that is ahead', 3_600],
  ])('has failed after a time in any case, with nodes %s', (_, seconds) => {
    expect(problemOf(stuck, motion(seconds, []))).toMatchObject({ final: false, lookAgainMs: Math.min(seconds, 60) * 1_000 });
    expect(problemOf(pod({ scheduled: unschedulable(90), age: 90 }), motion(seconds, []))).toMatchObject({ final: true });
  });

  test('gets its own patience when no node moves', () => {
    expect(problemOf(pod({ scheduled: unschedulable(3) }), motion(-3_600, []))).toMatchObject({ final: false, lookAgainMs: 5_000 });
  });
});

describe('an instance on a node that does not answer', () => {
  const lost = facts({ lostSince: now - 5_000 });
  const cause = { state: 'DOWN', since: '2026-11-21T09:59:55Z', problem: { cause: 'node-lost', final: false } };

  test.each([
    ['that was ready', pod({ state: running(5) })],
    ['whose end has begun', pod({ state: running(5), deleted: true })],
    ['that ended there before', pod({ state: terminated(1, 3), restarts: 4 })],
  ])('%s is down because of its node', (_, one) => {
    expect(instanceOf(one, lost)).toMatchObject(cause);
  });

  test('counts as running until Kubernetes says that it is not ready, and one that the node ended keeps its reason', () => {
    expect(instanceOf(pod({ state: running(5), ready: true }), lost)).toMatchObject({ state: 'RUNNING' });
    const evicted = pod({ state: running(5) });
    const status = { ...evicted.status, phase: 'Failed' as const, reason: 'Evicted', message: 'The node was low on resource: memory.' };
    expect(problemOf({ ...evicted, status }, lost)).toMatchObject({ cause: 'evicted' });
  });
});

describe('the reason why an instance does not serve', () => {
  test.each([
    ['a pod that is being made', pod({}), undefined],
    ['a ready pod', pod({ state: running(5), ready: true, restarts: 7 }), undefined],
    ['a pod about to end', pod({ state: terminated(137, 1), restarts: 3, deleted: true }), undefined],
    ['no room, just now', pod({ scheduled: unschedulable(1) }), { reason: 'Unschedulable', final: false }],
    ['no room for a while', pod({ scheduled: unschedulable(9) }), { reason: 'Unschedulable', final: true, byTime: true }],
    [
      'an image that does not exist',
      pod({ state: waiting('ErrImagePull', 'registry.example/app:1: not found') }),
      { reason: 'ImagePull', final: true },
    ],
    [
      'an image whose registry stumbled',
      pod({ state: waiting('ErrImagePull', 'connection reset by peer') }),
      { reason: 'ImagePull', final: false },
    ],
    [
      'an image that would run as root',
      pod({ state: waiting('CreateContainerConfigError', 'container has runAsNonRoot and image will run as root') }),
      { reason: 'CreateContainer', final: true },
    ],
    [
      'a Secret that does not exist yet',
      pod({ state: waiting('CreateContainerConfigError', 'secret "x" not found') }),
      { reason: 'CreateContainer', final: false },
    ],
    ['one crash, just now', pod({ state: terminated(1, 1) }), { reason: 'Crashed', final: false, exitCode: 1 }],
    [
      'one crash and not ready for 10 s after',
      pod({ state: running(9), lastState: terminated(1, 10), restarts: 1 }),
      { reason: 'Crashed', final: true, byTime: true },
    ],
    [
      'two crashes',
      pod({ state: terminated(3, 0), lastState: terminated(3, 2), restarts: 1 }),
      { reason: 'Crashed', final: true, exitCode: 3 },
    ],
    [
      'two crashes, waiting for the next start',
      pod({ state: waiting('CrashLoopBackOff'), lastState: terminated(3, 2), restarts: 2 }),
      { reason: 'Crashed', final: true },
    ],
    [
      'too much memory, twice',
      pod({ state: terminated(137, 0, { reason: 'OOMKilled' }), restarts: 1 }),
      { reason: 'OutOfMemory', final: true },
    ],
    [
      'a command that cannot be started, twice',
      pod({ state: terminated(128, 0, { reason: 'StartError', message: 'exec: "x": not found' }), restarts: 1 }),
      { reason: 'CreateContainer', final: true },
    ],
    ['an app that has not answered for some seconds', pod({ state: running(10) }), { reason: 'HealthCheckFailed', final: false }],
    ['an app that started to answer, not ready yet', pod({ state: running(10), started: true }), undefined],
    ['an app that never answered in its time', pod({ state: running(63) }), { reason: 'HealthCheckFailed', final: true, byTime: true }],
    [
      'an app that was ended because it never answered',
      pod({ state: running(1), lastState: terminated(143, 1, { startedAt: ago(62) }), restarts: 1, notReady: 63 }),
      { reason: 'HealthCheckFailed', final: true },
    ],
    ['nothing known for minutes', pod({ state: waiting('ContainerCreating'), age: 200 }), { reason: 'StartTimeout', final: true }],
  ])('%s', (_name, given, expected) => {
    const problem = problemOf(given, facts());
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatchObject(expected);
  });

  test('a registry with temporary errors becomes the reason after some time', () => {
    const stumbling = pod({ state: waiting('ImagePullBackOff', 'i/o timeout') });
    expect(problemOf(stumbling, facts({ firstSeen: () => now - 7_000 }))).toMatchObject({ final: false, lookAgainMs: 1_000 });
    expect(problemOf(stumbling, facts({ firstSeen: () => now - 8_000 }))).toMatchObject({ final: true });
  });

  describe('a kubelet that could not read an object', () => {
    const refused = (said: string) =>
      `failed to resolve image: pull access denied, repository does not exist or may require authorization: ${said}`;
    const none = refused('authorization failed: no basic auth credentials');
    const unread = 'failed to sync secret cache: timed out waiting for the condition';
    const bySecret = { pullSecrets: ['image-registry-credentials'] };

    test.each([
      ['a password', 'ErrImagePull', none],
      ['a password, before its next try', 'ImagePullBackOff', `Back-off pulling image "i": ErrImagePull: ${none}`],
      ['a password for tokens', 'ErrImagePull', refused('server message: insufficient_scope: authorization failed')],
      ['a Secret of variables', 'CreateContainerConfigError', unread],
      ['a ConfigMap', 'CreateContainerConfigError', 'failed to sync configmap cache: timed out waiting for the condition'],
      ['an object that it does not follow yet', 'CreateContainerConfigError', 'object "space"/"app-env" not registered'],
    ])('has time for other tries: %s', (_what, reason, message) => {
      const stumbling = pod({ state: waiting(reason, message), ...bySecret });
      expect(problemOf(stumbling, facts({ firstSeen: () => now - 31_000 }))).toMatchObject({ final: false, lookAgainMs: 14_000 });
      expect(problemOf(stumbling, facts({ firstSeen: () => now - 45_000 }))).toMatchObject({ final: true, byTime: true });
    });

    test('has none for a password that nobody gave, or that is refused', () => {
      const problem = { reason: 'ImagePull', cause: 'image-unauthorized', final: true };
      expect(problemOf(pod({ state: waiting('ErrImagePull', none) }), facts())).toMatchObject(problem);
      const wrong = waiting(
        'ErrImagePull',
        'failed to authorize: failed to fetch oauth token: 401 Unauthorized: incorrect username or password',
      );
      expect(problemOf(pod({ state: wrong, ...bySecret }), facts())).toMatchObject(problem);
    });
  });

  test('an app without a check is never reported as not answering', () => {
    expect(problemOf(pod({ state: running(100) }), facts({ expectations: { startSeconds: 0 } }))).toBeUndefined();
  });

  test('an http check is reported with its path', () => {
    const expectations = { startSeconds: 60, port: 8080, path: '/health' };
    expect(problemOf(pod({ state: running(63) }), facts({ expectations }))?.message).toContain('GET /health on port 8080');
    expect(problemOf(pod({ state: running(12) }), facts({ expectations }))?.message).toBe(
      'The app has not answered GET /health on port 8080 with 200 to 399 yet (12 of 60 s).',
    );
    expect(problemOf(pod({ state: running(12) }), facts({ expectations: { startSeconds: 60, port: 8080 } }))?.message).toBe(
      'The app has not answered on port 8080 yet (12 of 60 s).',
    );
  });
});

describe('an end of which the node only knows that the container is gone', () => {
  const reason = 'ContainerStatusUnknown';
  const gone = terminated(137, 0, { reason, message: 'The container could not be located.', startedAt: null, finishedAt: null });
  const problem = {
    reason: 'Crashed',
    cause: 'unknown',
    message: 'The app ended, and its node does not know how: The container could not be located.',
    exitCode: 137,
  };

  test('is no failed start, and becomes final by the time since it was seen', () => {
    expect(problemOf(pod({ state: gone }), facts())).toMatchObject({ ...problem, final: false, lookAgainMs: 10_000 });
    expect(problemOf(pod({ state: gone }), facts({ firstSeen: () => now - 10_000 }))).toMatchObject({ ...problem, final: true });
    expect(instanceOf(pod({ state: gone }), facts())).toMatchObject({ state: 'CRASHED' });
    expect(instanceOf(pod({ state: gone }), facts())).not.toHaveProperty('since');
  });
});

describe('an end of a web app that served', () => {
  const checked = facts({ expectations: { startSeconds: 60, port: 8080, longestStartSeconds: 84 } });
  const after = (ranSeconds: number, exitCode: number, notReady: number) =>
    problemOf(pod({ state: terminated(exitCode, 2, { startedAt: ago(ranSeconds + 2) }), notReady, age: ranSeconds + 10 }), checked);
  const crash = { reason: 'Crashed', final: false, lookAgainMs: 8_000 };

  test.each([
    [0, 'exit-code', 'The app ended with exit code 0.'],
    [137, 'signal', 'The app ended with exit code 137 (signal 9, SIGKILL).'],
    [143, 'signal', 'The app ended with exit code 143 (signal 15, SIGTERM).'],
  ])('is one with exit code %i after hours, and has the patience of a crash', (exitCode, cause, message) => {
    expect(after(7_200, exitCode, 2)).toMatchObject({ ...crash, exitCode, cause, message });
    // Without a time at which it was ready, it took too long for a start.
    expect(after(7_200, exitCode, 7_210)).toMatchObject({ ...crash, cause });
    expect(after(85, exitCode, 95)).toMatchObject({ ...crash, cause });
  });

  test('is one as long after its start as a failed start takes, since it was ready', () => {
    expect(after(70, 143, 20)).toMatchObject({ ...crash, cause: 'signal' });
    expect(after(70, 143, 80)).toMatchObject({ reason: 'HealthCheckFailed', cause: 'start-timeout', final: true });
  });

  test('is no failed check of a sidecar, which has none', () => {
    const app = pod({ state: running(90), started: true });
    const sidecar = { restartCount: 0, state: terminated(0, 2, { startedAt: ago(70) }) };
    expect(problemOf(withSidecar(app, sidecar), checked)).toMatchObject({ ...crash, cause: 'exit-code' });
  });
});

describe('an instance whose program runs, and whose readiness check fails', () => {
  const day = 24 * 3_600;
  const readiness = { port: 8080, path: '/ready', failsAfterSeconds: 15 };
  const checked = facts({ expectations: { startSeconds: 60, port: 8080, readiness } });
  const killed = terminated(137, 3 * day, { reason: 'OOMKilled' });
  const run = { state: running(3 * day - 10), started: true, age: 4 * day };
  const failing = {
    reason: 'HealthCheckFailed',
    cause: 'health-http',
    message: 'The app runs, and gets no requests because its readiness check fails: GET /ready on port 8080 is not answered with success.',
    ofPresentRun: true,
  };

  test('has that as its problem, and not the end of its run before', () => {
    const instance = instanceOf(pod({ ...run, lastState: killed, restarts: 1, notReady: 30 }), checked);
    expect(instance).toMatchObject({ state: 'STARTING', since: ago(30), problem: { ...failing, final: true, byTime: true } });
    expect(problemOf(pod({ ...run, lastState: terminated(1, 3 * day), restarts: 7, notReady: 30 }), checked)).toMatchObject(failing);
  });

  test('has the check of the port if that is what is checked', () => {
    const expectations = { ...checked.expectations, readiness: { port: 8080, failsAfterSeconds: 15 } };
    expect(problemOf(pod({ ...run, notReady: 30 }), { ...checked, expectations })).toMatchObject({
      cause: 'health-port',
      message: expect.stringMatching(/: a connection to port 8080 is not accepted\.$/) as string,
    });
  });

  test('has time after its start, and a moment after a kubelet has taken its readiness back', () => {
    const young = { started: true, notReady: 80, age: 80 };
    const pending = { reason: 'HealthCheckFailed', cause: 'start-timeout', final: false };
    expect(problemOf(pod({ ...young, state: running(70) }), checked)).toMatchObject({ ...pending, lookAgainMs: 5_000 });
    expect(problemOf(pod({ ...young, state: running(75) }), checked)).toMatchObject({ ...failing, final: false, lookAgainMs: 100_000 });
    expect(problemOf(pod({ ...run, notReady: 2 }), checked)).toMatchObject({ ...pending, lookAgainMs: 1_000 });
    // After an end, the time for a first start does not count again.
    const again = { ...young, state: running(76), lastState: killed, restarts: 1 };
    expect(problemOf(pod(again), checked)).toMatchObject({ ...failing, final: true, byTime: true });
    // Its age says nothing about the run that has begun a moment ago.
    expect(problemOf(pod({ ...run, state: running(1), lastState: killed, restarts: 1, notReady: 2 }), checked)).toMatchObject(pending);
  });

  test('is explained by the end before while it has not passed its start check, or waits for its next start', () => {
    const again = { lastState: killed, restarts: 1 };
    expect(problemOf(pod({ ...again, state: running(2) }), checked)).toMatchObject({ cause: 'oom' });
    expect(problemOf(pod({ ...again, state: waiting('CrashLoopBackOff') }), checked)).toMatchObject({ cause: 'oom' });
  });
});

describe('the reported instances', () => {
  test.each([
    ['RUNNING', pod({ state: running(5), ready: true })],
    ['STARTING', pod({ state: running(1) })],
    ['STARTING', pod({ state: waiting('ContainerCreating') })],
    ['CRASHED', pod({ state: waiting('CrashLoopBackOff'), lastState: terminated(1, 2), restarts: 2 })],
    ['CRASHED', pod({ state: terminated(1, 1) })],
    ['DOWN', pod({ scheduled: unschedulable(1) })],
    ['DOWN', pod({ state: running(5), ready: true, deleted: true })],
  ])('are %s', (state, given) => {
    expect(instanceOf(given, facts()).state).toBe(state);
  });

  test('have an index, generation, restarts and the last exit code', () => {
    const instance = instanceOf(pod({ state: running(2), lastState: terminated(7, 3), restarts: 4 }), facts());
    expect(instance).toMatchObject({ index: 2, generation: 'abc', restarts: 4, exitCode: 7, ready: false, pod: 'app-space-0123456789-2' });
  });
});

describe('the message', () => {
  test('about too little memory names the limit and the flag that raises it', () => {
    const given = pod({ state: terminated(137, 0, { reason: 'OOMKilled' }), restarts: 1 });
    const problem = problemOf(given, { ...facts(), expectations: { ...facts().expectations, memory: '128Mi' } });
    expect(problem?.message).toBe('The app used more memory than its limit of 128M and was ended; -m gives it more.');
  });

  test('about a launcher without a command says how to name one, and other images may use its exit code', () => {
    const given = pod({ state: terminated(82, 0), lastState: terminated(82, 1), restarts: 1 });
    const built = problemOf(given, { ...facts(), expectations: { ...facts().expectations, builtProcess: 'web' } });
    expect(built?.message).toBe(
      "The app has no command for its process 'web' (exit code 82): push it with -c COMMAND, or name it in a Procfile.",
    );
    expect(problemOf(given, facts())?.message).toBe('The app ended with exit code 82.');
  });

  test.each([
    [
      'dial tcp 10.0.0.7:8080: connect: connection refused',
      /must listen on 0\.0\.0\.0 .*\$PORT, not on 127\.0\.0\.1\. The last check said: dial tcp/,
    ],
    [
      'HTTP probe failed with statuscode: 404',
      /^The app listens on port 8080, but GET \/health is answered with 404; .*health-check-http-endpoint/,
    ],
    ['Get "http://10.0.0.7:8080/": context deadline exceeded', /too slow to answer: health-check-invocation-timeout/],
    ['dial tcp 10.0.0.7:8080: i/o timeout', /^The connection was not accepted: nothing answers at that address and port/],
    ['Get "http://10.0.0.7:8080/": dial tcp 10.0.0.7:8080: i/o timeout (Client.Timeout exceeded)', /^The connection was not accepted/],
    ['dial tcp 10.0.0.7:8080: connect: no route to host', /^The connection was not accepted/],
    ['read tcp 10.0.0.1:40000->10.0.0.7:8080: i/o timeout', /takes connections but is too slow to answer/],
    ['something else', /^The last check said: something else$/],
    [undefined, /^The app must listen on 0\.0\.0\.0/],
  ])('about a check that reported %j says what to change', (said, expected) => {
    const told = whyUnanswered(said, { startSeconds: 60, port: 8080, path: '/health' });
    expect(told).toMatch(expected);
    if (said?.includes('404') === true) expect(told).not.toContain('0.0.0.0');
  });
});

describe('a sidecar that ends', () => {
  const running = pod({ state: { running: { startedAt: ago(30) } }, started: true });
  const ended = (reason: string, exitCode: number) => ({ terminated: { reason, exitCode, finishedAt: ago(2) } });

  test('is the cause when the app itself runs, and its second end is final', () => {
    const once = withSidecar(running, { state: ended('Error', 3) });
    expect(problemOf(once, facts())).toMatchObject({
      reason: 'Crashed',
      message: "The sidecar 'proxy' ended with exit code 3.",
      final: false,
    });
    const twice = withSidecar(running, {
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: ended('Error', 3),
      restartCount: 2,
    });
    expect(problemOf(twice, facts())).toMatchObject({ reason: 'Crashed', container: 'sidecar-0-proxy-s', final: true });
  });

  test('for lack of memory is told with the key that gives it more', () => {
    const killed = withSidecar(running, { state: ended('OOMKilled', 137) });
    expect(problemOf(killed, facts())?.message).toContain("The sidecar 'proxy' used more memory than it may");
  });

  test('does not hide that the app ended', () => {
    const both = withSidecar(pod({ state: ended('Error', 1) }), { state: ended('Error', 3) });
    expect(problemOf(both, facts())?.message).toBe('The app ended with exit code 1.');
  });
});
