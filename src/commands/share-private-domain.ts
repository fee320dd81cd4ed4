import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';

interface Result {
  name: string;
  org: string;
  /** False when the org could use the domain already. */
  changed: boolean;
}

export default class SharePrivateDomain extends KfCommand<Result> {
  static override summary = 'let another org use a private domain';
  static override changes = true;
  static override examples = ['kf share-private-domain other-org shop.example.com'];
  static override seeAlso = ['create-private-domain', 'domains', 'unshare-private-domain'];
  static override args = { ORG: requiredArg('org that may use the domain'), DOMAIN: requiredArg('private domain of another org') };

  async run(): Promise<Result> {
    const { args } = await this.parse(SharePrivateDomain);
    const [session, { sharePrivateDomain }] = await this.inCluster(import('../lib/ops/routes/private-domains.ts'));
    this.announce`Sharing domain ${args.DOMAIN} with org ${args.ORG}`;
    const changed = await sharePrivateDomain(session, args.ORG, args.DOMAIN);
    this.ok();
    return { name: args.DOMAIN, org: args.ORG, changed };
  }
}
