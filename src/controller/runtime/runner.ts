// Runs one reconciler with its queue and workers: takes keys, evaluates how a reconcile ended, and decides when to run it again.

import { randomUUID } from 'node:crypto';
import { messageOf } from '../../lib/errors.ts';
import { isAlreadyExists, isConflict, isMissingKind, isNotFound, isTerminating } from '../../lib/kube/errors.ts';
import { freshRightsRetryMs, goesWithNamespace, isFreshRefusal } from './namespace-refusals.ts';
import type { Logger } from './log.ts';
import { reconcileOutcomes, type Metrics, type ReconcileOutcome } from './metrics.ts';
import { WorkQueue } from './queue.ts';
import type { Context, Reconciler } from './reconciler.ts';
import { NotLeaderError, TerminalError, WaitingError, type Result } from './result.ts';

const defaultWorkers = 4;
const timeLimitMs = 60_000;
type Outcome = ReconcileOutcome;

const notLeaderPauseMs = 200;

/** One reconcile of one key; `requeue` queues the key again. */
export interface Work {
  key: string;
  log: Logger;
  signal: AbortSignal;
  requeue: () => void;
}

export interface RunnerDependencies {
  context: (work: Work) => Context;
  /** True as soon as this process may work; false when it ends before that. */
  mayWork: () => Promise<boolean>;
  log: Logger;
  metrics: Metrics;
}

/**
 * Aborts with another signal, or after a time. Nothing of it is left when it has ended: `AbortSignal.timeout` keeps its timer until the time is over,
 * and a controller that had just started with 1,000 apps held 30,000 of them, 15 MB.
 */
class TimeLimit {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#controller.abort(this.#outer.reason);

  constructor(outer: AbortSignal, ms: number) {
    this.#outer = outer;
    this.#timer = setTimeout(() => this.#controller.abort(new DOMException('The time limit was reached.', 'TimeoutError')), ms);
    this.#timer.unref();
    if (outer.aborted) this.#onAbort();
    else outer.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#onAbort);
  }
}

export class Runner {
  readonly reconciler: Reconciler;
  readonly queue = new WorkQueue();
  readonly #deps: RunnerDependencies;
  readonly #log: Logger;
  /** Keys that are being reconciled, and since when. */
  readonly #since = new Map<string, number>();

  constructor(reconciler: Reconciler, deps: RunnerDependencies) {
    this.reconciler = reconciler;
    this.#deps = deps;
    this.#log = deps.log.with({ reconciler: reconciler.name });
    const { metrics } = deps;
    for (const outcome of reconcileOutcomes) metrics.reconciles.inc({ reconciler: reconciler.name, outcome }, 0);
    metrics.collect(() => metrics.queueDepth.set({ reconciler: reconciler.name }, this.queue.depth));
  }

  /** Works until the queue is closed; in-flight reconciles end first. */
  async run(signal: AbortSignal): Promise<void> {
    const workers = Array.from({ length: this.reconciler.workers ?? defaultWorkers }, () => this.#work(signal));
    await Promise.all(workers);
  }

  /** A key whose reconcile has taken longer than `limitMs`. Such a reconcile ignores its time limit and blocks a worker. */
  stuckKey(limitMs: number): string | undefined {
    const now = performance.now();
    for (const [key, since] of this.#since) if (now - since > limitMs) return key;
    return undefined;
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (let key = await this.queue.get(); key !== undefined; key = await this.queue.get()) {
      if (!(await this.#deps.mayWork()) || signal.aborted) return;
      this.#since.set(key, performance.now());
      await this.#once(key, signal);
      this.#since.delete(key);
      this.queue.done(key);
    }
  }

  async #once(key: string, signal: AbortSignal): Promise<void> {
    const started = performance.now();
    const log = this.#log.with({ key, reconcileId: randomUUID().slice(0, 8) });
    const limit = new TimeLimit(signal, timeLimitMs);
    const context = this.#deps.context({ key, log, signal: limit.signal, requeue: () => this.queue.add(key) });
    let outcome: Outcome;
    try {
      const isOver = goesWithNamespace(this.reconciler, key, context.stores);
      outcome = this.#settle(key, isOver ? undefined : await this.reconciler.reconcile(key, context));
      log.debug('reconciled', { ms: Math.round(performance.now() - started) });
    } catch (error) {
      outcome = this.#fail(key, error, context);
    } finally {
      limit.end();
    }
    const { metrics } = this.#deps;
    const reconciler = this.reconciler.name;
    metrics.reconciles.inc({ reconciler, outcome });
    metrics.reconcileSeconds.observe({ reconciler }, (performance.now() - started) / 1_000);
  }

  #settle(key: string, result: Result | undefined): Outcome {
    this.queue.forget(key);
    if (result?.requeueAfterMs === undefined) return 'success';
    this.queue.addAfter(key, result.requeueAfterMs);
    return 'requeue';
  }

  #fail(key: string, error: unknown, context: Context): Outcome {
    const { log } = context;
    if (error instanceof TerminalError) {
      this.queue.forget(key);
      log.info('will not be tried again until it changes', { reason: error.reason, error: error.message });
      return 'terminal';
    }
    if (error instanceof WaitingError) {
      const { afterMs, mostMs } = error;
      if (afterMs !== undefined && mostMs !== undefined) this.queue.addRateLimited(key, { baseMs: afterMs, mostMs });
      else {
        this.queue.forget(key);
        if (afterMs !== undefined) this.queue.addAfter(key, afterMs);
      }
      log.debug('waiting', { reason: error.reason, error: error.message });
      return 'waiting';
    }
    if (error instanceof NotLeaderError) {
      // Another process is the leader now. The key has to wait in `mayWork` until this process leads again. But `mayWork` lets keys through until
      // the timer of the Lease has fired, a moment later. Without a pause this key would be taken and refused again and again, and the timer could
      // not fire.
      this.queue.addAfter(key, notLeaderPauseMs);
      return 'waiting';
    }
    if (isFreshRefusal(error, context)) {
      this.queue.forget(key);
      this.queue.addAfter(key, freshRightsRetryMs);
      log.debug('waiting', { reason: 'RightsNotActive', error: messageOf(error) });
      return 'waiting';
    }
    this.queue.addRateLimited(key);
    if (isTerminating(error)) {
      log.debug('waiting', { reason: 'NamespaceTerminating', error: messageOf(error) });
      return 'waiting';
    }
    // The cache does not have another writer's change or deletion yet.
    if (isConflict(error) || isAlreadyExists(error) || (isNotFound(error) && !isMissingKind(error))) {
      log.debug('changed meanwhile, trying again', { error: messageOf(error) });
      return 'conflict';
    }
    log.warn('reconcile failed', { error, failures: this.queue.failures(key) });
    return 'error';
  }
}
