import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { DropletSummary } from '../lib/api/results.ts';
import { renderDroplets } from '../lib/views/sources.ts';

export default class Droplets extends KfCommand<DropletSummary[]> {
  static override summary = 'list the droplets of an app, newest first';
  static override examples = ['kf droplets example-app'];
  static override seeAlso = ['app', 'create-package', 'packages', 'push', 'set-droplet'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<DropletSummary[]> {
    const { args } = await this.parse(Droplets);
    const [session, { listDroplets }] = await this.inSpace(import('../lib/ops/apps/droplets.ts'));
    this.announceList`Getting droplets of app ${args.APP_NAME}`;
    const droplets = await listDroplets(session, await this.findApp(session, args.APP_NAME));
    this.print(renderDroplets(droplets));
    return droplets;
  }
}
