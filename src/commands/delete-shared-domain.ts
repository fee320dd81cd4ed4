import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  deleted: boolean;
  /** How many routes were deleted with it. */
  routes: number;
}

export default class DeleteSharedDomain extends KfCommand<Result> {
  static override summary = 'delete a domain and all routes on it';
  static override changes = true;
  static override examples = ['kf delete-shared-domain shop.example.com', 'kf delete-shared-domain shop.example.com -f'];
  static override seeAlso = ['create-shared-domain', 'domains'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = { force: forceFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeleteSharedDomain);
    const name = args.DOMAIN;
    const [session, { deleteSharedDomain }] = await this.inCluster(import('../lib/ops/routes/domains.ts'));
    this.say`This action impacts all orgs using this domain.`;
    this.say`Deleting the domain will remove associated routes which will make apps with this domain, in any org, unreachable.`;
    if (!flags.force && !(await this.confirm(`Really delete the shared domain ${name}?`))) {
      this.print([line(`'${name}' has not been deleted.`)]);
      return { name, deleted: false, routes: 0 };
    }
    this.announce`Deleting domain ${name}`;
    const result = await deleteSharedDomain(session, name);
    if (!result.deleted) this.warn(`Domain '${name}' does not exist.`);
    this.ok();
    return { name, ...result };
  }
}
