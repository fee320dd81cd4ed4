import { KfCommand } from '../base-command.ts';
import { appArg, noWaitFlag } from '../flags.ts';
import type { AppDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderApp } from '../lib/views/apps.ts';

export default class ContinueDeployment extends KfCommand<AppDetails> {
  static override summary = 'let a paused canary go to its next step';
  static override changes = true;
  static override examples = ['kf continue-deployment example-app', 'kf continue-deployment example-app --no-wait'];
  static override seeAlso = ['app', 'cancel-deployment', 'push'];
  static override environment: [string, string][] = [['CF_STARTUP_TIMEOUT', 'minutes to wait for the app, default 5']];
  static override args = { APP_NAME: appArg() };
  static override flags = { 'no-wait': noWaitFlag() };

  async run(): Promise<AppDetails> {
    const { args, flags } = await this.parse(ContinueDeployment);
    const [session, { continueDeployment }, { waitUntilServing }, { describeApp }] = await this.inSpace(
      import('../lib/ops/apps/deployments.ts'),
      import('../lib/ops/apps/lifecycle.ts'),
      import('../lib/ops/apps/details.ts'),
    );
    const name = args.APP_NAME;
    this.announce`Continuing deployment for app ${name}`;
    const { app, deployId } = await continueDeployment(session, await this.findApp(session, name));
    this.print([line(), line('Waiting for app to deploy...'), line()]);
    const details = await describeApp(session, await waitUntilServing(session, app, deployId, { wait: !flags['no-wait'] }));
    this.print(renderApp(details));
    return details;
  }
}
