import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';

interface Result {
  app: string;
  enabled: boolean;
  changed: boolean;
}

export default class EnableSsh extends KfCommand<Result> {
  static override summary = 'allow ssh to the instances of an app';
  static override changes = true;
  static override examples = ['kf enable-ssh example-app'];
  static override seeAlso = ['allow-space-ssh', 'disable-ssh', 'ssh', 'ssh-enabled'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<Result> {
    const { args } = await this.parse(EnableSsh);
    const name = args.APP_NAME;
    const [session, { setAppSsh, readSshState }] = await this.inSpace(import('../lib/ops/apps/ssh-access.ts'));
    this.say`Enabling ssh support for app ${name} as ${session.user}...`;
    const app = await this.findApp(session, name);
    const changed = await setAppSsh(session, app, true);
    if (!changed) this.say`ssh support for app '${name}' is already enabled.`;
    this.ok();
    if ((await readSshState(session, app)).reason === 'Disabled for space')
      this.terminal.out('TIP: Ensure ssh is also enabled on the space and global level.');
    return { app: name, enabled: true, changed };
  }
}
