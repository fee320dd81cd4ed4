import { beforeEach, expect, test } from 'vitest';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { statefulSetType } from '../../../src/lib/api/core.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import type { OpEvent } from '../../../src/lib/events.ts';
import { restartDirectly } from '../../../src/lib/ops/apps/direct-scaling.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 'space';
let cluster: MemoryCluster;
let app: Stored<CFApp>;
let reported: OpEvent[];
/** Each pod that was deleted, with the number of pods that were ready then. */
let ended: string[];
/** Pods that do not become ready again. */
let failing: Set<string>;

const isReady = ({ status }: Pod): boolean => status?.conditions?.[0]?.status === 'True';
const podOf = (process: string, index: number, ready: boolean): Pod => ({
  metadata: {
    name: `${process}-${String(index)}`,
    namespace: ns,
    labels: { [labels.appGuid]: 'app', [labels.guid]: process, [labels.podIndex]: String(index) },
  },
  status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
});

async function addProcess(name: string, ready: readonly boolean[]): Promise<void> {
  const marks = { [labels.appGuid]: 'app', [labels.guid]: name };
  const healthCheck = { type: 'port' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
  await cluster.create(kinds.process, {
    metadata: { name, namespace: ns, labels: marks },
    spec: { appRef: { name: 'app' }, processType: name, desiredInstances: ready.length, memoryMB: 64, diskQuotaMB: 64, healthCheck },
  });
  await cluster.create(statefulSetType, {
    metadata: { name, namespace: ns, labels: marks },
    spec: { replicas: ready.length, selector: {}, template: { spec: { containers: [] } } },
  });
  for (const [index, isUp] of ready.entries()) await cluster.create(podType, podOf(name, index, isUp));
}

const session = (env: Record<string, string> = {}): SpaceSession =>
  ({
    cluster,
    space: { guid: ns, name: 'space' },
    signal: new AbortController().signal,
    report: (event: OpEvent) => void reported.push(event),
    bin: 'kf',
    env,
  }) as unknown as SpaceSession;

beforeEach(async () => {
  cluster = new MemoryCluster();
  reported = [];
  ended = [];
  failing = new Set();
  app = await cluster.create(kinds.app, {
    metadata: { name: 'app', namespace: ns, annotations: { [annotations.deployId]: 'change' } },
    spec: { displayName: 'shop', desiredState: 'STARTED', lifecycle: { type: 'buildpack', data: { stack: '' } } },
  });
  cluster.intercept = (verb, type, name) => {
    if (verb !== 'delete' || type.plural !== 'pods') return;
    ended.push(`${name} of ${String(cluster.all(podType).filter(isReady).length)}`);
    const [process = '', index] = name.split('-');
    const successor = podOf(process, Number(index), !failing.has(name));
    setTimeout(() => {
      // A deletion that was interrupted may not have reached the API server.
      if (cluster.peek(podType, ns, name) === undefined) void cluster.create(podType, successor);
    }, 10);
  };
});

test('one instance ends at a time, of all processes: the highest index first, and the next one when all are ready again', async () => {
  await addProcess(
    'web',
    Array.from({ length: 11 }, () => true),
  );
  await addProcess('worker', [true, true]);
  expect(await restartDirectly(session(), app)).toBe(true);
  const web = Array.from({ length: 11 }, (_, index) => `web-${String(10 - index)} of 13`);
  expect(ended).toEqual([...web, 'worker-1 of 13', 'worker-0 of 13']);
  expect(reported.map(({ type }) => type)).not.toContain('ending-only-instance');
});

test('instances that do not serve end before those that do', async () => {
  await addProcess('web', [false, true, false]);
  expect(await restartDirectly(session(), app)).toBe(true);
  expect(ended).toEqual(['web-0 of 1', 'web-2 of 1', 'web-1 of 3']);
});

test('an instance that does not become ready again keeps the others, and the error says so', async () => {
  await addProcess('web', [true, true]);
  failing.add('web-1');
  await expect(restartDirectly(session({ CF_STARTUP_TIMEOUT: '0.005' }), app)).rejects.toMatchObject({
    code: 'timeout',
    message: 'Timed out after 300 ms waiting for 2 ready instances.',
    hints: [
      "The other instances of app 'shop' run on, and what has changed waits for the controller:",
      'kf app shop',
      'kf logs shop --recent',
    ],
  });
  expect(ended).toEqual(['web-1 of 2']);
});

test('an instance that is missing or ending keeps the others, and one that has none is not called restarted', async () => {
  await addProcess('web', [true, true]);
  await cluster.mergePatch(statefulSetType, ns, 'web', { spec: { replicas: 3 } });
  const short = session({ CF_STARTUP_TIMEOUT: '0.005' });
  await expect(restartDirectly(short, app)).rejects.toMatchObject({ code: 'timeout' });
  expect(ended).toEqual([]);
  const { intercept } = cluster;
  cluster.intercept = () => undefined;
  for (const name of ['web-0', 'web-1']) await cluster.delete(podType, ns, name);
  cluster.intercept = intercept;
  await expect(restartDirectly(short, app)).rejects.toMatchObject({ code: 'timeout' });
  expect(reported.map(({ type }) => type)).not.toContain('acted-directly');
});

test.each([
  ['stops the app', { spec: { desiredState: 'STOPPED' } }],
  ['changes the app', { metadata: { annotations: { [annotations.deployId]: 'later' } } }],
])('a command that %s while an instance starts ends the wait at once', async (_what, patch) => {
  await addProcess('web', [true, true]);
  failing.add('web-1');
  setTimeout(() => void cluster.mergePatch(kinds.app, ns, 'app', patch), 100);
  const began = performance.now();
  await expect(restartDirectly(session(), app)).rejects.toMatchObject({ code: 'conflict', hints: ['kf app shop'] });
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(ended).toEqual(['web-1 of 2']);
});

test('a controller that comes back while an instance starts does the rest at once', async () => {
  await addProcess('web', [true, true]);
  failing.add('web-1');
  const status = { deployment: { id: 'change', phase: 'Starting' } };
  setTimeout(() => void cluster.mergePatch(kinds.app, ns, 'app', { status }, { subresource: 'status' }), 100);
  expect(await restartDirectly(session(), app)).toBe('taken-up');
});

test('before the only instance of a process ends, the user is told', async () => {
  await addProcess('web', [true]);
  await addProcess('worker', [true]);
  expect(await restartDirectly(session(), app)).toBe(true);
  expect(reported.filter(({ type }) => type === 'ending-only-instance')).toEqual([
    { type: 'ending-only-instance', app: 'shop', process: 'web' },
    { type: 'ending-only-instance', app: 'shop', process: 'worker' },
  ]);
});

test.each<[string, Record<string, unknown>, string | RegExp]>([
  ['a controller that takes up the change', { status: { deployment: { id: 'change', phase: 'Starting' } } }, 'taken-up'],
  ['a later change of the app', { metadata: { annotations: { [annotations.deployId]: 'later' } } }, /has overtaken this one/],
])('after %s no other instance is ended', async (_what, patch, outcome) => {
  await addProcess('web', [true, true]);
  const { intercept } = cluster;
  cluster.intercept = (verb, type, name) => {
    void intercept(verb, type, name);
    if (verb === 'delete' && type.plural === 'pods')
      void cluster.mergePatch(kinds.app, ns, 'app', patch, 'status' in patch ? { subresource: 'status' } : {});
  };
  const restarted = restartDirectly(session(), app);
  if (typeof outcome === 'string') expect(await restarted).toBe(outcome);
  else await expect(restarted).rejects.toThrow(outcome);
  expect(ended).toEqual(['web-1 of 2']);
});
