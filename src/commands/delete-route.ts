import { KfCommand } from '../base-command.ts';
import { forceFlag, hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  url: string;
  deleted: boolean;
}

export default class DeleteRoute extends KfCommand<Result> {
  static override summary = 'delete a route';
  static override changes = true;
  static override examples = ['kf delete-route apps.example.com -n shop', 'kf delete-route apps.example.com -n shop --path cart -f'];
  static override seeAlso = ['delete-orphaned-routes', 'routes', 'unmap-route'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = { force: forceFlag(), hostname: hostnameFlag(), path: pathFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeleteRoute);
    const [session, { deleteRoute }, { urlOf }] = await this.inSpace(
      import('../lib/ops/routes/delete.ts'),
      import('../lib/ops/routes/routes.ts'),
    );
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    const url = urlOf(address);
    this.say`This action impacts all apps using this route.`;
    this.say`Deleting this route will make apps unreachable via this route.`;
    if (!flags.force && !(await this.confirm(`Really delete the route ${url}?`))) {
      this.print([line(`'${url}' has not been deleted.`)]);
      return { url, deleted: false };
    }
    this.say`Deleting route ${url}...`;
    const { deleted, reason, holder } = await deleteRoute(session, address);
    if (reason !== undefined) this.print([line(`Unable to delete. ${reason}`)]);
    if (holder !== undefined) this.warn(`${holder} has the host of '${url}', with all its paths.`);
    this.ok();
    return { url, deleted };
  }
}
