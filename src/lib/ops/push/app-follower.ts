// One watch on the pushed app for the whole push: every step waits on it, and a later push or a deletion is seen at once.
// It begins with the first wait: a push that finds nothing to do needs none.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isUnreachable, type KubeError } from '../../kube/errors.ts';
import type { WatchUntilOptions } from '../../kube/watch-list.ts';
import { backoffMs, sleep, timeoutError, timerMs } from '../../wait.ts';
import { assertHolder } from './lock.ts';

interface Waiter {
  /** Shows the app as it is now; settles the wait when it has seen enough. */
  look: (app: Stored<CFApp>) => void;
  reject: (error: unknown) => void;
  interrupted?: ((error: KubeError) => void) | undefined;
}

const reconnectMs = 300;
/** Before a watch that has ended is opened again; doubles while watches bring nothing. */
const reopenMs = { baseMs: 50, maxMs: 2_000 };

/** The API server is away, or has trouble of its own; anything else that it says holds. */
const isPassing = (error: KfError): boolean => ['unreachable', 'timeout', 'failed'].includes(error.code);

export class AppFollower {
  #app: Stored<CFApp>;
  #failure: Error | undefined;
  readonly #waiters = new Set<Waiter>();
  readonly #cluster: Cluster;
  readonly #pushId: string;
  readonly #stopped = new AbortController();
  #begun = false;
  /** Watches in a row that ended and brought nothing. */
  #emptyWatches = 0;
  /** Versions that the watch has brought. */
  readonly #seen = new Set<string>();
  /** The version of the own last write, until the watch brings it. */
  #awaited: string | undefined;

  /** @param app as the server returned it after this push had taken it over */
  constructor(cluster: Cluster, app: Stored<CFApp>, pushId: string) {
    this.#cluster = cluster;
    this.#app = app;
    this.#pushId = pushId;
  }

  /** Follows from now on; asked again, nothing more happens. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#run().catch((error: unknown) => this.#fail(error));
  }

  /** The app as last seen, since `begin` kept up to date. @throws KfError conflict when a later push has taken over */
  get app(): Stored<CFApp> {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#app;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** The app as this push has just written it: what the watch still brings from before is old news. */
  wrote(app: Stored<CFApp>): void {
    const version = app.metadata.resourceVersion;
    if (this.#seen.has(version)) return;
    this.#app = app;
    if (this.#begun) this.#awaited = version;
  }

  /** The app as soon as `accepts` holds. @throws KfError `timeout` with `what` was awaited, or what ended the push */
  until(what: string, timeoutMs: number, accepts: (app: Stored<CFApp>) => boolean, signal?: AbortSignal): Promise<Stored<CFApp>> {
    const options = { timeoutMs, describe: what, signal };
    return this.watch((app) => (accepts(app) ? app : undefined), options);
  }

  /** Shows `check` the app, now and after every change, until it answers; what it throws ends the wait. @throws as {@link until} */
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
      // A signal that has fired already fires no more.
      if (signal?.aborted === true) return onAbort();
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
      look(this.#app);
      if (this.#waiters.has(waiter)) this.begin();
    });
  }

  /** Resolves never; rejects when the push can no longer go on. For races with other waits. */
  lost(): Promise<never> {
    this.begin();
    return new Promise((_, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiters.add({ look: () => undefined, reject });
    });
  }

  #see(app: Stored<CFApp>): void {
    const version = app.metadata.resourceVersion;
    this.#seen.add(version);
    assertHolder(app, this.#pushId);
    if (this.#awaited !== undefined && this.#awaited !== version) return;
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
        // A watch that begins at the own write does not bring it again.
        if (this.#awaited === resourceVersion) this.#awaited = undefined;
        // A proxy that ends watches at once must not be asked in a tight loop.
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
