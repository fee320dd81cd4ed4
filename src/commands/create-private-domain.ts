import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  guid: string;
  org: string;
}

export default class CreatePrivateDomain extends KfCommand<Result> {
  static override summary = 'create a domain of one org';
  static override changes = true;
  static override examples = ['kf create-private-domain example-org shop.example.com'];
  static override aliases = ['create-domain'];
  static override seeAlso = ['create-shared-domain', 'domains', 'share-private-domain'];
  static override args = { ORG: requiredArg('org that the domain belongs to'), DOMAIN: requiredArg('domain') };

  async run(): Promise<Result> {
    const { args } = await this.parse(CreatePrivateDomain);
    const [session, { createPrivateDomain }] = await this.inCluster(import('../lib/ops/routes/private-domains.ts'));
    this.announce`Creating private domain ${args.DOMAIN} for org ${args.ORG}`;
    const domain = await createPrivateDomain(session, args.ORG, args.DOMAIN);
    this.ok();
    const { bin } = this.frame;
    this.print([
      line(
        `TIP: Domain '${domain.name}' is a private domain. Run '${bin} share-private-domain' to share this domain with a different org.`,
      ),
    ]);
    return { ...domain, org: args.ORG };
  }
}
