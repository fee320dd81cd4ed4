import { destinationFlags, portRangeFlag, protocolFlag } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { NetworkPolicyCommand, policyArgs } from '../network-policy-command.ts';

interface Result {
  source: string;
  destination: string;
  added: boolean;
}

/** What cf allows when neither protocol nor port is given. */
const usual = { protocol: 'tcp', port: 8080 } as const;

export default class AddNetworkPolicy extends NetworkPolicyCommand<Result> {
  static override summary = 'allow connections from one app to another';
  static override changes = true;
  static override examples = [
    'kf add-network-policy frontend backend --protocol tcp --port 8081',
    'kf add-network-policy frontend backend -s backend-space -o backend-org --protocol tcp --port 8080-8090',
  ];
  static override seeAlso = ['apps', 'network-policies', 'remove-network-policy'];
  static override args = policyArgs;
  static override flags = {
    port: portRangeFlag('port of the destination, or a range of ports; default 8080')(),
    protocol: protocolFlag('tcp or udp; default tcp')(),
    ...destinationFlags,
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(AddNetworkPolicy);
    const { port, protocol, 'destination-org': org, 'destination-space': space } = flags;
    if ((port === undefined) !== (protocol === undefined)) throw incorrectUsage('--protocol and --port flags must be specified together');
    const named = { source: args.SOURCE_APP, destination: args.DESTINATION_APP, org, space };
    this.assertSpaceNamed(named);
    const [session, { addNetworkPolicy, whyNotEnforced }] = await this.inSpace(import('../lib/ops/apps/network-policies.ts'));
    const ends = await this.findPolicyEnds(session, 'Adding', named);
    const ports = port === undefined || protocol === undefined ? usual : { protocol, ...port };
    const added = await addNetworkPolicy(session, ends, ports);
    const why = await whyNotEnforced(session);
    if (why !== undefined) this.warn(why);
    this.ok();
    return { source: named.source, destination: named.destination, added };
  }
}
