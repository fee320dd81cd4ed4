import { KfCommand } from '../base-command.ts';
import { appArg, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  name: string;
  changed: boolean;
}

export default class UnsetEnv extends KfCommand<Result> {
  static override summary = 'remove an environment variable of an app';
  static override changes = true;
  static override examples = ['kf unset-env example-app LOG_LEVEL'];
  static override aliases = ['ue'];
  static override seeAlso = ['env', 'restage', 'restart', 'set-env'];
  static override args = { APP_NAME: appArg(), ENV_VAR_NAME: requiredArg('name of the variable') };

  async run(): Promise<Result> {
    const { args } = await this.parse(UnsetEnv);
    const [session, { unsetEnv }] = await this.inSpace(import('../lib/ops/apps/env.ts'));
    const { APP_NAME: app, ENV_VAR_NAME: name } = args;
    this.announce`Removing env variable ${name} from app ${app}`;
    const changed = await unsetEnv(session, await this.findApp(session, app), name);
    if (!changed) this.warn(`Env variable ${name} was not set.`);
    this.ok();
    if (changed) this.print([line(`TIP: Use '${this.frame.bin} restage ${app}' to ensure your env variable changes take effect.`)]);
    return { app, name, changed };
  }
}
