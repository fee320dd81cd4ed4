import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { AppDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderApp, renderWait } from '../lib/views/apps.ts';

export default class Start extends KfCommand<AppDetails> {
  static override summary = 'start an app, and build it first if needed';
  static override changes = true;
  static override examples = ['kf start example-app', 'CF_STARTUP_TIMEOUT=10 kf start example-app'];
  static override aliases = ['st'];
  static override seeAlso = ['apps', 'logs', 'restart', 'scale', 'stop'];
  static override environment: [string, string][] = [
    ['CF_STAGING_TIMEOUT', 'minutes to wait for the build, if one is needed, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes to wait for the app, default 5'],
  ];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<AppDetails> {
    const { args } = await this.parse(Start);
    const [session, { startApp, waitUntilServing }, { describeApp }] = await this.inSpace(
      import('../lib/ops/apps/lifecycle.ts'),
      import('../lib/ops/apps/details.ts'),
    );
    const name = args.APP_NAME;
    this.announce`Starting app ${name}`;
    const { app, changed, deployId } = await startApp(session, await this.findApp(session, name));
    if (!changed) {
      this.print([line(`App '${name}' is already started.`)]);
      this.ok();
      return describeApp(session, app);
    }
    this.print(renderWait());
    const details = await describeApp(session, await waitUntilServing(session, app, deployId, { verb: 'start' }));
    this.print(renderApp(details));
    return details;
  }
}
