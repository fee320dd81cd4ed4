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
    const [session, { describeApp }, { withDefaultStrategy }] = await this.inSpace(
      import('../lib/ops/apps/details.ts'),
      import('../lib/ops/apps/default-strategy.ts'),
    );
    if (flags.guid) {
      const { metadata } = await this.findApp(session, args.APP_NAME);
      this.print([line(metadata.name)]);
      return { guid: metadata.name };
    }
    this.announceList`Showing health and status for app ${args.APP_NAME}`;
    const app = await this.findApp(session, args.APP_NAME);
    const details = withDefaultStrategy(await describeApp(session, app), app);
    this.print(renderApp(details));
    return details;
  }
}
