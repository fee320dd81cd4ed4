import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  deleted: boolean;
}

export default class DeleteOrg extends KfCommand<Result> {
  static override summary = 'delete an org with its spaces and apps';
  static override changes = true;
  static override examples = ['kf delete-org example-org', 'kf delete-org example-org -f'];
  static override seeAlso = ['create-org', 'delete-space', 'orgs'];
  static override args = { ORG: requiredArg('name of the org') };
  static override flags = { force: forceFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeleteOrg);
    const name = args.ORG;
    const [session, { deleteOrg }] = await this.inCluster(import('../lib/ops/tenancy/delete.ts'));
    const question = `Really delete the org ${name}, including its spaces, apps, service instances, routes, private domains and space-scoped service brokers?`;
    if (!flags.force && !(await this.confirm(question))) {
      this.print([line(`Organization '${name}' has not been deleted.`)]);
      return { name, deleted: false };
    }
    this.announce`Deleting org ${name}`;
    const { deleted, wasTargeted } = await deleteOrg(session, name);
    if (!deleted) this.warn(`Org '${name}' does not exist.`);
    this.ok();
    if (wasTargeted)
      this.print([line(`TIP: No org or space targeted, use '${this.frame.bin} target -o ORG -s SPACE' to target an org and space.`)]);
    return { name, deleted };
  }
}
