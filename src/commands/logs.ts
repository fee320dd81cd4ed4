import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, numberFlag } from '../flags.ts';
import { parsePattern, parseSince, type Since } from '../lib/cf/values.ts';
import { defined } from '../lib/defined.ts';
import type { LogChoice, PrintedEntry } from '../lib/ops/apps/logs.ts';

const counted = (count: number, what: string): string => `${String(count)} ${what}${count === 1 ? '' : 's'}`;

export default class Logs extends KfCommand<void> {
  static override summary = 'follow the log of an app, or show its last lines';
  static override examples = [
    'kf logs example-app',
    'kf logs example-app --recent',
    'kf logs example-app --since 10m --process web --instance 0',
    "kf logs example-app --previous --grep 'error|warn'",
    'kf logs example-app --json | jq -r .text',
  ];
  static override json = 'lines' as const;
  static override seeAlso = ['app', 'apps', 'events', 'why'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    grep: Flags.custom<RegExp>({
      parse: (text) => Promise.resolve().then(() => parsePattern(text, '--grep')),
      summary: 'only lines that match; gaps are always shown',
      helpValue: 'REGEXP',
    })(),
    instance: numberFlag({ name: 'instance', least: 0, summary: 'only the instances of this index', helpValue: 'INDEX' }),
    previous: Flags.boolean({ summary: 'print the log from before the last restart of each instance, and end' }),
    process: Flags.string({ summary: 'only this process type, with its sidecars', helpValue: 'PROCESS' }),
    recent: Flags.boolean({ summary: 'print the last lines and end' }),
    since: Flags.custom<Since>({
      parse: (text) => Promise.resolve().then(() => parseSince(text)),
      summary: 'only lines since then: 90s, 10m, 2h, 1d, or a time',
      helpValue: 'TIME',
    })(),
    summary: Flags.boolean({ summary: 'end with the numbers of lines, gaps and unread logs' }),
  };

  #lines = 0;
  #gaps = 0;
  /** Logs that were not read to their end, of a node that does not answer for example. */
  #unread = 0;

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Logs);
    const { recent, previous, summary, ...choice } = flags;
    const follows = !recent && !previous;
    try {
      await this.#print(args.APP_NAME, choice, { follows, previous });
    } catch (error) {
      // Ctrl-C is the usual end of following, also before the first line.
      if (!follows || !this.signal.aborted) throw error;
    }
    if (summary) this.#summarise();
  }

  async #print(name: string, choice: LogChoice, { follows, previous }: { follows: boolean; previous: boolean }): Promise<void> {
    const [session, { followAppLogs, missingInstance, readRecentLogs }] = await this.inSpace(import('../lib/ops/apps/logs.ts'));
    this.announceList`Retrieving logs for app ${name}`;
    const app = await this.findApp(session, name);
    const missing = await missingInstance(session, app, choice);
    if (missing !== undefined && !follows) throw missing;
    // It is followed from its start on, if it comes.
    if (missing !== undefined) this.#note(missing.message);
    if (!follows) {
      const { entries, notes, unread } = await readRecentLogs(session, app, choice, previous);
      this.#unread = unread;
      for (const entry of entries) this.#show(entry);
      for (const note of notes) this.#note(note);
      return;
    }
    for await (const entry of followAppLogs(session, app, choice, (text) => this.#note(text))) {
      this.#show(entry);
      // A slow terminal slows the log down: nothing collects in memory.
      await this.terminal.drained(this.signal);
    }
  }

  /** `--json`: one document per line, as soon as the line arrives. */
  #show({ entry, source, lines }: PrintedEntry): void {
    const { ink, json } = this.terminal;
    const { gap, time, stream, text: said } = entry;
    if (gap !== undefined) this.#gaps += 1;
    // A note of kf is no line of the app.
    else if (entry.source.type !== 'KF') this.#lines += 1;
    if (json)
      this.terminal.document(gap ? { gap, source, pod: entry.source.pod } : { time, source, stream, pod: entry.source.pod, text: said });
    else for (const text of lines) this.terminal.out(stream === 'ERR' ? ink.bad(text) : text);
  }

  /** A warning. `--json`: a document at once, because following has no end. */
  #note(text: string): void {
    if (this.terminal.json) this.terminal.document({ warning: text });
    else this.warn(text);
  }

  #summarise(): void {
    const [lines, gaps, unread] = [this.#lines, this.#gaps, this.#unread];
    const notRead = unread === 0 ? '' : `, ${counted(unread, 'log')} not read completely`;
    if (this.terminal.json) this.terminal.document({ lines, gaps, ...defined({ unread: unread || undefined }) });
    else this.terminal.out(`${counted(lines, 'line')}, ${counted(gaps, 'gap')}${notRead}`);
  }
}
