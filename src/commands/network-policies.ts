import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import type { NetworkPolicySummary } from '../lib/api/results.ts';
import { renderNetworkPolicies } from '../lib/views/network-policies.ts';

export default class NetworkPolicies extends KfCommand<NetworkPolicySummary[]> {
  static override summary = 'list which apps may connect to which';
  static override examples = ['kf network-policies', 'kf network-policies --source example-app'];
  static override seeAlso = ['add-network-policy', 'apps', 'remove-network-policy'];
  static override flags = { source: Flags.string({ summary: 'only those of this app', helpValue: 'SOURCE_APP' }) };

  async run(): Promise<NetworkPolicySummary[]> {
    const { flags } = await this.parse(NetworkPolicies);
    const [session, { listNetworkPolicies }] = await this.inSpace(import('../lib/ops/apps/network-policies.ts'));
    if (flags.source === undefined) this.announceList`Listing network policies`;
    else this.announceList`Listing network policies of app ${flags.source}`;
    const policies = await listNetworkPolicies(session, flags.source);
    this.print(renderNetworkPolicies(policies));
    return policies;
  }
}
