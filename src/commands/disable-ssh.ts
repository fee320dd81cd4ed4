import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';

interface Result {
  app: string;
  enabled: boolean;
  changed: boolean;
}

export default class DisableSsh extends KfCommand<Result> {
  static override summary = 'forbid ssh to the instances of an app';
  static override changes = true;
  static override examples = ['kf disable-ssh example-app'];
  static override seeAlso = ['disallow-space-ssh', 'enable-ssh', 'ssh', 'ssh-enabled'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<Result> {
    const { args } = await this.parse(DisableSsh);
    const name = args.APP_NAME;
    const [session, { setAppSsh }] = await this.inSpace(import('../lib/ops/apps/ssh-access.ts'));
    this.say`Disabling ssh support for app ${name} as ${session.user}...`;
    const changed = await setAppSsh(session, await this.findApp(session, name), false);
    if (!changed) this.say`ssh support for app '${name}' is already disabled.`;
    this.ok();
    return { app: name, enabled: false, changed };
  }
}
