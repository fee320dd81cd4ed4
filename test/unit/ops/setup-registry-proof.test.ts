import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Node } from '../../../src/lib/api/core.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { judgePull, provePull } from '../../../src/lib/ops/install/proofs.ts';
import { nodesOfEachClass } from '../../../src/lib/ops/install/registry-proof.ts';

const ready = [{ type: 'Ready', status: 'True' }];
const nodeInfo = {
  architecture: 'amd64',
  kubeletVersion: '',
  containerRuntimeVersion: 'containerd://2.1',
  kernelVersion: '',
  osImage: 'Debian 13',
  operatingSystem: 'linux',
};
const node = (name: string, info: Partial<typeof nodeInfo> = {}, spec: Node['spec'] = {}, conditions = ready): Stored<Node> =>
  ({
    metadata: { name, uid: name, resourceVersion: '1' },
    spec,
    status: { conditions, nodeInfo: { ...nodeInfo, ...info } },
  }) as Stored<Node>;

test('one node of each class pulls the test image, by runtime, system and architecture', () => {
  const nodes = [
    node('a'),
    node('b'),
    node('arm', { architecture: 'arm64' }),
    node('crio', { containerRuntimeVersion: 'cri-o://1.36' }),
    node('flat', { osImage: 'Flatcar' }),
  ];
  expect(nodesOfEachClass(nodes)).toEqual(['a', 'arm', 'crio', 'flat']);
});

test('nodes that accept no pods do not count', () => {
  const nodes = [
    node('away', {}, {}, [{ type: 'Ready', status: 'Unknown' }]),
    node('cordoned', {}, { unschedulable: true }),
    node('control-plane', {}, { taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }] }),
    node('windows', { operatingSystem: 'windows' }),
    node('last', {}, { taints: [{ key: 'spot', effect: 'PreferNoSchedule' }] }),
  ];
  expect(nodesOfEachClass(nodes)).toEqual(['last']);
});

test("a failed pull is reported with the kubelet's text, an unscheduled pod with the scheduler's", () => {
  const state = (waiting: object) => ({ status: { containerStatuses: [{ name: 'pull', state: { waiting } }] } }) as never;
  expect(judgePull(state({ reason: 'ErrImagePull', message: 'connection refused' }))).toEqual({
    pulled: false,
    failure: 'ErrImagePull: connection refused',
  });
  expect(judgePull(state({ reason: 'CreateContainerError', message: 'no command' }))).toEqual({ pulled: true });
  const unplaced = [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }];
  expect(judgePull({ status: { conditions: unplaced } } as never)).toEqual({ pulled: false, failure: '0/1 nodes are available' });
  expect(judgePull(undefined)).toEqual({ pulled: false });
});

describe('the pull test', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A node that refuses the first pods for ever, as a kubelet does for ten seconds and more. */
  function nodeThatRefuses(count: number) {
    const [created, deleted]: [string[], string[]] = [[], []];
    const stateOf = (name: string) =>
      created.indexOf(name) < count
        ? { waiting: { reason: 'ErrImagePull', message: 'no basic auth credentials' } }
        : { waiting: { reason: 'RunContainerError', message: 'no such file' } };
    const cluster = {
      create: (_: unknown, { metadata }: { metadata: { name: string } }) => Promise.resolve(created.push(metadata.name)),
      get: (_: unknown, __: string, name: string) => Promise.resolve({ status: { containerStatuses: [{ state: stateOf(name) }] } }),
      delete: (_: unknown, __: string, name: string) => Promise.resolve(deleted.push(name) > 0),
    } as unknown as Cluster;
    return { cluster, created, deleted };
  }

  test('is made again with another pod when the kubelet had not read the pull secret in time', async () => {
    const { cluster, created, deleted } = nodeThatRefuses(1);
    const proved = provePull(cluster, { image: 'localhost:32500/x@sha256:1', pullSecret: 's', node: 'one' });
    await vi.advanceTimersByTimeAsync(5_000);
    await proved;
    expect([created.length, deleted]).toEqual([2, created]);
  });

  test("fails with the kubelet's text when the node refuses for more than ten seconds", async () => {
    const { cluster, created, deleted } = nodeThatRefuses(Infinity);
    const proved = provePull(cluster, { image: 'localhost:32500/x@sha256:1', pullSecret: 's', node: 'one' });
    const ended = expect(proved).rejects.toThrow('Node one could not pull from the registry that setup installed: ErrImagePull: no basic');
    await vi.advanceTimersByTimeAsync(15_000);
    await ended;
    expect([created.length, deleted]).toEqual([6, created]);
  });
});
