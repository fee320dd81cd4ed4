// How far the building of parts is: a bar on a terminal, lines elsewhere, with the same facts.

/** Where progress goes. */
export interface ProgressOutput {
  /** Takes a line. */
  log: (line: string) => void;
  /** A terminal, whose last line is the bar. */
  terminal?: Pick<NodeJS.WriteStream, 'write' | 'columns'>;
}

/** Lines go to `log`; the bar to standard error, when that is a terminal. */
export function progressOutput(log: (line: string) => void): ProgressOutput {
  return process.stderr.isTTY ? { log, terminal: process.stderr } : { log };
}

interface PartToBuild {
  name: string;
  /** CPU seconds that it is known to take. */
  weight: number;
}

const barWidth = 24;
const lineEveryMs = 15_000;
const barEveryMs = 500;
/** Clears a line of a terminal. */
const clearLine = '\r\u001B[K';

/** Follows the parts one after the other, and says what is built, what is being built and what is left. */
export class BuildProgress {
  readonly #parts: readonly PartToBuild[];
  readonly #output: ProgressOutput;
  readonly #now: () => number;
  readonly #started: number;
  readonly #seen = new Set<string>();
  readonly #ticker: NodeJS.Timeout;
  #index = -1;
  #partStarted = 0;
  #packages: readonly string[] = [];
  #expected = 0;
  #compiled = 0;

  constructor(parts: readonly PartToBuild[], output: ProgressOutput, now: () => number = Date.now) {
    this.#parts = parts;
    this.#output = output;
    this.#now = now;
    this.#started = now();
    this.#ticker = setInterval(() => this.show(), output.terminal ? barEveryMs : lineEveryMs);
    this.#ticker.unref();
    this.#say(`building once: ${parts.map(({ name }) => name).join(', ')}`);
  }

  /** Begins the next part. Packages that an earlier part had are not compiled again. */
  start(name: string, packages: readonly string[]): void {
    this.#index = this.#parts.findIndex((part) => part.name === name);
    this.#partStarted = this.#now();
    this.#packages = packages;
    this.#expected = packages.filter((id) => !this.#seen.has(id)).length;
    this.#compiled = 0;
    this.show();
  }

  /** One more package of the present part is compiled. */
  compiled(): void {
    this.#compiled++;
  }

  /** The present part is built. */
  finish(): void {
    for (const id of this.#packages) this.#seen.add(id);
    const part = this.#parts[this.#index];
    this.#index++;
    this.#compiled = 0;
    this.#expected = 0;
    this.#say(`${part?.name ?? ''}: built in ${this.#seconds(this.#partStarted)}${this.#output.terminal ? '' : `; ${this.#state()}`}`);
  }

  /** No part is built any more. */
  end(): void {
    clearInterval(this.#ticker);
    this.#output.terminal?.write(clearLine);
  }

  /** Draws the bar, or says the same in a line. */
  show(): void {
    const part = this.#parts[this.#index];
    if (part === undefined) return;
    const packages =
      this.#expected > 0 ? `, ${String(Math.min(this.#compiled, this.#expected))} of ${String(this.#expected)} packages` : '';
    const text = `${part.name} (${this.#seconds(this.#partStarted)}${packages}); ${this.#state()}`;
    const { terminal, log } = this.#output;
    if (!terminal) return log(text);
    const filled = Math.round(this.#share() * barWidth);
    const bar = `[${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] ${text}`;
    terminal.write(clearLine + bar.slice(0, (terminal.columns || 80) - 1));
  }

  #say(line: string): void {
    this.#output.terminal?.write(clearLine);
    this.#output.log(line);
  }

  /** The share of all work that is done, from 0 to 1. */
  #share(): number {
    const total = this.#parts.reduce((sum, { weight }) => sum + weight, 0);
    const built = this.#parts.slice(0, Math.max(this.#index, 0)).reduce((sum, { weight }) => sum + weight, 0);
    const inPart = this.#expected > 0 ? Math.min(this.#compiled / this.#expected, 1) : 0;
    return (built + (this.#parts[this.#index]?.weight ?? 0) * inPart) / total;
  }

  #state(): string {
    const built = Math.max(this.#index, 0);
    const all = this.#parts.length;
    return `${String(Math.floor(this.#share() * 100))} %, ${String(built)} of ${String(all)} parts built, ${String(all - built)} left, ${this.#seconds(this.#started)}`;
  }

  #seconds(since: number): string {
    return `${String(Math.round((this.#now() - since) / 1000))} s`;
  }
}
