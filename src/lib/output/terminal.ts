// The two output streams and their rules: the only place of the CLI that writes.

import { layOut } from './layout.ts';
import { type Ink, loadInk, plainInk } from './ink.ts';
import { safeJson, safeName, safeText } from './safe-text.ts';
import type { Block } from '../views/block.ts';

type Env = Readonly<Record<string, string | undefined>>;

interface Stream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
  /** The reader is slower than the output, which collects in memory. */
  writableNeedDrain?: boolean;
  once?(event: 'drain' | 'close', then: () => void): unknown;
  off?(event: 'drain' | 'close', then: () => void): unknown;
}

export interface TerminalOptions {
  env: Env;
  stdout: Stream;
  /** Opened on first use: most commands write nothing to it. */
  stderr: () => Stream;
  /** True when a user can be asked; checked only when there is a question. */
  canAsk: () => boolean;
  /** stdout has one JSON document and nothing else. */
  json: boolean;
  /** Replaces the program's name in the commands of a text. */
  asStarted?: (text: string) => string;
}

/** On a narrower terminal, a line that is redrawn would wrap. */
const leastColumns = 20;

export class Terminal {
  readonly env: Env;
  readonly json: boolean;
  readonly asStarted: (text: string) => string;
  readonly warnings: string[] = [];
  readonly ink: Ink;
  readonly #stdout: Stream;
  readonly #stderr: () => Stream;
  readonly #canAsk: () => boolean;

  constructor(options: TerminalOptions, ink: Ink) {
    this.env = options.env;
    this.json = options.json;
    this.asStarted = options.asStarted ?? ((text) => text);
    this.#canAsk = options.canAsk;
    this.ink = ink;
    this.#stdout = options.stdout;
    this.#stderr = options.stderr;
  }

  get canAsk(): boolean {
    return this.#canAsk();
  }

  /** stderr is a terminal that can show moving progress. A terminal without a width (a pty without a size, as in jobs) cannot. */
  get lively(): boolean {
    const { isTTY, columns = 0 } = this.#stderr();
    return isTTY === true && columns >= leastColumns && this.env['CI'] === undefined && this.env['TERM'] !== 'dumb';
  }

  /** Resolves when stdout can take more, which is at once if its reader is fast enough, and when the signal aborts. */
  drained(signal: AbortSignal): Promise<void> | undefined {
    const stream = this.#stdout;
    if (stream.writableNeedDrain !== true || signal.aborted) return undefined;
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        stream.off?.('drain', done);
        stream.off?.('close', done);
        resolve();
      };
      signal.addEventListener('abort', done);
      stream.once?.('drain', done);
      stream.once?.('close', done);
    });
  }

  /** A line of cf's text; dropped with `--json`. */
  out(text = ''): void {
    if (!this.json) write(this.#stdout, `${text}\n`);
  }

  /** Text of a question, without a line end: on stdout as in cf, unless stdout has a document. */
  ask(text: string): void {
    write(this.json ? this.#stderr() : this.#stdout, text);
  }

  /** The result as JSON; `space` as in JSON.stringify. */
  document(value: unknown, space?: number): void {
    this.#stdout.write(`${safeJson(JSON.stringify(value, null, space))}\n`);
  }

  /** A line for users on stderr. */
  err(text = ''): void {
    write(this.#stderr(), `${text}\n`);
  }

  /** A warning: stderr, and `warnings` of the JSON document. */
  warn(warning: string): void {
    const text = this.asStarted(warning);
    this.warnings.push(text);
    if (!this.json) this.err(text);
  }

  /** A name within a line of stdout: one line, and on a terminal everything in it is visible. */
  name(text: string): string {
    return this.ink.name(this.#stdout.isTTY === true ? safeName(text) : text);
  }

  print(blocks: readonly Block[]): void {
    if (this.json) return;
    const { isTTY, columns: width = 0 } = this.#stdout;
    const onTerminal = isTTY === true ? { cell: safeName, ...(width === 0 ? {} : { columns: width }) } : {};
    const lines = layOut(blocks, { ink: this.ink, message: this.asStarted, ...onTerminal });
    if (lines.length > 0) write(this.#stdout, `${lines.join('\n')}\n`);
  }
}

/** Writes text of others: a terminal gets only its colours, without other control characters; elsewhere every byte is kept. */
function write(stream: Stream, text: string): void {
  stream.write(stream.isTTY === true ? safeText(text) : text);
}

/** @param bin the name of the program as it was started */
export async function openTerminal(options: TerminalOptions, bin = 'kf'): Promise<Terminal> {
  const ink = options.json ? plainInk : await loadInk({ env: options.env, isTTY: options.stdout.isTTY === true });
  if (bin === 'kf') return new Terminal(options, ink);
  const { commandsAs } = await import('./command-name.ts');
  return new Terminal({ ...options, asStarted: (text) => commandsAs(text, bin) }, ink);
}
