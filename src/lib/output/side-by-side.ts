// The output of concurrent tasks, each kept together: one is shown live, the others are buffered until their turn.

import type { ByteProgress } from '../events.ts';
import type { Block } from '../views/block.ts';
import type { Display } from './progress.ts';
import type { Terminal } from './terminal.ts';

/** The output of one task. While another one is shown, it is buffered in its order. */
export class OutputBlock implements Display {
  readonly #terminal: Terminal;
  readonly #display: Display;
  /** Printed before each step when there are several tasks. */
  readonly #label: string;
  readonly #onEnd: () => void;
  #isShown = false;
  #held: (() => void)[] = [];
  #step: string | undefined;
  hasEnded = false;

  constructor(terminal: Terminal, display: Display, { label, onEnd }: { label: string; onEnd: () => void }) {
    this.#terminal = terminal;
    this.#display = display;
    this.#label = label;
    this.#onEnd = onEnd;
  }

  say(line?: string): void {
    this.#do(() => this.#display.say(line));
  }

  /** Of a buffered block, only the last step counts. */
  step(text: string): void {
    this.#step = this.#label === '' ? text : `${this.#label}: ${text}`;
    if (this.#isShown) this.#display.step(this.#step);
  }

  bytes(progress: ByteProgress): void {
    if (this.#isShown) this.#display.bytes(progress);
  }

  log(line: string): void {
    this.#do(() => this.#display.log(line));
  }

  warn(text: string): void {
    this.#do(() => this.#display.warn(text));
  }

  done(): void {
    this.#step = undefined;
    this.#do(() => this.#display.done());
  }

  print(blocks: readonly Block[]): void {
    this.#do(() => {
      this.#display.done();
      this.#terminal.print(blocks);
    });
  }

  /** A line for users on stderr; not with `--json`, whose document has the same content. */
  note(text: string): void {
    this.#do(() => {
      this.#display.done();
      if (!this.#terminal.json) this.#terminal.err(text);
    });
  }

  /** No more output follows. */
  end(): void {
    this.hasEnded = true;
    this.#onEnd();
  }

  /** Prints the buffered output, and from now on everything at once. */
  show(): void {
    if (this.#isShown) return;
    this.#isShown = true;
    for (const act of this.#held) act();
    this.#held = [];
    if (this.#step !== undefined && !this.hasEnded) this.#display.step(this.#step);
  }

  #do(act: () => void): void {
    if (this.#isShown) act();
    else this.#held.push(act);
  }
}

/** A block per name, shown in the order of the names; a single one is printed live, without a heading. */
export function openBlocks(
  terminal: Terminal,
  display: Display,
  names: readonly string[],
  heading: (name: string) => string,
): Map<string, OutputBlock> {
  const isAlone = names.length < 2;
  const blocks: OutputBlock[] = [];
  const showNext = (): void => {
    const next = blocks.findIndex((block) => !block.hasEnded);
    for (const block of next < 0 ? blocks : blocks.slice(0, next + 1)) block.show();
  };
  for (const name of names) {
    const block = new OutputBlock(terminal, display, { label: isAlone ? '' : name, onEnd: showNext });
    if (!isAlone) {
      block.say();
      block.say(heading(name));
    }
    blocks.push(block);
  }
  showNext();
  return new Map(names.map((name, index) => [name, blocks[index] as OutputBlock]));
}
