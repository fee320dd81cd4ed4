import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { AppEvent } from '../lib/api/results.ts';
import { renderEvents } from '../lib/views/events.ts';

export default class Events extends KfCommand<{ app: string; events: AppEvent[] }> {
  static override summary = 'show what happened to an app, newest first';
  static override examples = ['kf events example-app', 'kf events example-app --json'];
  static override seeAlso = ['app', 'logs'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<{ app: string; events: AppEvent[] }> {
    const { args } = await this.parse(Events);
    const app = args.APP_NAME;
    const [session, { appEvents }] = await this.inSpace(import('../lib/ops/apps/events.ts'));
    this.announceList`Getting events for app ${app}`;
    const events = await appEvents(session, await this.findApp(session, app));
    this.print(renderEvents(events));
    return { app, events };
  }
}
