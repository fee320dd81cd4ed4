// The API server's time. Ages are differences between now and timestamps that it wrote, and the clock of the controller's node may be another one.

/** A `Date` header names whole seconds. */
const resolutionMs = 1_000;
/** An answer may have been on its way for so long; a difference below is none. */
const toleranceMs = 2_000;

export class ServerClock {
  readonly #local: () => number;
  #offsetMs = 0;

  constructor(local: () => number = Date.now) {
    this.#local = local;
  }

  /** Milliseconds, as the API server has them. */
  readonly now = (): number => this.#local() + this.#offsetMs;

  /** Takes the `Date` header of an answer that has just come. What fits to the time that is assumed changes nothing. */
  readonly observe = (date: string | undefined): void => {
    const server = Date.parse(date ?? '');
    if (Number.isNaN(server)) return;
    const earliest = server - this.#local();
    const latest = earliest + resolutionMs + toleranceMs;
    if (this.#offsetMs < earliest - toleranceMs || this.#offsetMs > latest) this.#offsetMs = earliest + resolutionMs / 2;
  };
}

/** RFC 3339 with whole seconds, as the API server keeps it. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
