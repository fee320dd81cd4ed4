// Calls outside the cluster's API (registries, brokers, probes). They have a time limit, no worker waits for them, and the calls of one space do
// not delay those of another.

export type Outcome<T> = { ok: true; value: T } | { ok: false; error: unknown };

interface Call {
  space: string;
  outcome?: Outcome<unknown>;
  requeues: Set<() => void>;
}

export interface OutsideLimits {
  /** Calls of one space at the same time. */
  perSpace: number;
  /** Calls at the same time in all. Beyond it, every space may still have one call. */
  total: number;
  /** More than `total`: the upper limit of sockets that this process opens for calls. */
  most: number;
  /** An outcome that nobody fetched, for example of a deleted object, is dropped after this time. */
  keptMs: number;
}

const defaultLimits: OutsideLimits = { perSpace: 4, total: 32, most: 256, keptMs: 120_000 };

/**
 * One pool for each kind of call. A reconcile asks for the outcome of a call and continues without it if there is none yet; when the call ends,
 * the reconcile's key is queued again. Each space has its own queue. However slow the addresses of one space are, the calls of another start at
 * once, or, when very many spaces call at the same time, in turns of one call per space.
 */
export class OutsideCalls {
  readonly #calls = new Map<string, Call>();
  readonly #limits: OutsideLimits;
  readonly #running = new Map<string, number>();
  /** Calls that have not started, by space. Spaces take turns in the order of the Map. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #total = 0;

  constructor(limits: Partial<OutsideLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits };
  }

  /**
   * Starts the call `id` unless it is running. Returns undefined until the call has ended, then its outcome, once. `id` includes the input, so
   * that other input makes a new call. The time limit counts from the start of the call.
   */
  ask<T>(
    { id, space, timeoutMs }: { id: string; space: string; timeoutMs: number },
    requeue: () => void,
    work: (signal: AbortSignal) => Promise<T>,
  ): Outcome<T> | undefined {
    const known = this.#calls.get(id);
    if (known?.outcome !== undefined) {
      this.#calls.delete(id);
      return known.outcome as Outcome<T>;
    }
    if (known !== undefined) {
      known.requeues.add(requeue);
      return undefined;
    }
    const call: Call = { space, requeues: new Set([requeue]) };
    this.#calls.set(id, call);
    void this.#perform(id, call, timeoutMs, work);
    return undefined;
  }

  async #perform(id: string, call: Call, timeoutMs: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    await this.#turn(call.space);
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      // Work that throws at once must not leave the time limit without a listener.
      call.outcome = { ok: true, value: await Promise.race([Promise.resolve(signal).then(work), aborted]) };
    } catch (error) {
      call.outcome = { ok: false, error };
    } finally {
      this.#leave(call.space);
      const forget = setTimeout(() => {
        if (this.#calls.get(id) === call) this.#calls.delete(id);
      }, this.#limits.keptMs);
      forget.unref();
      for (const requeue of call.requeues) requeue();
    }
  }

  /** Resolves when the space may start another call. */
  async #turn(space: string): Promise<void> {
    const queue = this.#waiting.get(space) ?? [];
    if (queue.length > 0 || !this.#mayBegin(space)) {
      this.#waiting.set(space, queue);
      // The function that resolves this promise has counted the call.
      await new Promise<void>((resolve) => queue.push(resolve));
      return;
    }
    this.#enter(space);
  }

  #mayBegin(space: string): boolean {
    const own = this.#running.get(space) ?? 0;
    return this.#total < (own === 0 ? this.#limits.most : this.#limits.total) && own < this.#limits.perSpace;
  }

  #enter(space: string): void {
    this.#running.set(space, (this.#running.get(space) ?? 0) + 1);
    this.#total += 1;
  }

  #leave(space: string): void {
    const left = (this.#running.get(space) ?? 1) - 1;
    if (left === 0) this.#running.delete(space);
    else this.#running.set(space, left);
    this.#total -= 1;
    this.#beginNext();
  }

  /** Starts waiting calls. Spaces take turns: a space that has started a call goes to the end of the queue. */
  #beginNext(): void {
    for (const [space, queue] of [...this.#waiting]) {
      if (!this.#mayBegin(space)) continue;
      const begin = queue.shift();
      this.#waiting.delete(space);
      if (queue.length > 0) this.#waiting.set(space, queue);
      if (begin === undefined) continue;
      this.#enter(space);
      begin();
    }
  }
}
