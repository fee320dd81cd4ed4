import { destinationFlags, portRangeFlag, protocolFlag } from '../flags.ts';
import { line } from '../lib/views/block.ts';
import { NetworkPolicyCommand, policyArgs } from '../network-policy-command.ts';

interface Result {
  source: string;
  destination: string;
  removed: boolean;
}

export default class RemoveNetworkPolicy extends NetworkPolicyCommand<Result> {
  static override summary = 'forbid connections from one app to another again';
  static override changes = true;
  static override examples = [
    'kf remove-network-policy frontend backend --protocol tcp --port 8081',
    'kf remove-network-policy frontend backend -s backend-space -o backend-org --protocol tcp --port 8080-8090',
  ];
  static override seeAlso = ['add-network-policy', 'apps', 'network-policies'];
  static override args = policyArgs;
  static override flags = {
    port: portRangeFlag('port or range of ports of the policy')({ required: true }),
    protocol: protocolFlag('tcp or udp')({ required: true }),
    ...destinationFlags,
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(RemoveNetworkPolicy);
    const { port, protocol, 'destination-org': org, 'destination-space': space } = flags;
    const named = { source: args.SOURCE_APP, destination: args.DESTINATION_APP, org, space };
    this.assertSpaceNamed(named);
    const [session, { removeNetworkPolicy }] = await this.inSpace(import('../lib/ops/apps/network-policies.ts'));
    const ends = await this.findPolicyEnds(session, 'Removing', named);
    const { removed, leftAtDestination } = await removeNetworkPolicy(session, ends, { protocol, ...port });
    if (!removed) this.print([line('Policy does not exist.')]);
    if (leftAtDestination)
      this.warn(`The space of app '${named.destination}' still has its half, which you may not delete; the connection is refused.`);
    this.ok();
    return { source: named.source, destination: named.destination, removed };
  }
}
