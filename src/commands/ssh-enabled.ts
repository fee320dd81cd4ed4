import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { SshState } from '../lib/ops/apps/ssh-access.ts';

export default class SshEnabled extends KfCommand<SshState & { app: string }> {
  static override summary = 'show whether ssh to an app is allowed';
  static override examples = ['kf ssh-enabled example-app'];
  static override seeAlso = ['enable-ssh', 'space-ssh-allowed', 'ssh'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<SshState & { app: string }> {
    const { args } = await this.parse(SshEnabled);
    const name = args.APP_NAME;
    const [session, { readSshState }] = await this.inSpace(import('../lib/ops/apps/ssh-access.ts'));
    const state = await readSshState(session, await this.findApp(session, name));
    this.say`ssh support is ${state.enabled ? 'enabled' : 'disabled'} for app '${name}'.`;
    if (!state.enabled) this.terminal.out(state.reason);
    return { app: name, ...state };
  }
}
