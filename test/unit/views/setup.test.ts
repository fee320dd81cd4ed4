import { describe, expect, it } from 'vitest';
import { layOut } from '../../../src/lib/output/layout.ts';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { renderRotation } from '../../../src/lib/views/rotation.ts';
import { networkWarnings, setupBlocks, type NetworkView, type SetupView } from '../../../src/lib/views/setup.ts';

const linesOf = (network: NetworkView): string[] => {
  const view: SetupView = {
    kubernetes: 'v1.36.3',
    version: '0.1.0',
    created: 0,
    changed: 0,
    unchanged: 109,
    removed: [],
    requests: { cpuMilli: 95, memoryMiB: 256 },
    reach: { url: 'http://apps.localhost', reachable: true },
    network,
    domain: 'apps.localhost',
    org: { name: 'default' },
    space: { name: 'default' },
    target: { org: { name: 'default' }, space: { name: 'oncall' } },
  };
  return layOut(setupBlocks(view), { ink: plainInk });
};

describe('the output of setup about the network', () => {
  it.each<[NetworkView, string]>([
    [{ policies: 'off' }, 'no policies'],
    [{ policies: 'on', enforced: true }, 'policies made and enforced'],
    [{ policies: 'on', enforced: false }, "policies made, but the cluster's network does not enforce them"],
    [{ policies: 'on' }, 'policies made; whether they are enforced is not known'],
  ])('%j: %s', (network, text) => {
    expect(linesOf(network)).toContain(`network:       ${text}`);
  });

  it('says what is targeted, which may be another space than that of setup', () => {
    const lines = linesOf({ policies: 'off' });
    expect(lines).toContain('space:         default');
    expect(lines).toContain('target:        org default / space oncall');
  });

  it('contains a warning if policies are not enforced, or if that is unknown', () => {
    expect(networkWarnings({ policies: 'on', enforced: true }, 'cf')).toEqual([]);
    expect(networkWarnings({ policies: 'off' }, 'cf')).toEqual([]);
    expect(networkWarnings({ policies: 'on', enforced: false }, 'cf')).toEqual([
      [
        "The cluster's network does not enforce NetworkPolicies: apps and builds can reach nodes, the API server and the apps of other spaces.",
        '   Install a network that does (Calico, Cilium), then: cf setup --network-policies=on',
      ].join('\n'),
    ]);
    expect(networkWarnings({ policies: 'on', message: 'no image' }, 'cf')).toEqual([
      [
        "Whether the cluster's network enforces NetworkPolicies could not be found out: no image.",
        '   If it does not, apps and builds can reach nodes, the API server and the apps of other spaces.',
        '   To check again: cf setup --network-policies=on',
      ].join('\n'),
    ]);
  });
});

it('a rotation is shown in rows as in cf', () => {
  const result = { key: 'new-id', previousKey: 'old-id', previousEnds: '2026-11-21T04:05:13.000Z', spaces: 3, leftOut: [] };
  expect(layOut(renderRotation(result), { ink: plainInk })).toEqual([
    'key:              new-id',
    'spaces renewed:   3',
    'previous key:     old-id, valid until 2026-11-21T04:05:13.000Z',
  ]);
});
