import { KfCommand } from '../base-command.ts';
import { appArg, forceFlag, noWaitFlag, rolloutFlags, versionFlag } from '../flags.ts';
import type { AppDetails } from '../lib/api/results.ts';
import { rolloutOptions } from '../lib/cf/rollout.ts';
import { renderApp, renderRest, renderWait } from '../lib/views/apps.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  /** The revision that was returned to. */
  version: number;
  rolledBack: boolean;
  app?: AppDetails;
}

export default class Rollback extends KfCommand<Result> {
  static override summary = 'return to an earlier revision, without a build';
  static override changes = true;
  static override examples = ['kf rollback example-app', 'kf rollback example-app --version 3 -f --no-wait'];
  static override seeAlso = ['revision', 'revisions'];
  static override environment: [string, string][] = [['CF_STARTUP_TIMEOUT', 'minutes to wait for the app, default 5']];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    force: forceFlag(),
    'no-wait': noWaitFlag(),
    ...rolloutFlags(),
    version: versionFlag('revision to return to, default the one that served before'),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(Rollback);
    const rollout = rolloutOptions(flags);
    const [session, { prepareRollback, startRollback }] = await this.inSpace(import('../lib/ops/push/rollback.ts'));
    const name = args.APP_NAME;
    const prepared = await prepareRollback(session, await this.findApp(session, name), flags.version);
    const { version, isNewest } = prepared;
    const number = String(version);
    if (!flags.force) {
      if (isNewest)
        this
          .say`Revision '${number}' is the newest one of app '${name}'. Rolling back to it starts the app with the settings from that revision again.`;
      else
        this
          .say`Rolling '${name}' back to revision '${number}' will create a new revision. The new revision will use the settings from revision '${number}'.`;
      if (!(await this.confirm('Are you sure you want to continue?'))) {
        this.print([line(`App '${name}' has not been rolled back to revision '${number}'.`)]);
        return { version, rolledBack: false };
      }
    }
    this.announce`Rolling back to revision ${number} for app ${name}`;
    const started = await startRollback(session, prepared, rollout);
    this.print(renderWait(name));
    const [{ waitUntilServing }, { describeApp }] = await Promise.all([
      import('../lib/ops/apps/lifecycle.ts'),
      import('../lib/ops/apps/details.ts'),
    ]);
    const wait = !flags['no-wait'];
    const details = await describeApp(session, await waitUntilServing(session, started.app, started.deployId, { wait }));
    this.print([...(wait ? [] : renderRest(details, 'rolled back', 'rolling back')), ...renderApp(details)]);
    this.ok();
    return { version, rolledBack: true, app: details };
  }
}
