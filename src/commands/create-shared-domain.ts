import * as Flags from '@oclif/core/flags';
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
  static override examples = ['kf create-shared-domain shop.example.com', 'kf create-shared-domain apps.internal --internal'];
  static override seeAlso = ['create-route', 'delete-shared-domain', 'domains'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = {
    internal: Flags.boolean({ summary: 'for apps only: its names lead to instances; the domain is apps.internal' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateSharedDomain);
    const [session, { createSharedDomain }] = await this.inCluster(import('../lib/ops/routes/domains.ts'));
    this.announce`Creating shared domain ${args.DOMAIN}`;
    const domain = await createSharedDomain(session, args.DOMAIN, flags.internal);
    this.ok();
    this.print([line(`TIP: Domain '${domain.name}' is shared with all orgs. Run '${this.frame.bin} domains' to view available domains.`)]);
    return domain;
  }
}
