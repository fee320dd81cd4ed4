import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { noWaitFlag, requiredArg, rolloutFlags } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import type { AppDetails, PackageSummary } from '../lib/api/results.ts';
import type { SpaceSession } from '../lib/session/session.ts';
import { rolloutOf, type RolloutOptions } from '../lib/api/rollout.ts';
import { rolloutOptions } from '../lib/cf/rollout.ts';
import { defined } from '../lib/defined.ts';
import { renderApp, renderRest, renderWait } from '../lib/views/apps.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  package: PackageSummary;
  app?: AppDetails;
}

export default class CopySource extends KfCommand<Result> {
  static override summary = 'give an app the source of another app';
  static override changes = true;
  static override examples = ['kf copy-source example-app copy-of-it', 'kf copy-source example-app other-app -s other-space --no-restart'];
  static override seeAlso = ['apps', 'push', 'restage', 'restart', 'target'];
  static override environment: [string, string][] = [
    ['CF_STAGING_TIMEOUT', 'minutes to wait for the build, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes to wait for the app, default 5'],
  ];
  static override args = { 'SOURCE-APP': requiredArg('app that has the source'), 'TARGET-NAME': requiredArg('app that gets it') };
  static override flags = {
    'no-restart': Flags.boolean({ summary: 'do not build and restart the app that gets the source' }),
    'no-wait': noWaitFlag(),
    organization: Flags.string({ char: 'o', summary: 'org of that space, default the targeted one', helpValue: 'TARGET_ORG' }),
    space: Flags.string({ char: 's', summary: 'space of the app that gets the source', helpValue: 'TARGET_SPACE' }),
    ...rolloutFlags(),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CopySource);
    const rollout = rolloutOptions(flags);
    const { organization, space, strategy, 'no-restart': noRestart, 'no-wait': noWait } = flags;
    if (organization !== undefined && space === undefined)
      throw incorrectUsage("'--organization, -o' and '--space, -s' must be used together.");
    if (noRestart && strategy !== undefined)
      throw incorrectUsage('The following arguments cannot be used together: --no-restart, --strategy');
    if (noRestart && noWait) throw incorrectUsage('The following arguments cannot be used together: --no-restart, --no-wait');
    const [session, { copyPackage, sessionOf }] = await Promise.all([
      this.spaceSession({ spaceFlagIsOther: true }),
      import('../lib/ops/apps/copy-source.ts'),
    ]);
    const [from, to] = [args['SOURCE-APP'], args['TARGET-NAME']];
    const [org, place] = [organization ?? session.org.name, space ?? session.space.name];
    this.say`Copying source from app ${from} to target app ${to} in org ${org} / space ${place} as ${session.user}...`;
    const there = await sessionOf(session, { organization, space });
    const [source, target] = [await this.findApp(session, from), await this.findApp(there, to)];
    const made = await copyPackage({ session, app: source }, { session: there, app: target });
    if (noRestart) {
      this.print([line()]);
      this.ok();
      return { package: made };
    }
    this.goOnIn(defined({ org: organization, space }));
    return { package: made, app: await this.#restart(there, to, { wait: !noWait, rollout }) };
  }

  /** Builds the package and runs it. */
  async #restart(session: SpaceSession, name: string, { wait, rollout }: { wait: boolean; rollout: RolloutOptions }): Promise<AppDetails> {
    const [{ stageAndStart }, { waitUntilServing }, { describeApp }] = await Promise.all([
      import('../lib/ops/apps/staging.ts'),
      import('../lib/ops/apps/lifecycle.ts'),
      import('../lib/ops/apps/details.ts'),
    ]);
    const { app, deployId } = await stageAndStart(session, await this.findApp(session, name), { again: false, rollout });
    this.print(renderWait(rolloutOf(app) === undefined ? undefined : name));
    const details = await describeApp(session, await waitUntilServing(session, app, deployId, { wait }));
    this.print([...(wait ? [] : renderRest(details, 'restaged', 'restaging')), ...renderApp(details)]);
    return details;
  }
}
