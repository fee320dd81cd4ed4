import { KfCommand } from '../base-command.ts';
import { appArg, requiredArg } from '../flags.ts';
import type { DropletSummary } from '../lib/api/results.ts';

export default class SetDroplet extends KfCommand<DropletSummary> {
  static override summary = 'choose the droplet of the next start';
  static override changes = true;
  static override examples = ['kf set-droplet example-app DROPLET_GUID', 'kf restart example-app'];
  static override seeAlso = ['app', 'create-package', 'droplets', 'packages', 'push', 'stage-package'];
  static override args = { APP_NAME: appArg(), DROPLET_GUID: requiredArg('droplet') };

  async run(): Promise<DropletSummary> {
    const { args } = await this.parse(SetDroplet);
    const [session, { setDroplet }] = await this.inSpace(import('../lib/ops/apps/droplets.ts'));
    this.announce`Setting app ${args.APP_NAME} to droplet ${args.DROPLET_GUID}`;
    const droplet = await setDroplet(session, await this.findApp(session, args.APP_NAME), args.DROPLET_GUID);
    this.ok();
    return droplet;
  }
}
