import { describe, expect, test } from 'vitest';
import type { IndexedInstance } from '../../../src/lib/api/app.ts';
import { instanceOf } from '../../../src/controller/instances/pod-state.ts';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import { labels } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp, CFProcess } from '../../../src/lib/api/types.generated.ts';
import { LiveInstances } from '../../../src/lib/ops/instances/live.ts';
import { podsByVersion, withPods } from '../../../src/lib/ops/instances/pods.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { asStored } from '../../support/stored.ts';

const process = { metadata: { name: 'web' } } as Stored<CFProcess>;
const told = (index: number, pod?: string): IndexedInstance => ({
  index,
  state: 'RUNNING',
  ready: true,
  ...(pod === undefined ? {} : { pod }),
});
const pod = (name: string, index: number, more: { ready?: boolean; ending?: boolean; of?: string } = {}): Stored<Pod> =>
  asStored<Pod>({
    metadata: {
      name,
      labels: { [labels.guid]: more.of ?? 'web', [labels.podIndex]: String(index) },
      ...(more.ending === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    status: { conditions: [{ type: 'Ready', status: more.ready === true ? 'True' : 'False' }] },
  });

test('a reported instance stays as long as its pod exists', () => {
  expect(withPods([told(0, 'a')], process, [pod('a', 0)], 1)).toEqual([told(0, 'a')]);
});

test('a wanted instance without a pod is down, and one that is not wanted is left out', () => {
  expect(withPods([told(0, 'a'), told(1, 'b')], process, [pod('b', 1, { ending: true })], 1)).toEqual([{ index: 0, state: 'DOWN' }]);
});

test('pods that are not in the status count as instances, ready or starting', () => {
  const seen = withPods(
    [{ index: 0, state: 'DOWN' }],
    process,
    [pod('a', 0, { ready: true }), pod('b', 1), pod('c', 0, { of: 'worker' })],
    2,
  );
  expect(seen).toMatchObject([
    { index: 0, state: 'RUNNING', pod: 'a' },
    { index: 1, state: 'STARTING', pod: 'b' },
  ]);
});

test.each<[string, boolean, string | undefined, string]>([
  ['ready', true, '2026-01-01T00:00:05Z', '2026-01-01T00:00:09Z'],
  ['starting', false, '2026-01-01T00:00:05Z', '2026-01-01T00:00:05Z'],
  ['about to start', false, undefined, '2026-01-01T00:00:02Z'],
])('an instance that is not in the status has the time that the status will have: one that is %s', (_state, ready, startedAt, since) => {
  const made = pod('a', 0, { ready });
  const state = startedAt === undefined ? {} : { running: { startedAt } };
  const status = {
    conditions: [
      { type: 'PodScheduled', status: 'True' as const, lastTransitionTime: '2026-01-01T00:00:02Z' },
      { type: 'Ready', status: ready ? ('True' as const) : ('False' as const), lastTransitionTime: '2026-01-01T00:00:09Z' },
    ],
    containerStatuses: [{ name: 'application', ready, restartCount: 0, image: '', imageID: '', state }],
  };
  const facts = { now: Date.parse('2026-01-01T00:00:10Z'), expectations: { startSeconds: 60 }, firstSeen: () => 0, wasSeen: () => false };
  const seen = { ...made, status };
  expect(withPods([], process, [seen], 1)).toMatchObject([{ index: 0, timestamp: since }]);
  expect(instanceOf(seen, facts)).toMatchObject({ index: 0, since });
});

describe('an instance that the status told before', () => {
  const at = (second: number): string => `2026-01-01T00:00:0${String(second)}Z`;
  const was = (second: number, more: Partial<IndexedInstance> = {}): IndexedInstance => ({
    ...told(0, 'a'),
    timestamp: at(second),
    ...more,
  });
  const since = (second: number, ready: boolean, born = 1): Stored<Pod> => {
    const made = pod('a', 0, { ready });
    const conditions = [
      { type: 'PodScheduled', status: 'True' as const, lastTransitionTime: at(born) },
      { type: 'Ready', status: ready ? ('True' as const) : ('False' as const), lastTransitionTime: at(second) },
    ];
    const running = { name: 'application', ready, started: true, restartCount: 0, image: '', imageID: '', state: { running: { startedAt: at(born) } } }; // prettier-ignore
    return { ...made, metadata: { ...made.metadata, creationTimestamp: at(born) }, status: { conditions, containerStatuses: [running] } };
  };

  test.each<[string, IndexedInstance, Stored<Pod>, Partial<IndexedInstance>]>([
    [
      'a pod of that name that was made later, and is ready',
      was(2),
      since(8, true, 7),
      { state: 'RUNNING', ready: true, timestamp: at(8) },
    ],
    [
      'a pod of that name that was made later, and starts',
      was(2),
      since(8, false, 7),
      { state: 'STARTING', ready: false, timestamp: at(8) },
    ],
    ['a pod that was made after a failure', was(2, { cause: 'crash' }), since(8, true, 7), { state: 'RUNNING', timestamp: at(8) }],
    [
      'the same pod, ready since a failure',
      was(2, { state: 'CRASHED', cause: 'crash' }),
      since(8, true),
      { state: 'RUNNING', timestamp: at(8) },
    ],
    ['the same pod, ready again since', was(2), since(8, true), { state: 'RUNNING', timestamp: at(8) }],
  ])('is replaced by %s', (_what, told, live, shown) => {
    const [instance] = withPods([told], process, [live], 1);
    expect(instance).toMatchObject({ index: 0, pod: 'a', ...shown });
    expect(instance?.cause).toBeUndefined();
  });

  test.each<[string, IndexedInstance, Stored<Pod>]>([
    ['as the pod says', was(8), since(8, true)],
    ['later than the pod says', was(9, { state: 'CRASHED', ready: false }), since(8, false)],
    ['with a cause that the pod does not know', was(2, { state: 'DOWN', cause: 'node-lost' }), since(8, false)],
  ])('stays %s', (_what, told, live) => {
    expect(withPods([told], process, [live], 1)).toEqual([told]);
  });
});

test('two versions with the same index are one instance', () => {
  expect(withPods([told(0, 'new-0')], process, [pod('old-0', 0, { ready: true }), pod('new-0', 0)], 1)).toEqual([told(0, 'new-0')]);
});

test('an instance that the cluster refused keeps its reason', () => {
  const refused: IndexedInstance = { index: 0, state: 'DOWN', reason: 'QuotaExceeded' };
  expect(withPods([refused], process, [], 1)).toEqual([refused]);
});

test('living pods are told apart by version, the oldest version first', () => {
  const of = (name: string, version: string, creationTimestamp: string, ending = false): Stored<Pod> => {
    const made = pod(name, 0, { ending });
    return {
      ...made,
      metadata: { ...made.metadata, creationTimestamp, labels: { ...made.metadata.labels, [labels.generation]: version } },
    };
  };
  const pods = [
    of('new-0', 'a', '2026-01-01T00:00:02Z'),
    of('old-0', 'b', '2026-01-01T00:00:01Z'),
    // It was evicted, and made again after the canary.
    of('old-1', 'b', '2026-01-01T00:00:03Z'),
    of('ended', 'c', '2026-01-01T00:00:00Z', true),
    { ...pod('theirs', 0, { of: 'worker' }) },
  ];
  expect(podsByVersion(process, pods).map((version) => version.map(({ metadata }) => metadata.name))).toEqual([
    ['old-0', 'old-1'],
    ['new-0'],
  ]);
});

test('memory and CPU of an instance are those of its app and its sidecars together, as for a process', async () => {
  const limits = (memory: string) => ({ resources: { limits: { memory } } });
  const instance: Stored<Pod> = {
    ...pod('a', 0, { ready: true }),
    spec: {
      containers: [{ name: 'application', image: '', ...limits('96Mi') }],
      initContainers: [
        { name: 'sidecar-0-helper-s', image: '', ...limits('32Mi') },
        { name: 'launcher', image: '', ...limits('512Mi') },
      ],
    },
  };
  const usage = (name: string, cpu: string, memory: string) => ({ name, usage: { cpu, memory } });
  const metrics = { metadata: { name: 'a' }, containers: [usage('application', '1', '10Mi'), usage('sidecar-0-helper-s', '2', '4Mi')] };
  const list = ({ plural, group }: { plural: string; group: string }): Promise<{ items: unknown[] }> =>
    Promise.resolve({ items: group === 'metrics.k8s.io' ? [metrics] : plural === 'pods' ? [instance] : [] });
  const session = { cluster: { list }, space: { guid: 'space' } } as unknown as SpaceSession;
  const app = asStored<CFApp>({ metadata: { name: 'app' }, spec: { desiredState: 'STARTED' } } as CFApp);
  const web = asStored<CFProcess>({ metadata: { name: 'web' }, spec: { processType: 'web', desiredInstances: 1 } } as CFProcess);
  const live = await LiveInstances.read(session, app, { withPods: true });
  expect(live.of(web)).toMatchObject([{ index: 0, memoryMB: 128, cpu: 3, memoryBytes: 14 * 1024 ** 2 }]);
});
