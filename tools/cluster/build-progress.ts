// The progress of building the parts: a bar on a terminal, lines elsewhere, with the same content.

/** The destination of progress. */
export interface ProgressOutput {
  /** Receives a line. */
  log: (line: string) => void;
  /** A terminal, whose last line is the bar. */
  terminal?: Pick<NodeJS.WriteStream, 'write' | 'columns'>;
}

/** Lines are written to `log`, and the bar to standard error if that is a terminal. */
export function progressOutput(log: (line: string) => void): ProgressOutput {
  return process.stderr.isTTY ? { log, terminal: process.stderr } : { log };
}

interface PartToBuild {
  name: string;
  /** CPU seconds that it usually takes. */
  weight: number;
}

const barWidth = 24;
const shortestBar = 8;
const lineEveryMs = 15_000;
const barEveryMs = 500;
/** Clears a line of a terminal. */
const clearLine = '\r\u001B[K';

/** Follows the parts one after the other, and shows what is built, what is being built and what is left. */
export class BuildProgress {
  readonly #parts: readonly PartToBuild[];
  readonly #output: ProgressOutput;
  readonly #now: () => number;
  readonly #started: number;
  readonly #seen = new Set<string>();
  readonly #ticker: NodeJS.Timeout;
  #index = -1;
  /** The packages of the present part are known: it is being compiled. */
  #listed = false;
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
    if (output.terminal) this.show();
  }

  /** Begins the next part. Packages that an earlier part had are not compiled again. */
  start(name: string, packages: readonly string[]): void {
    this.#index = this.#parts.findIndex((part) => part.name === name);
    this.#partStarted = this.#now();
    this.#packages = packages;
    this.#expected = packages.filter((id) => !this.#seen.has(id)).length;
    this.#compiled = 0;
    this.#listed = true;
    this.show();
  }

  /** A package of the present part was compiled. */
  compiled(): void {
    this.#compiled++;
  }

  /** The present part was built. */
  finish(): void {
    for (const id of this.#packages) this.#seen.add(id);
    const part = this.#parts[this.#index];
    this.#index++;
    this.#listed = false;
    this.#compiled = 0;
    this.#expected = 0;
    this.#say(`${part?.name ?? ''}: built in ${this.#seconds(this.#partStarted)}${this.#output.terminal ? '' : `; ${this.#done()}`}`);
  }

  /** No part is being built any more. */
  end(): void {
    clearInterval(this.#ticker);
    this.#output.terminal?.write(clearLine);
  }

  /** Draws the bar, or says the same in a line. The bar is shorter where the text needs the room. */
  show(): void {
    const text = this.#state();
    const { terminal, log } = this.#output;
    if (!terminal) return log(text);
    const room = (terminal.columns || 80) - 1;
    const width = Math.min(barWidth, Math.max(shortestBar, room - text.length - '[] '.length));
    const filled = Math.round(this.#share() * width);
    const bar = `[${'#'.repeat(filled)}${'-'.repeat(width - filled)}] ${text}`;
    terminal.write(clearLine + bar.slice(0, room));
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

  /** The present state. A narrow terminal cuts off its end, so it begins with what matters most. */
  #state(): string {
    const part = this.#parts[Math.max(this.#index, 0)];
    if (part === undefined) return this.#done();
    if (!this.#listed) return `${this.#done()}; fetching the sources of ${part.name}`;
    const packages = `${String(Math.min(this.#compiled, this.#expected))} of ${String(this.#expected)} packages`;
    return `${this.#done()}; ${part.name}${this.#expected > 0 ? `: ${packages}` : ''}`;
  }

  #done(): string {
    const built = Math.max(this.#index, 0);
    return `${String(Math.floor(this.#share() * 100))} %, ${this.#seconds(this.#started)}; ${String(built)} of ${String(this.#parts.length)} parts built`;
  }

  #seconds(since: number): string {
    return `${String(Math.round((this.#now() - since) / 1000))} s`;
  }
}
