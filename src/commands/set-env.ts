import { KfCommand } from '../base-command.ts';
import { appArg, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  name: string;
}

export default class SetEnv extends KfCommand<Result> {
  static override summary = 'set an environment variable of an app';
  static override changes = true;
  static override examples = ['kf set-env example-app LOG_LEVEL debug', 'kf set-env example-app JAVA_OPTS -Xss512k'];
  static override aliases = ['se'];
  static override seeAlso = ['env', 'restage', 'restart', 'unset-env'];
  static override dashesAreData = true;
  static override args = {
    APP_NAME: appArg(),
    ENV_VAR_NAME: requiredArg('name of the variable'),
    ENV_VAR_VALUE: requiredArg('its value'),
  };

  async run(): Promise<Result> {
    const { args } = await this.parse(SetEnv);
    const { APP_NAME: app, ENV_VAR_NAME: name, ENV_VAR_VALUE: value } = args;
    const [{ assertVariable, setEnv }, { findApp }] = await Promise.all([import('../lib/ops/apps/env.ts'), import('../lib/ops/find.ts')]);
    assertVariable(name, value);
    const session = await this.spaceSession();
    this.announce`Setting env variable ${name} for app ${app}`;
    await setEnv(session, await findApp(session, app), name, value);
    this.ok();
    this.print([line(`TIP: Use '${this.frame.bin} restage ${app}' to ensure your env variable changes take effect.`)]);
    return { app, name };
  }
}
