import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg, switchFlag } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  guid: string;
  /** False when the domain existed and got the settings that are given. */
  created: boolean;
}

export default class CreateSharedDomain extends KfCommand<Result> {
  static override summary = 'create a domain that all orgs share';
  static override changes = true;
  static override examples = [
    'kf create-shared-domain shop.example.com',
    'kf create-shared-domain apps.internal --internal',
    'kf create-shared-domain shop.example.com --http-redirect on',
  ];
  static override seeAlso = ['create-route', 'delete-shared-domain', 'domains'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = {
    'http-redirect': switchFlag(
      'http-redirect',
      'redirect http to https (on), or answer it (off, the default); also of a domain that exists',
    ),
    internal: Flags.boolean({ summary: 'for apps only: its names lead to instances; the domain is apps.internal' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateSharedDomain);
    const [session, { createSharedDomain }] = await this.inCluster(import('../lib/ops/routes/domains.ts'));
    this.announce`Creating shared domain ${args.DOMAIN}`;
    const domain = await createSharedDomain(session, args.DOMAIN, {
      internal: flags.internal,
      httpRedirect: flags['http-redirect'],
    });
    if (!domain.created) this.terminal.err(`Domain '${domain.name}' exists already, and has the settings that were given.`);
    this.ok();
    this.print([line(`TIP: Domain '${domain.name}' is shared with all orgs. Run '${this.frame.bin} domains' to view available domains.`)]);
    return domain;
  }
}
