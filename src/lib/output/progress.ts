// Shows progress on a terminal, on plain streams, and with `--json`.

import type { Ora } from 'ora';
import { formatBytes } from '../api/sizes.ts';
import type { ByteProgress, Report } from '../events.ts';
import { renderEvent, type Shown } from '../views/progress.ts';
import { safeName } from './safe-text.ts';
import type { Terminal } from './terminal.ts';

export interface Display {
  /** One line of cf's own text on stdout. Without text: an empty line. */
  say(line?: string): void;
  /** The current step, which replaces the previous one: a spinner with elapsed time on a terminal, otherwise one stderr line. */
  step(text: string): void;
  /** Upload progress of the current step. */
  bytes(progress: ByteProgress): void;
  /** A line of a build or app log, as cf prints it while pushing (indented, on stdout). */
  log(line: string): void;
  /** A warning: stderr, and `warnings` in `--json`. */
  warn(text: string): void;
  /** Ends the current step, for example before a result is printed. */
  done(): void;
}

/** Before each line of a build log, as in cf. */
const logIndent = '   ';

/** Interval for repeating a line while the step stays the same: the log of a job then shows that the command is alive. */
const repeatMs = 10_000;

/** The text of a step without its changing figures. */
const awaitedOf = (text: string): string => text.replaceAll(/\d+/g, '#');
const saysSeconds = (text: string): boolean => /\(\d+ of \d+ s\)/.test(text);

/** The bytes of an upload, after the text of its step. */
const bytesText = ({ done, total }: ByteProgress): string =>
  total > 0 ? ` ${formatBytes(done)} of ${formatBytes(total)}` : ` ${formatBytes(done)}`;

/** The text of a step with the seconds since its beginning, unless it tells seconds itself. */
function withSeconds(text: string, bytes: string, since: number): string {
  const seconds = Math.floor((Date.now() - since) / 1000);
  return `${text}${bytes}${seconds > 0 && !saysSeconds(text) ? ` (${seconds} s)` : ''}`;
}

/**
 * A stderr line for each new step, then one every 10 s with the latest text and the time so far. stdout lines go where the terminal sends them.
 */
class PlainDisplay implements Display {
  readonly #terminal: Terminal;
  /** Steps that were printed since the last `done`: alternating steps are printed once each. */
  readonly #told = new Set<string>();
  #latest = '';
  #bytes = '';
  #since = 0;
  #repeat: NodeJS.Timeout | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  say(line = ''): void {
    this.#terminal.out(line);
  }

  step(step: string): void {
    const text = this.#terminal.asStarted(step);
    if (awaitedOf(text) !== awaitedOf(this.#latest)) this.#bytes = '';
    this.#latest = text;
    if (this.#told.has(awaitedOf(text))) return;
    this.#told.add(awaitedOf(text));
    this.#tell();
  }

  bytes(progress: ByteProgress): void {
    // Only lines that come anyway have them: changing figures would fill a job's log.
    this.#bytes = bytesText(progress);
  }

  log(line: string): void {
    if (this.#terminal.json) this.#terminal.err(logIndent + line);
    else this.#terminal.out(logIndent + line);
  }

  warn(text: string): void {
    this.#terminal.warn(text);
  }

  done(): void {
    this.#told.clear();
    clearInterval(this.#repeat);
    this.#repeat = undefined;
  }

  #tell(): void {
    this.#since = Date.now();
    this.#terminal.err(this.#latest);
    clearInterval(this.#repeat);
    this.#repeat = setInterval(() => this.#terminal.err(withSeconds(this.#latest, this.#bytes, this.#since)), repeatMs).unref();
  }
}

/** Shorter waits are not worth a spinner, or the time to load it. */
const spinnerDelayMs = 150;

/** A spinner with elapsed seconds on stderr; everything else is printed above it. */
class LivelyDisplay implements Display {
  readonly #terminal: Terminal;
  #spinner: Ora | undefined;
  #since = 0;
  #text = '';
  #bytes = '';
  #delay: NodeJS.Timeout | undefined;
  #clock: NodeJS.Timeout | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  say(line = ''): void {
    this.#above(() => this.#terminal.out(line));
  }

  step(step: string): void {
    // The spinner writes to the terminal itself.
    const text = safeName(this.#terminal.asStarted(step));
    if (text === this.#text) return;
    // With other figures it is still the same step.
    if (awaitedOf(text) !== awaitedOf(this.#text)) {
      this.#bytes = '';
      this.#since = Date.now();
    }
    this.#text = text;
    this.#draw();
    this.#delay ??= setTimeout(() => void this.#start(), spinnerDelayMs).unref();
  }

  bytes(progress: ByteProgress): void {
    this.#bytes = bytesText(progress);
    this.#draw();
  }

  log(line: string): void {
    this.#above(() => (this.#terminal.json ? this.#terminal.err(logIndent + line) : this.#terminal.out(logIndent + line)));
  }

  warn(text: string): void {
    this.#above(() => this.#terminal.warn(text));
  }

  done(): void {
    this.#spinner?.stop();
    clearTimeout(this.#delay);
    clearInterval(this.#clock);
    this.#delay = undefined;
    this.#text = '';
  }

  async #start(): Promise<void> {
    const { default: ora } = await import('ora');
    if (this.#text === '') return;
    this.#spinner ??= ora({ stream: process.stderr, discardStdin: false, hideCursor: true });
    this.#draw();
    this.#spinner.start();
    clearInterval(this.#clock);
    this.#clock = setInterval(() => this.#draw(), 1000).unref();
  }

  #draw(): void {
    if (this.#spinner === undefined) return;
    this.#spinner.text = withSeconds(this.#text, this.#bytes, this.#since);
  }

  #above(print: () => void): void {
    const spinning = this.#spinner?.isSpinning === true;
    if (spinning) this.#spinner?.stop();
    print();
    if (spinning) this.#spinner?.start();
  }
}

/** Chooses the display on first use: a command that only prints never checks stderr. */
class LazyDisplay implements Display {
  readonly #terminal: Terminal;
  #chosen: Display | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  get #display(): Display {
    return (this.#chosen ??= this.#terminal.lively ? new LivelyDisplay(this.#terminal) : new PlainDisplay(this.#terminal));
  }

  say(line = ''): void {
    if (this.#chosen === undefined) this.#terminal.out(line);
    else this.#chosen.say(line);
  }

  step(text: string): void {
    this.#display.step(text);
  }

  bytes(progress: ByteProgress): void {
    this.#display.bytes(progress);
  }

  log(line: string): void {
    this.#display.log(line);
  }

  warn(text: string): void {
    if (this.#chosen === undefined) this.#terminal.warn(text);
    else this.#chosen.warn(text);
  }

  done(): void {
    this.#chosen?.done();
  }
}

/** The right display for the terminal. */
export function openDisplay(terminal: Terminal): Display {
  return new LazyDisplay(terminal);
}

function show(display: Display, shown: Shown): void {
  if ('say' in shown) display.say(shown.say);
  else if ('step' in shown) display.step(shown.step);
  else if ('bytes' in shown) display.bytes(shown.bytes);
  else if ('log' in shown) display.log(shown.log);
  else if ('warn' in shown) display.warn(shown.warn);
  else display.done();
}

/** Shows the events of ops. @param bin the name of the program as it was started */
export function reportOn(display: Display, bin: string): Report {
  return (event) => {
    for (const shown of renderEvent(event, bin)) show(display, shown);
  };
}
