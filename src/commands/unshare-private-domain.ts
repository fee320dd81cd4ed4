import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  org: string;
  /** False when the domain was not shared with the org, or the question was answered with no. */
  changed: boolean;
}

export default class UnsharePrivateDomain extends KfCommand<Result> {
  static override summary = 'stop sharing a private domain';
  static override changes = true;
  static override examples = ['echo y | kf unshare-private-domain other-org shop.example.com'];
  static override seeAlso = ['delete-private-domain', 'domains', 'share-private-domain'];
  static override args = {
    ORG: requiredArg('org that may no longer use the domain'),
    DOMAIN: requiredArg('private domain of another org'),
  };
  static override flags = { force: forceFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(UnsharePrivateDomain);
    const { ORG: org, DOMAIN: name } = args;
    const [session, { unsharePrivateDomain }] = await this.inCluster(import('../lib/ops/routes/private-domains.ts'));
    this.say`Warning: org ${org} will no longer be able to access private domain ${name}`;
    if (!flags.force && !(await this.confirm(`Really unshare private domain ${name}?`))) {
      this.print([line(`Domain ${name} has not been unshared from organization ${org}`)]);
      return { name, org, changed: false };
    }
    this.announce`Unsharing domain ${name} from org ${org}`;
    const changed = await unsharePrivateDomain(session, org, name);
    this.ok();
    return { name, org, changed };
  }
}
