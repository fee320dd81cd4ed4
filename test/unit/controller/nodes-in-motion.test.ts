import { describe, expect, test } from 'vitest';
import { lostSince, nodesInMotion } from '../../../src/controller/instances/nodes.ts';
import type { Stores } from '../../../src/controller/runtime/reconciler.ts';
import type { Node } from '../../../src/lib/api/core.ts';

const at = '2026-11-21T10:00:00Z';
const changed = Date.parse(at);

interface NodeParts {
  /** Null: the node does not say when it changed. */
  since?: string | null;
  ready: 'True' | 'False' | 'Unknown';
  taint?: string;
  cordoned?: boolean;
}

function nodes(...parts: NodeParts[]): Stores {
  const list = parts.map(({ ready, since = at, taint, cordoned }, index): Node => ({
    metadata: { name: `node-${index}` },
    spec: {
      ...(cordoned === true ? { unschedulable: true } : {}),
      ...(taint === undefined ? {} : { taints: [{ key: taint, effect: 'NoSchedule' }] }),
    },
    status: { conditions: [{ type: 'Ready', status: ready, ...(since === null ? {} : { lastTransitionTime: since }) }] },
  }));
  const get = (_ns: undefined, name: string): Node | undefined => list.find(({ metadata }) => metadata.name === name);
  return { of: () => ({ list: () => list, get }) } as unknown as Stores;
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

describe('since when a node is silent', () => {
  test.each<[string, NodeParts, number | undefined]>([
    ['one that answers is not', { ready: 'True' }, undefined],
    ['one that does not answer is since that changed', { ready: 'Unknown' }, changed],
    ['one that does not say when it changed counts as one that answers', { ready: 'Unknown', since: null }, undefined],
    ['so does one whose time nobody can read', { ready: 'Unknown', since: 'soon' }, undefined],
  ])('%s', (_, node, expected) => {
    expect(lostSince(nodes(node), 'node-0')).toBe(expected);
  });
});
