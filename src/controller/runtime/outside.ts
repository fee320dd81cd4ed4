// Calls that leave the cluster's API (registries, brokers, probes): own pool, time limit, and no worker waits for them.

export type Outcome<T> = { ok: true; value: T } | { ok: false; error: unknown };

interface Call {
  outcome?: Outcome<unknown>;
  requeues: Set<() => void>;
}

/**
 * A reconcile asks for a call's outcome and goes on without it when there is none yet; when the call ends, its key is queued again.
 */
export class OutsideCalls {
  readonly #calls = new Map<string, Call>();
  readonly #waiting: (() => void)[] = [];
  readonly #limit: number;
  #running = 0;

  constructor(limit = 8) {
    this.#limit = limit;
  }

  /**
   * Starts the call `id` unless it runs already. Gives its outcome once it has ended (and forgets it then), undefined before.
   * `id` names what is asked, input included, so that a changed question is a new call.
   */
  ask<T>(id: string, requeue: () => void, timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Outcome<T> | undefined {
    const known = this.#calls.get(id);
    if (known?.outcome !== undefined) {
      this.#calls.delete(id);
      return known.outcome as Outcome<T>;
    }
    if (known !== undefined) {
      known.requeues.add(requeue);
      return undefined;
    }
    const call: Call = { requeues: new Set([requeue]) };
    this.#calls.set(id, call);
    void this.#perform(call, timeoutMs, work);
    return undefined;
  }

  async #perform(call: Call, timeoutMs: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      call.outcome = { ok: true, value: await Promise.race([work(signal), aborted]) };
    } catch (error) {
      call.outcome = { ok: false, error };
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
      for (const requeue of call.requeues) requeue();
    }
  }
}
