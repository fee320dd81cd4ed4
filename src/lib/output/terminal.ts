// The two streams and what may be done with them: the only place of the CLI that writes.

import { layOut } from './layout.ts';
import { type Ink, loadInk, plainInk } from './ink.ts';
import { safeJson, safeName, safeText } from './safe-text.ts';
import type { Block } from '../views/block.ts';

type Env = Readonly<Record<string, string | undefined>>;

interface Stream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

export interface TerminalOptions {
  env: Env;
  stdout: Stream;
  /** Opened at the first word on it: most commands never say one. */
  stderr: () => Stream;
  /** True when a person can be asked; looked at only when there is a question. */
  canAsk: () => boolean;
  /** stdout carries one JSON document and nothing else. */
  json: boolean;
  /** A text with its commands under the name that kf was started as. */
  asStarted?: (text: string) => string;
}

/** Narrower, a line that is drawn again is no line any more. */
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

  /** stderr is a terminal, so progress may move. One without a width (a pty that nobody has sized, as jobs get it) has no place to move in. */
  get lively(): boolean {
    const { isTTY, columns = 0 } = this.#stderr();
    return isTTY === true && columns >= leastColumns && this.env['CI'] === undefined && this.env['TERM'] !== 'dumb';
  }

  /** A line of cf's text; with `--json` it goes nowhere. */
  out(text = ''): void {
    if (!this.json) write(this.#stdout, `${text}\n`);
  }

  /** Text of a question, without a line end: on stdout as cf's, unless that carries a document. */
  ask(text: string): void {
    write(this.json ? this.#stderr() : this.#stdout, text);
  }

  /** The result itself as JSON; `space` as of JSON.stringify. */
  document(value: unknown, space?: number): void {
    this.#stdout.write(`${safeJson(JSON.stringify(value, null, space))}\n`);
  }

  /** A line for people on stderr. */
  err(text = ''): void {
    write(this.#stderr(), `${text}\n`);
  }

  /** A warning: stderr, and `warnings` of the JSON document. */
  warn(warning: string): void {
    const text = this.asStarted(warning);
    this.warnings.push(text);
    if (!this.json) this.err(text);
  }

  /** A name within a line of stdout: one line, and on a terminal nothing in it goes unseen. */
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

/** Writes text of others to the user: a terminal gets only its colours, without other control characters; elsewhere every byte stays. */
function write(stream: Stream, text: string): void {
  stream.write(stream.isTTY === true ? safeText(text) : text);
}

/** @param bin the name kf was started as */
export async function openTerminal(options: TerminalOptions, bin = 'kf'): Promise<Terminal> {
  const ink = options.json ? plainInk : await loadInk({ env: options.env, isTTY: options.stdout.isTTY === true });
  if (bin === 'kf') return new Terminal(options, ink);
  const { commandsAs } = await import('./command-name.ts');
  return new Terminal({ ...options, asStarted: (text) => commandsAs(text, bin) }, ink);
}
