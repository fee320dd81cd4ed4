import { KfCommand } from '../base-command.ts';
import { forceFlag } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  /** URLs of the deleted routes. */
  deleted: string[];
}

export default class DeleteOrphanedRoutes extends KfCommand<Result> {
  static override summary = 'delete all routes that lead to no app';
  static override changes = true;
  static override examples = ['kf delete-orphaned-routes', 'kf delete-orphaned-routes -f'];
  static override seeAlso = ['delete-route', 'routes'];
  static override flags = { force: forceFlag() };

  async run(): Promise<Result> {
    const { flags } = await this.parse(DeleteOrphanedRoutes);
    const [session, { deleteOrphanedRoutes }] = await this.inSpace(import('../lib/ops/routes/delete.ts'));
    if (!flags.force && !(await this.confirm('Really delete orphaned routes?'))) {
      this.print([line('Routes have not been deleted.')]);
      return { deleted: [] };
    }
    this.say`Deleting orphaned routes as ${session.user}...`;
    const deleted = await deleteOrphanedRoutes(session);
    this.ok();
    return { deleted };
  }
}
