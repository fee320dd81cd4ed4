import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  guid: string;
  canceled: true;
}

export default class CancelDeployment extends KfCommand<Result> {
  static override summary = 'return to the version before a deployment';
  static override changes = true;
  static override examples = ['kf cancel-deployment example-app'];
  static override seeAlso = ['app', 'continue-deployment', 'push'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<Result> {
    const { args } = await this.parse(CancelDeployment);
    const [session, { cancelDeployment }] = await this.inSpace(import('../lib/ops/apps/deployments.ts'));
    const name = args.APP_NAME;
    this.announce`Canceling deployment for app ${name}`;
    const app = await cancelDeployment(session, await this.findApp(session, name));
    this.ok();
    this.print([line(`TIP: Run '${this.frame.bin} app ${name}' to view app status.`)]);
    return { name, guid: app.metadata.name, canceled: true };
  }
}
