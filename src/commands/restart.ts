import { KfCommand } from '../base-command.ts';
import { appArg, noWaitFlag, rolloutFlags } from '../flags.ts';
import type { AppDetails } from '../lib/api/results.ts';
import { rolloutOf } from '../lib/api/rollout.ts';
import { rolloutOptions } from '../lib/cf/rollout.ts';
import { renderApp, renderRest, renderWait } from '../lib/views/apps.ts';

export default class Restart extends KfCommand<AppDetails> {
  static override summary = 'replace all instances; routed apps keep serving';
  static override changes = true;
  static override examples = ['kf restart example-app', 'kf restart example-app --no-wait'];
  static override aliases = ['rs'];
  static override seeAlso = ['restage', 'start', 'stop'];
  static override environment: [string, string][] = [
    ['CF_STAGING_TIMEOUT', 'minutes to wait for the build, if one is needed, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes to wait for the app, default 5'],
  ];
  static override args = { APP_NAME: appArg() };
  static override flags = { ...rolloutFlags(), 'no-wait': noWaitFlag() };

  async run(): Promise<AppDetails> {
    const { args, flags } = await this.parse(Restart);
    const rollout = rolloutOptions(flags);
    const [session, { restartApp, waitUntilServing }, { describeApp }] = await this.inSpace(
      import('../lib/ops/apps/lifecycle.ts'),
      import('../lib/ops/apps/details.ts'),
    );
    const name = args.APP_NAME;
    this.announce`Restarting app ${name}`;
    const { app, deployId } = await restartApp(session, await this.findApp(session, name), rollout);
    const wait = !flags['no-wait'];
    this.print(renderWait(rolloutOf(app) === undefined ? undefined : name));
    const details = await describeApp(session, await waitUntilServing(session, app, deployId, { verb: 'restart', wait }));
    this.print([...(wait ? [] : renderRest(details, 'restarted', 'restarting')), ...renderApp(details)]);
    return details;
  }
}
