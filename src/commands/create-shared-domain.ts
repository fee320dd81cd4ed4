import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  guid: string;
}

export default class CreateSharedDomain extends KfCommand<Result> {
  static override summary = 'create a domain that all orgs share';
  static override changes = true;
  static override examples = ['kf create-shared-domain shop.example.com'];
  static override seeAlso = ['create-route', 'delete-shared-domain', 'domains'];
  static override args = { DOMAIN: requiredArg('domain') };

  async run(): Promise<Result> {
    const { args } = await this.parse(CreateSharedDomain);
    const [session, { createSharedDomain }] = await this.inCluster(import('../lib/ops/routes/domains.ts'));
    this.announce`Creating shared domain ${args.DOMAIN}`;
    const domain = await createSharedDomain(session, args.DOMAIN);
    this.ok();
    this.print([line(`TIP: Domain '${domain.name}' is shared with all orgs. Run '${this.frame.bin} domains' to view available domains.`)]);
    return domain;
  }
}
