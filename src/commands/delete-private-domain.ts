import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  deleted: boolean;
  /** How many routes were deleted with it. */
  routes: number;
}

export default class DeletePrivateDomain extends KfCommand<Result> {
  static override summary = 'delete a domain of one org';
  static override changes = true;
  static override examples = ['kf delete-private-domain shop.example.com', 'kf delete-private-domain shop.example.com -f'];
  static override aliases = ['delete-domain'];
  static override seeAlso = ['create-private-domain', 'delete-shared-domain', 'domains', 'unshare-private-domain'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = { force: forceFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeletePrivateDomain);
    const name = args.DOMAIN;
    const [session, { deletePrivateDomain }] = await this.inCluster(import('../lib/ops/routes/private-domains.ts'));
    this.say`Deleting the private domain will remove associated routes which will make apps with this domain unreachable.`;
    if (!flags.force && !(await this.confirm(`Really delete the private domain ${name}?`))) {
      this.print([line(`Domain '${name}' has not been deleted.`)]);
      return { name, deleted: false, routes: 0 };
    }
    this.announce`Deleting private domain ${name}`;
    const result = await deletePrivateDomain(session, name);
    if (!result.deleted) this.warn(`Domain '${name}' does not exist.`);
    this.ok();
    this.print([line(`TIP: Run '${this.frame.bin} domains' to view available domains.`)]);
    return { name, ...result };
  }
}
