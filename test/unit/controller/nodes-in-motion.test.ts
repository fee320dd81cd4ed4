import { describe, expect, test } from 'vitest';
import { nodesInMotion } from '../../../src/controller/instances/nodes.ts';
import type { Stores } from '../../../src/controller/runtime/reconciler.ts';
import type { Node } from '../../../src/lib/api/core.ts';

const at = '2026-11-21T10:00:00Z';
const changed = Date.parse(at);

interface NodeParts {
  ready: 'True' | 'False' | 'Unknown';
  taint?: string;
  cordoned?: boolean;
}

function nodes(...parts: NodeParts[]): Stores {
  const list = parts.map(({ ready, taint, cordoned }, index): Node => ({
    metadata: { name: `node-${index}` },
    spec: {
      ...(cordoned === true ? { unschedulable: true } : {}),
      ...(taint === undefined ? {} : { taints: [{ key: taint, effect: 'NoSchedule' }] }),
    },
    status: { conditions: [{ type: 'Ready', status: ready, lastTransitionTime: at }] },
  }));
  return { of: () => ({ list: () => list }) } as unknown as Stores;
}

describe('the nodes that may take a pod soon', () => {
  test.each<[string, NodeParts, { away: string[]; until: number }]>([
    ['one that has been ready since then', { ready: 'True' }, { away: [], until: changed + 60_000 }],
    ['one that does not answer', { ready: 'Unknown' }, { away: ['node-0'], until: changed + 60_000 }],
    ['one whose kubelet says that it is not ready', { ready: 'False' }, { away: ['node-0'], until: changed + 60_000 }],
    [
      'one that came back and has its taint still',
      { ready: 'True', taint: 'node.kubernetes.io/unreachable' },
      { away: ['node-0'], until: changed + 60_000 },
    ],
    ['one with a taint of its operator', { ready: 'True', taint: 'dedicated' }, { away: [], until: changed + 60_000 }],
    ['one that takes no pods anyway', { ready: 'Unknown', cordoned: true }, { away: [], until: 0 }],
  ])('%s', (_, node, expected) => {
    expect(nodesInMotion(nodes(node))).toEqual(expected);
  });

  test('the last of several counts, and all that are not ready are named', () => {
    const stores = nodes({ ready: 'True' }, { ready: 'Unknown' }, { ready: 'False' });
    expect(nodesInMotion(stores)).toEqual({ away: ['node-1', 'node-2'], until: changed + 60_000 });
  });
});
