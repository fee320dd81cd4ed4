import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { PrintedEntry } from '../lib/ops/apps/logs.ts';

export default class Logs extends KfCommand<void> {
  static override summary = 'follow the log of an app, or show its last lines';
  static override examples = ['kf logs example-app', 'kf logs example-app --recent', 'kf logs example-app --json | jq -r .text'];
  static override json = 'lines' as const;
  static override seeAlso = ['app', 'apps'];
  static override args = { APP_NAME: appArg() };
  static override flags = { recent: Flags.boolean({ summary: 'print the last lines and end' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Logs);
    try {
      await this.#print(args.APP_NAME, flags.recent);
    } catch (error) {
      // Ctrl-C is the usual end of following, also before the first line.
      if (flags.recent || !this.signal.aborted) throw error;
    }
  }

  async #print(name: string, isRecent: boolean): Promise<void> {
    const [session, { followAppLogs, readRecentLogs }] = await this.inSpace(import('../lib/ops/apps/logs.ts'));
    this.announceList`Retrieving logs for app ${name}`;
    const app = await this.findApp(session, name);
    if (isRecent) {
      const { entries, notes } = await readRecentLogs(session, app);
      for (const entry of entries) this.#show(entry);
      for (const note of notes) this.warn(note);
      return;
    }
    for await (const entry of followAppLogs(session, app)) this.#show(entry);
  }

  /** `--json`: one document per line, as soon as the line arrives. */
  #show({ entry, source, lines }: PrintedEntry): void {
    const { ink, json } = this.terminal;
    if (json) this.terminal.document({ time: entry.time, source, stream: entry.stream, pod: entry.source.pod, text: entry.text });
    else for (const text of lines) this.terminal.out(entry.stream === 'ERR' ? ink.bad(text) : text);
  }
}
