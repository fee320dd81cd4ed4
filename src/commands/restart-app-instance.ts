import { KfCommand } from '../base-command.ts';
import { appArg, indexArg, processFlag } from '../flags.ts';
import { instanceLimits } from '../lib/api/app.ts';

interface Result {
  app: string;
  process: string;
  index: number;
}

export default class RestartAppInstance extends KfCommand<Result> {
  static override summary = 'end one instance; another one takes its place';
  static override changes = true;
  static override examples = ['kf restart-app-instance example-app 0', 'kf restart-app-instance example-app 2 --process worker'];
  static override seeAlso = ['restart'];
  static override args = {
    APP_NAME: appArg(),
    INDEX: indexArg('INDEX', 'index of the instance', instanceLimits.most),
  };
  static override flags = { process: processFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(RestartAppInstance);
    const { APP_NAME: app, INDEX: index } = args;
    const { process } = flags;
    const [session, { restartInstance }] = await this.inSpace(import('../lib/ops/apps/restart-instance.ts'));
    this.announce`Restarting instance ${String(index)} of process ${process} of app ${app}`;
    const isEnded = await restartInstance(session, await this.findApp(session, app), process, index);
    if (!isEnded) this.warn(`Instance ${String(index)} of process ${process} is being replaced already.`);
    this.ok();
    return { app, process, index };
  }
}
