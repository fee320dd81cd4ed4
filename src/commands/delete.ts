import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, forceFlag } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  deleted: boolean;
  routes: string[];
}

export default class Delete extends KfCommand<Result> {
  static override summary = 'delete an app';
  static override changes = true;
  static override examples = ['kf delete example-app', 'kf delete example-app -r -f'];
  static override aliases = ['d'];
  static override seeAlso = ['apps', 'scale', 'stop'];
  static override args = { APP_NAME: appArg() };
  static override flags = { force: forceFlag(), routes: Flags.boolean({ char: 'r', summary: 'delete its routes too' }) };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(Delete);
    const [session, { deleteApp }, { findAppToDelete }] = await this.inSpace(
      import('../lib/ops/apps/delete.ts'),
      import('../lib/ops/find.ts'),
    );
    const name = args.APP_NAME;
    if (!flags.force && !(await this.confirm(`Really delete the app ${name}?`))) {
      this.print([line(`App '${name}' has not been deleted.`)]);
      return { name, deleted: false, routes: [] };
    }
    this.announce`Deleting app ${name}`;
    const app = await findAppToDelete(session, name);
    if (app === undefined) this.warn(`App '${name}' does not exist.`);
    const { routes } = app === undefined ? { routes: [] } : await deleteApp(session, app, { routes: flags.routes, wait: true });
    this.ok();
    return { name, deleted: app !== undefined, routes };
  }
}
