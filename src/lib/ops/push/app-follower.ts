// One watch on the pushed app for the whole push: every step waits with it, and it notices a later push or a deletion at once. It starts with the
// first wait, so a push without changes needs none.

import { kinds } from '../../api/group.ts';
import { compareResourceVersions, type Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isUnreachable, type KubeError } from '../../kube/errors.ts';
import type { WatchUntilOptions } from '../../kube/watch-list.ts';
import { backoffMs, sleep, timeoutError, timerMs } from '../../wait.ts';
import { assertNotOvertaken } from './lock.ts';

interface Waiter {
  /** Receives the current app; settles the wait when its condition is met. */
  look: (app: Stored<CFApp>) => void;
  reject: (error: unknown) => void;
  interrupted?: ((error: KubeError) => void) | undefined;
}

const reconnectMs = 300;
/** Pause before a watch that has ended is opened again; doubles while watches bring nothing. */
const reopenMs = { baseMs: 50, maxMs: 2_000 };

/** The API server is away or has an internal error; every other error is final. */
const isPassing = (error: KfError): boolean => ['unreachable', 'timeout', 'failed'].includes(error.code);

/**
 * It has its own loop and does not use `watchObject`, because one watch serves all waits of a push and goes on between them: `watchObject` ends with
 * its condition, and a later push or a deletion would be seen only by the next wait.
 */
export class AppFollower {
  #app: Stored<CFApp>;
  #failure: Error | undefined;
  readonly #waiters = new Set<Waiter>();
  readonly #cluster: Cluster;
  readonly #pushId: string;
  readonly #stopped = new AbortController();
  #begun = false;
  /** Number of consecutive watches that ended and brought nothing. */
  #emptyWatches = 0;
  /** The latest version that the watch has brought. */
  #seen: string | undefined;
  /** The version of our own last write, until the watch brings it or a later one. */
  #awaited: string | undefined;

  /** @param app as the server returned it when this push took it over */
  constructor(cluster: Cluster, app: Stored<CFApp>, pushId: string) {
    this.#cluster = cluster;
    this.#app = app;
    this.#pushId = pushId;
  }

  /** Starts to follow; later calls do nothing. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#run().catch((error: unknown) => this.#fail(error));
  }

  /** The app as last seen; kept up to date since `begin`. @throws KfError conflict when a later push has taken over */
  get app(): Stored<CFApp> {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#app;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Sets the app that this push has just written; older versions from the watch are ignored. */
  wrote(app: Stored<CFApp>): void {
    const version = app.metadata.resourceVersion;
    if (compareResourceVersions(version, this.#seen) <= 0) return;
    this.#app = app;
    if (this.#begun) this.#awaited = version;
  }

  /** Waits for an app that `accepts` approves. @throws KfError `timeout` with `what` was awaited, or the error that ended the push */
  until(what: string, timeoutMs: number, accepts: (app: Stored<CFApp>) => boolean, signal?: AbortSignal): Promise<Stored<CFApp>> {
    const options = { timeoutMs, describe: what, signal };
    return this.watch((app) => (accepts(app) ? app : undefined), options);
  }

  /**
   * Calls `check` with the app, now and after every change, until it returns a value; an error that it throws ends the wait. @throws as {@link
   * until}
   */
  watch<R>(check: (app: Stored<CFApp>) => R | undefined, { timeoutMs, describe, signal, onInterruption }: WatchUntilOptions): Promise<R> {
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.#waiters.delete(waiter);
        settle();
      };
      const fail = (error: unknown): void => finish(() => reject(error));
      const look = (app: Stored<CFApp>): void => {
        try {
          const answer = check(app);
          if (answer !== undefined) finish(() => resolve(answer));
        } catch (error) {
          fail(error);
        }
      };
      const waiter: Waiter = { look, reject: fail, interrupted: onInterruption };
      const onAbort = (): void => fail(signal?.reason ?? new KfError('interrupted', 'Interrupted.'));
      const timer = setTimeout(() => fail(timeoutError(timeoutMs, describe)), timerMs(timeoutMs));
      if (this.#failure !== undefined) return fail(this.#failure);
      // A signal that has already aborted emits no further event.
      if (signal?.aborted === true) return onAbort();
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
      look(this.#app);
      if (this.#waiters.has(waiter)) this.begin();
    });
  }

  /** Never resolves; rejects when the push can no longer continue. For races with other waits. */
  lost(): Promise<never> {
    this.begin();
    return new Promise((_, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiters.add({ look: () => undefined, reject });
    });
  }

  #see(app: Stored<CFApp>): void {
    const version = app.metadata.resourceVersion;
    if (compareResourceVersions(version, this.#seen) > 0) this.#seen = version;
    assertNotOvertaken(app, this.#pushId);
    if (this.#awaited !== undefined && compareResourceVersions(version, this.#awaited) < 0) return;
    this.#awaited = undefined;
    this.#app = app;
    for (const waiter of [...this.#waiters]) waiter.look(app);
  }

  #fail(thrown: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    this.#failure = error;
    for (const waiter of [...this.#waiters]) waiter.reject(error);
  }

  async #run(): Promise<void> {
    const { name, namespace } = this.#app.metadata;
    let { resourceVersion } = this.#app.metadata;
    while (!this.#stopped.signal.aborted) {
      try {
        await this.#watchOnce(namespace, name, resourceVersion);
        resourceVersion = this.#app.metadata.resourceVersion;
        // A watch that begins at our own write does not bring that write again.
        if (this.#awaited === resourceVersion) this.#awaited = undefined;
        // A proxy may end watches at once, so there is a pause.
        await sleep(backoffMs(this.#emptyWatches++, reopenMs), this.#stopped.signal);
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (error instanceof KfError && !isPassing(error)) throw error;
        if (isUnreachable(error)) for (const waiter of this.#waiters) waiter.interrupted?.(error);
        await sleep(reconnectMs, this.#stopped.signal);
        resourceVersion = await this.#readAgain(namespace, name);
      }
    }
  }

  async #readAgain(namespace: string, name: string): Promise<string> {
    let live: Stored<CFApp> | undefined;
    try {
      live = await this.#cluster.get(kinds.app, namespace, name, this.#stopped.signal);
    } catch (error) {
      if (error instanceof KfError && isPassing(error)) return this.#app.metadata.resourceVersion;
      throw error;
    }
    if (live === undefined) throw this.#deleted();
    this.#awaited = undefined;
    this.#see(live);
    return live.metadata.resourceVersion;
  }

  async #watchOnce(ns: string, name: string, resourceVersion: string): Promise<void> {
    const options = { ns, fieldSelector: `metadata.name=${name}`, resourceVersion, signal: this.#stopped.signal };
    const events = this.#cluster.watch(kinds.app, options);
    for await (const event of events) {
      this.#emptyWatches = 0;
      if (event.type === 'BOOKMARK') continue;
      if (event.type === 'DELETED') throw this.#deleted();
      this.#see(event.object);
    }
  }

  #deleted(): KfError {
    const { displayName } = this.#app.spec;
    return new KfError('not-found', `App '${displayName}' was deleted while it was being pushed.`, { hints: [`kf push ${displayName}`] });
  }
}
