import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Stopped {
  name: string;
  guid: string;
  changed: boolean;
}

export default class Stop extends KfCommand<Stopped> {
  static override summary = 'stop an app';
  static override changes = true;
  static override examples = ['kf stop example-app'];
  static override aliases = ['sp'];
  static override seeAlso = ['restart', 'scale', 'start'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<Stopped> {
    const { args } = await this.parse(Stop);
    const [session, { stopApp }] = await this.inSpace(import('../lib/ops/apps/lifecycle.ts'));
    const name = args.APP_NAME;
    this.announce`Stopping app ${name}`;
    const { app, changed } = await stopApp(session, await this.findApp(session, name));
    if (!changed) this.print([line(`App ${name} is already stopped.`)]);
    this.ok();
    return { name, guid: app.metadata.name, changed };
  }
}
