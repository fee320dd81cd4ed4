import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { AppDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderApp } from '../lib/views/apps.ts';

export default class App extends KfCommand<AppDetails | { guid: string }> {
  static override summary = 'show health and status of an app';
  static override examples = ['kf app example-app', 'kf app example-app --guid', 'kf app example-app --json'];
  static override seeAlso = ['apps', 'env', 'logs', 'scale'];
  static override args = { APP_NAME: appArg() };
  static override flags = { guid: Flags.boolean({ summary: 'print only the GUID' }) };

  async run(): Promise<AppDetails | { guid: string }> {
    const { args, flags } = await this.parse(App);
    const [session, { describeApp }, { findApp }] = await Promise.all([
      this.spaceSession(),
      import('../lib/ops/apps/details.ts'),
      import('../lib/ops/find.ts'),
    ]);
    if (flags.guid) {
      const { metadata } = await findApp(session, args.APP_NAME);
      this.print([line(metadata.name)]);
      return { guid: metadata.name ?? '' };
    }
    const { org, space, user } = session;
    this.say`Showing health and status for app ${args.APP_NAME} in org ${org.name} / space ${space.name} as ${user}...`;
    this.say``;
    const details = await describeApp(session, await findApp(session, args.APP_NAME));
    this.print(renderApp(details));
    return details;
  }
}
