import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { PrintedEntry } from '../lib/ops/logs.ts';

interface LogLine {
  time: string;
  /** As in the text: `APP/PROC/WEB/0`. */
  source: string;
  stream: 'OUT' | 'ERR';
  pod: string;
  text: string;
}

interface Result {
  app: string;
  lines: LogLine[];
}

export default class Logs extends KfCommand<Result> {
  static override summary = 'follow the log of all instances and builds of an app, or show the last lines';
  static override examples = ['kf logs example-app', 'kf logs example-app --recent'];
  static override seeAlso = ['app', 'apps'];
  static override args = { APP_NAME: appArg() };
  static override flags = { recent: Flags.boolean({ summary: 'print the last lines and end' }) };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(Logs);
    const name = args.APP_NAME;
    const [session, { followAppLogs, readRecentLogs }, { findApp }] = await Promise.all([
      this.spaceSession(),
      import('../lib/ops/logs.ts'),
      import('../lib/ops/find.ts'),
    ]);
    this.say`Retrieving logs for app ${name} in org ${session.org.name} / space ${session.space.name} as ${session.user}...`;
    this.say``;
    const app = await findApp(session, name);
    const shown: LogLine[] = [];
    if (flags.recent) {
      const { entries, notes } = await readRecentLogs(session, app);
      for (const entry of entries) this.#show(entry, shown);
      for (const note of notes) this.terminal.warn(note);
      return { app: name, lines: shown };
    }
    for await (const entry of followAppLogs(session, app)) this.#show(entry, shown);
    return { app: name, lines: shown };
  }

  /** Prints an entry; `--json` keeps it for the one document at the end. */
  #show({ entry, source, lines }: PrintedEntry, shown: LogLine[]): void {
    if (this.terminal.json) {
      shown.push({ time: entry.time, source, stream: entry.stream, pod: entry.source.pod, text: entry.text });
      return;
    }
    const { ink } = this.terminal;
    for (const text of lines) this.terminal.out(entry.stream === 'ERR' ? ink.bad(text) : text);
  }
}
