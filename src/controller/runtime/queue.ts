// Keyed work queue with the semantics of client-go's, fair between namespaces: a key waits once, never runs twice at a time, and comes back later
// by delay or back-off.

import { splitKey } from './store.ts';

export interface QueueOptions {
  /** First back-off in milliseconds; doubles per failure. */
  baseDelayMs?: number;
  maxDelayMs?: number;
  /** Milliseconds; only differences matter. */
  now?: () => number;
}

/** Timers have an upper limit; a key that is due later comes back early and waits again. */
const longestDelayMs = 24 * 60 * 60 * 1_000;

interface Delayed {
  at: number;
  timer: NodeJS.Timeout;
}

/**
 * Add, get, work, done. A key that is added during its work becomes available again at `done`. Semantics:
 * https://pkg.go.dev/k8s.io/client-go/util/workqueue
 *
 * Namespaces take turns, one key each: a namespace with many changed objects delays those of other namespaces by one key per turn.
 */
export class WorkQueue {
  /** Waiting keys by namespace. Namespaces take turns in the order of the Map. */
  readonly #order = new Map<string, string[]>();
  #depth = 0;
  readonly #dirty = new Set<string>();
  readonly #processing = new Set<string>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, { count: number; baseMs: number }>();
  readonly #waiting: ((key: string | undefined) => void)[] = [];
  readonly #baseDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #now: () => number;
  #closed = false;

  constructor(options: QueueOptions = {}) {
    this.#baseDelayMs = options.baseDelayMs ?? 20;
    this.#maxDelayMs = options.maxDelayMs ?? 60_000;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Number of waiting keys, without delayed ones and those in work. */
  get depth(): number {
    return this.#depth;
  }

  get inWork(): number {
    return this.#processing.size;
  }

  add(key: string): void {
    if (this.#closed || this.#dirty.has(key)) return;
    this.#dirty.add(key);
    if (this.#processing.has(key)) return;
    this.#offer(key);
  }

  /** Adds after a delay; of two delays of one key the earlier one counts. */
  addAfter(key: string, delayMs: number): void {
    if (this.#closed) return;
    if (delayMs <= 0) {
      this.add(key);
      return;
    }
    const delay = Math.min(delayMs, longestDelayMs);
    const at = this.#now() + delay;
    const earlier = this.#delayed.get(key);
    if (earlier !== undefined) {
      if (earlier.at <= at) return;
      clearTimeout(earlier.timer);
    }
    const timer = setTimeout(() => {
      this.#delayed.delete(key);
      this.add(key);
    }, delay);
    this.#delayed.set(key, { at, timer });
  }

  /** Adds after the key's back-off and counts a failure; a back-off with another first pause begins anew. @param delays left out: those of the queue */
  addRateLimited(key: string, { baseMs, mostMs } = { baseMs: this.#baseDelayMs, mostMs: this.#maxDelayMs }): void {
    const before = this.#failures.get(key);
    // What was waited for long is no reason to try an error late.
    const failures = before?.baseMs === baseMs ? before.count : 0;
    this.#failures.set(key, { count: failures + 1, baseMs });
    this.addAfter(key, Math.min(mostMs, baseMs * 2 ** Math.min(failures, 30)));
  }

  /** Failures of the present back-off since the last `forget`. */
  failures(key: string): number {
    return this.#failures.get(key)?.count ?? 0;
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Waits for the next key; undefined once the queue is closed. */
  get(): Promise<string | undefined> {
    const key = this.#next();
    if (key !== undefined) {
      this.#take(key);
      return Promise.resolve(key);
    }
    if (this.#closed) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Must be called for every key that `get` returned. */
  done(key: string): void {
    this.#processing.delete(key);
    if (this.#dirty.has(key) && !this.#closed) this.#offer(key);
  }

  /** Accepts and returns no more keys. */
  close(): void {
    this.#closed = true;
    this.#order.clear();
    this.#depth = 0;
    for (const { timer } of this.#delayed.values()) clearTimeout(timer);
    this.#delayed.clear();
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }

  #offer(key: string): void {
    const waiter = this.#waiting.shift();
    if (waiter === undefined) {
      const { ns } = splitKey(key);
      const own = this.#order.get(ns);
      if (own === undefined) this.#order.set(ns, [key]);
      else own.push(key);
      this.#depth += 1;
      return;
    }
    this.#take(key);
    waiter(key);
  }

  #next(): string | undefined {
    for (const [ns, keys] of this.#order) {
      const key = keys.shift();
      this.#order.delete(ns);
      if (keys.length > 0) this.#order.set(ns, keys);
      this.#depth -= 1;
      return key;
    }
    return undefined;
  }

  #take(key: string): void {
    this.#dirty.delete(key);
    this.#processing.add(key);
  }
}
