import { KfCommand } from '../base-command.ts';
import { appArg, noWaitFlag, rolloutFlags } from '../flags.ts';
import type { AppDetails } from '../lib/api/results.ts';
import { rolloutOf } from '../lib/api/rollout.ts';
import { rolloutOptions } from '../lib/cf/rollout.ts';
import { renderApp, renderRest, renderWait } from '../lib/views/apps.ts';

export default class Restage extends KfCommand<AppDetails> {
  static override summary = 'build the last pushed source again and run it';
  static override changes = true;
  static override examples = ['kf restage example-app', 'kf restage example-app --no-wait'];
  static override aliases = ['rg'];
  static override seeAlso = ['restart', 'set-env', 'start'];
  static override environment: [string, string][] = [
    ['CF_STAGING_TIMEOUT', 'minutes to wait for the build, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes to wait for the app, default 5'],
  ];
  static override args = { APP_NAME: appArg() };
  static override flags = { ...rolloutFlags(), 'no-wait': noWaitFlag() };

  async run(): Promise<AppDetails> {
    const { args, flags } = await this.parse(Restage);
    const rollout = rolloutOptions(flags);
    const [session, { stageAndStart }, { waitUntilServing }, { describeApp }] = await this.inSpace(
      import('../lib/ops/apps/staging.ts'),
      import('../lib/ops/apps/lifecycle.ts'),
      import('../lib/ops/apps/details.ts'),
    );
    const name = args.APP_NAME;
    this.announce`Restaging app ${name}`;
    const { app, deployId } = await stageAndStart(session, await this.findApp(session, name), { again: true, rollout });
    const wait = !flags['no-wait'];
    this.print(renderWait(rolloutOf(app) === undefined ? undefined : name));
    const details = await describeApp(session, await waitUntilServing(session, app, deployId, { wait }));
    this.print([...(wait ? [] : renderRest(details, 'restaged', 'restaging')), ...renderApp(details)]);
    return details;
  }
}
