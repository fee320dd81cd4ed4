// Sorts the lines of several containers of one pod by time, because their connections deliver them in another order.

import type { LogEntry } from './entry.ts';

interface Held {
  entry: LogEntry;
  arrived: number;
}

/** More are not held: the oldest goes out before its time, so that a flood of lines neither fills the memory nor waits. */
export const mostHeld = 10_000;

class Holder {
  /** By time. */
  readonly #sorted: Held[] = [];
  /** In the order of arrival. */
  readonly #arrivals = new Set<Held>();

  add(entry: LogEntry): void {
    const item = { entry, arrived: performance.now() };
    const index = this.#sorted.findLastIndex((other) => other.entry.time <= entry.time);
    this.#sorted.splice(index + 1, 0, item);
    this.#arrivals.add(item);
  }

  /** When the hold of any entry is over; undefined without one. The entry with the oldest time may have arrived just now. */
  dueAt(holdMs: number): number | undefined {
    const [first] = this.#arrivals;
    return first === undefined ? undefined : first.arrived + holdMs;
  }

  /** The oldest entries by time: those whose hold is over and those before them, and those beyond the limit. */
  *take(holdMs: number): Generator<LogEntry> {
    while (this.#sorted.length >= mostHeld || performance.now() >= (this.dueAt(holdMs) ?? Infinity)) yield* this.#takeFirst();
  }

  *takeAll(): Generator<LogEntry> {
    while (this.#sorted.length > 0) yield* this.#takeFirst();
  }

  *#takeFirst(): Generator<LogEntry> {
    const first = this.#sorted.shift();
    if (first === undefined) return;
    this.#arrivals.delete(first);
    yield first.entry;
  }
}

/**
 * Delays each entry by `holdMs` and returns the oldest first. The containers of one pod use the clock of their node, so their times are
 * comparable; entries with the same time keep their order of arrival.
 */
export async function* inOrder(stream: AsyncIterable<LogEntry>, holdMs: number): AsyncGenerator<LogEntry> {
  const held = new Holder();
  const source = stream[Symbol.asyncIterator]();
  let next = source.next();
  let timer: NodeJS.Timeout | undefined;
  try {
    for (;;) {
      yield* held.take(holdMs);
      const dueAt = held.dueAt(holdMs);
      const due = new Promise<undefined>((resolve) => {
        // Its time may have passed since; Node prints a warning for a negative delay.
        if (dueAt !== undefined) timer = setTimeout(() => resolve(undefined), Math.max(0, dueAt - performance.now()));
      });
      const result = await Promise.race([next, due]);
      clearTimeout(timer);
      if (result === undefined) continue;
      if (result.done === true) {
        yield* held.takeAll();
        return;
      }
      held.add(result.value);
      next = source.next();
    }
  } finally {
    clearTimeout(timer);
    await source.return?.();
  }
}
