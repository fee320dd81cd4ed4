import { expect, test } from 'vitest';
import type { Node } from '../../../src/lib/api/core.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { judgePull } from '../../../src/lib/ops/install/proofs.ts';
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
