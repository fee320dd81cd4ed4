// Instances as the reconcilers see them over time: what is stored about a pod between two checks.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  instancesByApp,
  instancesByProcess,
  podInstances,
  podsOfApp,
  watchInstancesOfApps,
} from '../../../src/controller/instances/pod-instances.ts';
import { withLines } from '../../../src/controller/instances/failed-check.ts';
import type { Problem } from '../../../src/controller/instances/instances.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { labels } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { asStored } from '../../support/stored.ts';

const seconds = 1_000;
const hour = 3_600 * seconds;

let now: number;
let version: number;
let pods: Store<Pod>;
let context: Context;

beforeEach(() => {
  now = Date.parse('2030-01-01T00:00:00Z');
  version = 0;
  pods = new Store<Pod>();
  pods.addIndex(instancesByProcess.name, instancesByProcess.of);
  context = { memory: new Memory(), stores: { of: () => pods }, now: () => now } as unknown as Context;
});

function putPod(name: string, status: NonNullable<Pod['status']>): void {
  version += 1;
  const metadata = { name, namespace: 's', uid: name, resourceVersion: String(version), labels: { [labels.guid]: 'p' } };
  const spec = { containers: [], imagePullSecrets: [{ name: 'password' }] };
  pods.put({ metadata: { ...metadata, creationTimestamp: '2030-01-01T00:00:00Z' }, spec, status });
}

const problems = (): (Problem | undefined)[] =>
  podInstances(context)
    .of('s', 'p', () => ({ startSeconds: 60 }))
    .map(({ problem }) => problem);

/** The problem of the process's only instance after its pod changed to `status`. */
function problemWith(status: NonNullable<Pod['status']>): Problem | undefined {
  putPod('a-0', status);
  return problems()[0];
}

const container = { name: 'application', image: 'registry.example/app', imageID: '', ready: false, restartCount: 0 };
const pulling = { containerStatuses: [{ ...container, state: { waiting: { reason: 'ErrImagePull', message: 'connection reset' } } }] };
const serving = { conditions: [{ type: 'Ready', status: 'True' as const }], containerStatuses: [{ ...container, ready: true }] };

describe('a problem of an instance that may pass', () => {
  test('is final after the time limit', () => {
    expect(problemWith(pulling)).toMatchObject({ reason: 'ImagePull', final: false });
    now += 9 * seconds;
    expect(problemWith(pulling)).toMatchObject({ reason: 'ImagePull', final: true, byTime: true });
  });

  test('gets its whole time limit again if it returns after the pod was ready', () => {
    problemWith(pulling);
    now += 2 * seconds;
    expect(problemWith(serving)).toBeUndefined();
    now += hour;
    expect(problemWith(pulling)).toMatchObject({ reason: 'ImagePull', final: false, lookAgainMs: 8 * seconds });
    now += 9 * seconds;
    expect(problemWith(pulling)).toMatchObject({ final: true });
  });

  test('keeps its time limit while the kubelet only says that it waits for its next try, as before Kubernetes 1.32', () => {
    const pulls = (reason: string, message: string): Problem | undefined =>
      problemWith({ containerStatuses: [{ ...container, state: { waiting: { reason, message } } }] });
    const noCredential = 'failed to resolve image: pull access denied: no basic auth credentials';
    const backOff = 'Back-off pulling image "registry.example/app"';
    expect(pulls('ErrImagePull', noCredential)).toMatchObject({ final: false, lookAgainMs: 45 * seconds });
    now += seconds;
    expect(pulls('ImagePullBackOff', backOff)).toMatchObject({ final: false, lookAgainMs: 44 * seconds });
    now += 43 * seconds;
    expect(pulls('ImagePullBackOff', backOff)).toMatchObject({ final: false, lookAgainMs: seconds });
    now += seconds;
    expect(pulls('ImagePullBackOff', backOff)).toMatchObject({ reason: 'ImagePull', final: true, byTime: true });
  });

  test('has the short time limit for a back-off that follows another error', () => {
    problemWith(pulling);
    now += 9 * seconds;
    const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "registry.example/app"' };
    expect(problemWith({ containerStatuses: [{ ...container, state: { waiting } }] })).toMatchObject({ final: true, byTime: true });
  });

  test('is final after the time limit also if very many pods have one', () => {
    for (let at = 0; at < 2_000; at += 1) putPod(`a-${at}`, pulling);
    problems();
    now += 9 * seconds;
    expect(problems().every((problem) => problem?.final)).toBe(true);
  });
});

describe('the problem that an instance has now', () => {
  const expectations = { startSeconds: 60 };

  /** What the API server says when it has that in place of the pod which the cache has, and whose patience has ended. */
  async function problemNow(live: Partial<Stored<Pod>> | undefined): Promise<Problem | undefined> {
    problemWith(pulling);
    now += 9 * seconds;
    const known = podInstances(context).of('s', 'p', () => expectations)[0];
    expect(known?.problem).toMatchObject({ final: true, byTime: true });
    const cached = pods.get('s', 'a-0');
    const answer = live === undefined || cached === undefined ? undefined : { ...cached, ...live };
    const get = (type: unknown, ns: string, name: string) =>
      Promise.resolve(type === podType && ns === 's' && name === 'a-0' ? answer : undefined);
    const seam = podInstances({ ...context, cluster: { get } } as unknown as Context);
    return known === undefined ? undefined : seam.problemNow('s', known, expectations);
  }

  test('is that of its pod as the API server has it, by the time since the cache has shown it', async () => {
    expect(await problemNow({})).toMatchObject({ reason: 'ImagePull', final: true, byTime: true });
  });

  test.each([
    ['became ready', { status: serving }],
    ['is gone', undefined],
    ['has a successor of its name', { metadata: { name: 'a-0', namespace: 's', uid: 'next', resourceVersion: '9' } }],
  ])('is none when it %s', async (_, live) => {
    expect(await problemNow(live)).toBeUndefined();
  });
});

describe('a pod that its node has ended', () => {
  const instance = (uid: string, status: NonNullable<Pod['status']>): Stored<Pod> =>
    asStored<Pod>({
      metadata: { name: 'a-0', namespace: 's', uid, resourceVersion: '1', labels: { [labels.guid]: 'p', [labels.appGuid]: 'a' } },
      status,
    });
  const seen = (pod: Stored<Pod>): void => void watchInstancesOfApps().keys(pod, context.stores);
  const uids = (): string[] => podsOfApp(context.stores, 's/a').map(({ metadata }) => metadata.uid);

  beforeEach(() => pods.addIndex(instancesByApp.name, instancesByApp.of));

  test('is still known for the record of events when the next one has its name', () => {
    seen(instance('first', { phase: 'Running' }));
    seen(instance('first', { phase: 'Failed', reason: 'Evicted' }));
    pods.put(instance('second', { phase: 'Pending' }));
    expect(uids()).toEqual(['second', 'first']);
  });

  test('is there once while it exists, and only the last five are kept', () => {
    for (const uid of ['1', '2', '3', '4', '5', '6']) seen(instance(uid, { phase: 'Failed' }));
    pods.put(instance('6', { phase: 'Failed' }));
    expect(uids()).toEqual(['6', '2', '3', '4', '5']);
  });
});

describe('an instance that runs again, and whose readiness check fails', () => {
  const readiness = { port: 8080, failsAfterSeconds: 15 };
  const state = { running: { startedAt: '2030-01-01T01:00:00Z' } };
  const conditions = [{ type: 'Ready', status: 'False' as const, lastTransitionTime: '2030-01-01T02:00:00Z' }];
  const event = (time: string, message: string) => ({
    metadata: { name: time, namespace: 's' },
    involvedObject: {},
    reason: 'Unhealthy',
    message,
    lastTimestamp: time,
  });
  const before = event('2030-01-01T00:59:00Z', 'Startup probe failed: of the run before');
  const present = event('2030-01-01T02:30:00Z', 'Readiness probe failed: of this run');

  /** With what the cluster has of it: Events, and the log of each run. */
  function seamAndInstance(items: object[]) {
    now += 3 * hour;
    putPod('a-0', { conditions, containerStatuses: [{ ...container, containerID: 'x', started: true, restartCount: 1, state }] });
    const logs = (_ns: string, _pod: string, { previous }: { previous: boolean }) =>
      Promise.resolve([Buffer.from(previous ? 'of the run before\n' : 'of this run\n')]);
    const cluster = { logs, list: () => Promise.resolve({ items }) };
    const seam = podInstances({ ...context, cluster, signal: new AbortController().signal } as unknown as Context);
    const [instance] = seam.of('s', 'p', () => ({ startSeconds: 60, port: 8080, readiness }));
    if (instance === undefined) throw new Error('There is no instance.');
    return { seam, instance };
  }

  test('has the last check and the lines of this run', async () => {
    const { seam, instance } = seamAndInstance([before, present]);
    expect(await seam.lastCheck('s', instance)).toMatchObject({ message: 'of this run' });
    expect(await seam.logEnds('s', instance)).toMatchObject({ tail: ['of this run'] });
  });

  test('has no check of the run before, nor of its own start', async () => {
    const { seam, instance } = seamAndInstance([before]);
    const starting = seamAndInstance([event('2030-01-01T01:00:20Z', 'Startup probe failed: dial tcp: connection refused')]);
    expect(await starting.seam.lastCheck('s', starting.instance)).toBeUndefined();
    expect(await seam.lastCheck('s', instance)).toBeUndefined();
  });
});

describe('the log of an instance', () => {
  afterEach(() => vi.restoreAllMocks());

  test('that the kubelet does not send within its time limit is replaced by the last lines of its container', async () => {
    const limit = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
    const logs = (_ns: string, _pod: string, { signal }: { signal: AbortSignal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    const round = { ...context, signal: new AbortController().signal, cluster: { logs }, log: { debug: () => undefined } };
    const terminated = { exitCode: 3, reason: 'Error', message: 'no database\n', startedAt: '', finishedAt: '' };
    putPod('a-0', { containerStatuses: [{ ...container, containerID: 'x', state: { terminated } }] });
    const seam = podInstances(round as unknown as Context);
    const [instance] = seam.of('s', 'p', () => ({ startSeconds: 60 }));
    if (instance === undefined) throw new Error('There is no instance.');
    const ends = seam.logEnds('s', instance);
    limit.abort();
    expect(await ends).toMatchObject({ tail: ['no database'] });
    expect(timeout).toHaveBeenCalledExactlyOnceWith(5 * seconds);
  });

  test('and the cause are those of the container that failed, a sidecar or the app, and not of another one', async () => {
    const ended = { terminated: { exitCode: 127, reason: 'Error', startedAt: '', finishedAt: '2030-01-01T00:00:00Z' } };
    const running = { running: { startedAt: '2030-01-01T00:00:00Z' } };
    const sidecar = { ...container, name: 'sidecar-0-proxy-s' };
    const app = { ...container, containerID: 'x' };
    const ran = { ...sidecar, containerID: 'y' };
    const lines: Record<string, string> = { application: 'page not found', [sidecar.name]: 'I end' };
    const logs = (_ns: string, _pod: string, { container: read }: { container: string }) =>
      Promise.resolve([Buffer.from(`${lines[read] ?? ''}\n`)]);
    const seam = podInstances({ ...context, signal: new AbortController().signal, cluster: { logs } } as unknown as Context);
    const toldWith = async (status: NonNullable<Pod['status']>): Promise<[lines: readonly string[], cause: string]> => {
      putPod('a-0', status);
      const [instance] = seam.of('s', 'p', () => ({ startSeconds: 60 }));
      if (instance?.problem === undefined) throw new Error('There is no problem.');
      const log = await seam.logEnds('s', instance);
      return [log.tail, withLines(instance.problem, log, { startSeconds: 60 }).cause];
    };
    const started = { ...app, started: true, state: running };
    const ofSidecar = { containerStatuses: [started], initContainerStatuses: [{ ...ran, state: ended }] };
    expect(await toldWith(ofSidecar)).toEqual([['I end'], 'exit-code']);
    lines[sidecar.name] = 'sh: 1: nope: not found';
    expect(await toldWith(ofSidecar)).toEqual([['sh: 1: nope: not found'], 'command-not-found']);
    const ofApp = { containerStatuses: [{ ...app, state: ended }], initContainerStatuses: [{ ...ran, state: running }] };
    expect((await toldWith(ofApp))[0]).toEqual(['page not found']);
    const pulling = { waiting: { reason: 'ErrImagePull', message: 'connection reset' } };
    const neverRan = { containerStatuses: [started], initContainerStatuses: [{ ...sidecar, state: pulling }] };
    expect((await toldWith(neverRan))[0]).toEqual([]);
  });
});
