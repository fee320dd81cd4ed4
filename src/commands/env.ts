import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { EnvDetails } from '../lib/api/results.ts';
import { renderEnv } from '../lib/views/env.ts';

export default class Env extends KfCommand<EnvDetails> {
  static override summary = "show an app's environment variables";
  static override examples = ['kf env example-app', 'kf env example-app --json'];
  static override aliases = ['e'];
  static override seeAlso = ['app', 'set-env', 'unset-env'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<EnvDetails> {
    const { args } = await this.parse(Env);
    const [session, { readEnv }] = await this.inSpace(import('../lib/ops/apps/env.ts'));
    this.announce`Getting env variables for app ${args.APP_NAME}`;
    const env = await readEnv(session, await this.findApp(session, args.APP_NAME));
    this.print(renderEnv(env));
    return env;
  }
}
