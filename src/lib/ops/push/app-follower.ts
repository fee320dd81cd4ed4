// One watch on the pushed app for the whole push: every step waits on it, and a later push or a deletion is seen at once.
// It begins with the first wait: a push that finds nothing to do needs none.

import { setTimeout as sleep } from 'node:timers/promises';
import { kinds } from '../../api/group.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { assertHolder } from './guard.ts';

interface Waiter {
  accepts: (app: CFApp) => boolean;
  resolve: (app: CFApp) => void;
  reject: (error: unknown) => void;
}

const reconnectMs = 300;

export class AppFollower {
  #app: CFApp;
  #failure: Error | undefined;
  readonly #waiters = new Set<Waiter>();
  readonly #cluster: Cluster;
  readonly #pushId: string;
  readonly #stopped = new AbortController();
  #begun = false;

  /** @param app as the server returned it after this push had taken it over */
  constructor(cluster: Cluster, app: CFApp, pushId: string) {
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
  get app(): CFApp {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#app;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** The app as soon as `accepts` holds. @throws KfError `timeout` with `what` was awaited, or what ended the push */
  until(what: string, timeoutMs: number, accepts: (app: CFApp) => boolean, signal?: AbortSignal): Promise<CFApp> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      if (accepts(this.#app)) return resolve(this.#app);
      this.begin();
      const settle =
        <T>(then: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
          this.#waiters.delete(waiter);
          then(value);
        };
      const waiter: Waiter = { accepts, resolve: settle(resolve), reject: settle(reject) };
      const onAbort = (): void => waiter.reject(signal?.reason ?? new KfError('interrupted', 'Interrupted.'));
      const timer = setTimeout(() => waiter.reject(new KfError('timeout', `Waited ${timeoutMs / 1000} s for ${what}.`)), timeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
    });
  }

  /** Resolves never; rejects when the push can no longer go on. For races with other waits. */
  lost(): Promise<never> {
    this.begin();
    return new Promise((_, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiters.add({ accepts: () => false, resolve: () => undefined, reject });
    });
  }

  #see(app: CFApp): void {
    this.#app = app;
    assertHolder(app, this.#pushId);
    for (const waiter of [...this.#waiters]) if (waiter.accepts(app)) waiter.resolve(app);
  }

  #fail(thrown: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    this.#failure = error;
    for (const waiter of [...this.#waiters]) waiter.reject(error);
  }

  async #run(): Promise<void> {
    const { name = '', namespace = '' } = this.#app.metadata;
    let resourceVersion = this.#app.metadata.resourceVersion;
    while (!this.#stopped.signal.aborted) {
      try {
        await this.#watchOnce(namespace, name, resourceVersion);
        resourceVersion = this.#app.metadata.resourceVersion;
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (error instanceof KfError && !['unreachable', 'timeout', 'failed'].includes(error.code)) throw error;
        await sleep(reconnectMs);
        resourceVersion = await this.#readAgain(namespace, name);
      }
    }
  }

  async #readAgain(namespace: string, name: string): Promise<string | undefined> {
    const live = await this.#cluster.get(kinds.app, namespace, name, this.#stopped.signal).catch((error: unknown) => {
      if (error instanceof KfError && error.code === 'unreachable') return this.#app;
      throw error;
    });
    if (live === undefined) throw this.#deleted();
    this.#see(live);
    return live.metadata.resourceVersion;
  }

  async #watchOnce(ns: string, name: string, resourceVersion: string | undefined): Promise<void> {
    const options = { ns, fieldSelector: `metadata.name=${name}`, signal: this.#stopped.signal };
    const events = this.#cluster.watch(kinds.app, resourceVersion === undefined ? options : { ...options, resourceVersion });
    for await (const event of events) {
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
