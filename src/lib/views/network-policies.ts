// `network-policies`.

import type { NetworkPolicySummary } from '../api/results.ts';
import { table, type Block } from './block.ts';

const header = ['source', 'destination', 'protocol', 'ports', 'destination space', 'destination org'];

/** cf prints the header also when there are none. */
export function renderNetworkPolicies(policies: readonly NetworkPolicySummary[]): Block[] {
  const rows = policies.map(({ source, destination, protocol, ports, destinationSpace, destinationOrg }) => [
    source,
    destination,
    protocol,
    ports,
    destinationSpace,
    destinationOrg,
  ]);
  return [table(header, rows)];
}
