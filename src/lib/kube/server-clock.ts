// The API server's time. The ages of objects are differences to timestamps that the API server wrote, and the clock of the controller's node or of
// a user's machine may differ. Between two answers the time goes on by the clock that nobody sets, so a step of that clock is no age of an object.

/** A `Date` header has whole seconds. */
const resolutionMs = 1_000;
/** An answer may have taken this long to arrive; a smaller difference does not count. */
const toleranceMs = 2_000;

/** Milliseconds since the epoch by the own clock when the process began, and from then on by a clock that nobody sets. */
const steadyTime = (): number => performance.timeOrigin + performance.now();

export class ServerClock {
  readonly #local: () => number;
  #offsetMs = 0;

  constructor(local: () => number = steadyTime) {
    this.#local = local;
  }

  /** Milliseconds by the clock of the API server. */
  readonly now = (): number => this.#local() + this.#offsetMs;

  /** Takes the `Date` header of an answer that has just arrived. A time that fits the current assumption changes nothing. */
  readonly observe = (date: string | undefined): void => {
    const server = Date.parse(date ?? '');
    if (Number.isNaN(server)) return;
    const earliest = server - this.#local();
    const latest = earliest + resolutionMs + toleranceMs;
    if (this.#offsetMs < earliest - toleranceMs || this.#offsetMs > latest) this.#offsetMs = earliest + resolutionMs / 2;
  };
}
