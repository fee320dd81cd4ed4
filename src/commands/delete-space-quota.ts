import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  deleted: boolean;
}

export default class DeleteSpaceQuota extends KfCommand<Result> {
  static override summary = 'delete a quota of spaces';
  static override changes = true;
  static override examples = ['kf delete-space-quota small', 'kf delete-space-quota small -f'];
  static override seeAlso = ['space-quotas', 'set-space-quota'];
  static override args = { QUOTA: requiredArg('name of the quota') };
  static override flags = { force: forceFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeleteSpaceQuota);
    const name = args.QUOTA;
    const [session, { deleteQuota, ofSpaces }] = await this.inOrg(import('../lib/ops/tenancy/quotas.ts'));
    if (!flags.force && !(await this.confirm(`Really delete the space quota ${name} in org ${session.org.name}?`))) {
      this.print([line(`Space quota '${name}' has not been deleted.`)]);
      return { name, deleted: false };
    }
    this.say`Deleting space quota ${name} for org ${session.org.name} as ${session.user}...`;
    const deleted = await deleteQuota(session, ofSpaces(session), name);
    if (!deleted) this.warn(`Space quota with name '${name}' not found.`);
    this.ok();
    return { name, deleted };
  }
}
