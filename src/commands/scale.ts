import { KfCommand } from '../base-command.ts';
import { appArg, forceFlag, instancesFlag, processFlag, sizeFlag } from '../flags.ts';
import type { AppDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderApp } from '../lib/views/apps.ts';

export default class Scale extends KfCommand<AppDetails> {
  static override summary = 'change or show instances, memory and disk';
  static override changes = true;
  static override examples = ['kf scale example-app', 'kf scale example-app -i 3', 'kf scale example-app -m 512M -f --process worker'];
  static override seeAlso = ['app', 'apps', 'push'];
  static override environment: [string, string][] = [['CF_STARTUP_TIMEOUT', 'minutes to wait for the instances, default 5']];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    instances: instancesFlag(),
    disk: sizeFlag({ char: 'k', summary: 'disk limit, e.g. 256M, 1G', helpValue: 'DISK' }),
    memory: sizeFlag({ char: 'm', summary: 'memory limit, e.g. 256M, 1G', helpValue: 'MEMORY' }),
    process: processFlag(),
    force: forceFlag(),
  };

  async run(): Promise<AppDetails> {
    const { args, flags } = await this.parse(Scale);
    const [session, { scaleApp }, { describeApp }] = await this.inSpace(
      import('../lib/ops/apps/scale.ts'),
      import('../lib/ops/apps/details.ts'),
    );
    const name = args.APP_NAME;
    const { instances, memory, disk, force } = flags;
    if (instances !== undefined || memory !== undefined || disk !== undefined) {
      this.announceList`Scaling app ${name}`;
      const app = await this.findApp(session, name);
      const restarts = memory !== undefined || disk !== undefined;
      if (restarts && !force && !(await this.confirm(`This will cause the app to restart. Are you sure you want to scale ${name}?`))) {
        this.print([line('Scaling cancelled')]);
        return describeApp(session, app);
      }
      await scaleApp(session, app, {
        process: flags.process,
        instances,
        memoryMB: memory,
        diskMB: disk,
      });
    }
    this.announceList`Showing current scale of app ${name}`;
    const details = await describeApp(session, await this.findApp(session, name));
    this.print(renderApp(details));
    return details;
  }
}
