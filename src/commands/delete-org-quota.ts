import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  deleted: boolean;
}

export default class DeleteOrgQuota extends KfCommand<Result> {
  static override summary = 'delete a quota of orgs';
  static override changes = true;
  static override examples = ['kf delete-org-quota small', 'kf delete-org-quota small -f'];
  static override aliases = ['delete-quota'];
  static override seeAlso = ['org-quotas', 'set-org-quota'];
  static override args = { QUOTA: requiredArg('name of the quota') };
  static override flags = { force: forceFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeleteOrgQuota);
    const name = args.QUOTA;
    const [session, { deleteQuota, ofOrgs }] = await this.inCluster(import('../lib/ops/tenancy/quotas.ts'));
    if (!flags.force && !(await this.confirm(`Really delete the org quota ${name}?`))) {
      this.print([line(`Organization quota '${name}' has not been deleted.`)]);
      return { name, deleted: false };
    }
    this.say`Deleting org quota ${name} as ${session.user}...`;
    const deleted = await deleteQuota(session, ofOrgs(session), name);
    if (!deleted) this.warn(`Organization quota with name '${name}' not found.`);
    this.ok();
    return { name, deleted };
  }
}
