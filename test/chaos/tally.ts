// What a chaos session counts, and its report.

export interface Failure {
  command: string;
  fault: string;
  class: number;
  message: string;
}

/** Kills by fault and step, commands that had to be run again, and times. */
export class Tally {
  readonly #faults: readonly string[];
  readonly #steps: readonly string[];
  readonly #uses: (step: string, fault: string) => boolean;
  readonly #hits = new Map<string, number>();
  readonly #longest = new Map<string, number>();
  readonly #made = new Map<string, number>();
  readonly failures: Failure[] = [];
  commands = 0;

  /** @param uses whether a step uses what a fault ends; default: each uses all */
  constructor(faults: readonly string[], steps: readonly string[], uses: (step: string, fault: string) => boolean = () => true) {
    this.#faults = faults;
    this.#steps = steps;
    this.#uses = uses;
  }

  hit(fault: string, step: string): void {
    const key = `${fault}\n${step}`;
    this.#hits.set(key, (this.#hits.get(key) ?? 0) + 1);
  }

  hits(fault: string, step: string): number {
    return this.#hits.get(`${fault}\n${step}`) ?? 0;
  }

  /** A step has ended, with all tries of its command. */
  took(step: string, milliseconds: number): void {
    this.#made.set(step, this.made(step) + 1);
    this.#longest.set(step, Math.max(this.#longest.get(step) ?? 0, milliseconds));
  }

  /** How often the step was made. */
  made(step: string): number {
    return this.#made.get(step) ?? 0;
  }

  /** How many steps were made. */
  get done(): number {
    return this.#steps.reduce((sum, step) => sum + this.made(step), 0);
  }

  /** Steps during which nothing ended that they use. */
  get missedSteps(): string[] {
    return this.#steps.filter((step) => this.#faults.every((fault) => !this.#uses(step, fault) || this.hits(fault, step) === 0));
  }

  /** Faults that happened in no step. */
  get missedFaults(): string[] {
    return this.#faults.filter((fault) => this.#steps.every((step) => this.hits(fault, step) === 0));
  }

  /** A table with a row for each step and a column for each fault. */
  render(): string {
    const total = (fault: string): number => this.#steps.reduce((sum, step) => sum + this.hits(fault, step), 0);
    const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
    const seconds = (step: string): string => ((this.#longest.get(step) ?? 0) / 1_000).toFixed(1);
    return [
      line(['step', 'made', ...this.#faults, 'longest, s']),
      line(['---', '---', ...this.#faults.map(() => '---'), '---']),
      ...this.#steps.map((step) => line([step, this.made(step), ...this.#faults.map((fault) => this.hits(fault, step)), seconds(step)])),
      line(['all', this.done, ...this.#faults.map(total), '']),
      `${this.commands} commands; ${this.failures.length} ended with an error and were run again:`,
      ...this.failures.map((one) => `  ${one.command} (${one.fault}): class ${one.class}, ${one.message}`),
    ].join('\n');
  }
}
