// Lists and then watches one kind without end: keeps its store up to date and reports changes to listeners.

import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { apiVersionOf, compareResourceVersions } from '../../lib/api/object.ts';
import type { Cluster, ListOptions, WatchEvent } from '../../lib/kube/cluster.ts';
import { isExpired, isMissingKind } from '../../lib/kube/errors.ts';
import type { Logger } from './log.ts';
import { SharedTexts } from './shared-texts.ts';
import { Slots } from './slots.ts';
import { keyOf, Store } from './store.ts';
import { defined } from '../../lib/defined.ts';
import { messageOf } from '../../lib/errors.ts';

/** Selects the objects of a kind that the controller caches. */
export interface Source<T extends KubeObject = KubeObject> {
  type: ResourceType<T>;
  ns?: string;
  /** Keys that must be present, separated by commas; other forms are not supported here. */
  labelSelector?: string;
  /** Only `metadata.name=…`. */
  fieldSelector?: string;
  /** Removes fields that nobody reads, to keep the cache small. */
  trim?: (object: Stored<T>) => Stored<T>;
  /** The kind may not be defined in this cluster: its store is empty then, and the informer keeps looking for the kind. */
  optional?: boolean;
}

/** `before` is the object as last reported, undefined for a new one; `after` is undefined when it is gone. A resync passes the same object twice. */
export type ChangeListener<T extends KubeObject> = (before: Stored<T> | undefined, after: Stored<T> | undefined) => void;

export interface InformerTimes {
  /** First pause after an error; doubles up to `maxBackoffMs`. */
  minBackoffMs: number;
  maxBackoffMs: number;
  /** A watch without an event or bookmark for this long counts as dead. Servers send a bookmark about every minute. */
  silenceMs: number;
  /** All objects are reported again after this time, give or take a tenth, in case a change was missed. */
  resyncMs: number;
  /** The API server's time, as reconcilers use it. */
  now: () => number;
}

/** What the informers of one controller share. */
export class SharedByInformers {
  readonly texts = new SharedTexts();
  /** A page is many times as large while it is read as what is kept of it, and the process does not give that memory back. */
  readonly lists = new Slots(2);
}

const defaultTimes: InformerTimes = {
  minBackoffMs: 100,
  maxBackoffMs: 10_000,
  silenceMs: 150_000,
  resyncMs: 10 * 3_600_000,
  now: Date.now,
};
/** A watch that ended sooner and brought nothing counts as a failure, as in client-go. */
const shortestWatchMs = 1_000;

/** Reconcilers read only annotations of Cloud Foundry. Among the others is kubectl's copy of the whole object (from `kubectl apply`). */
function ownAnnotations(annotations: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => (key.split('/', 1)[0] ?? '').endsWith('cloudfoundry.org')));
}

/**
 * It has its own loop and does not use `watchUntil` of the CLI, because it waits for nothing: it follows a kind until the program ends, keeps its
 * store over reconnections, and counts as dead only when no bookmark arrives.
 */
export class Informer<T extends KubeObject> {
  readonly store = new Store<T>();
  readonly source: Source<T>;
  readonly #cluster: Cluster;
  readonly #log: Logger;
  readonly #times: InformerTimes;
  readonly #shared: SharedByInformers;
  readonly #listeners: ChangeListener<T>[] = [];
  /**
   * Objects that our own write or read has put into the store, as listeners last saw them. For example, listeners know version 5, and our own
   * write puts version 6 into the store. When the watch brings version 6, `before` must be version 5, and the store no longer has it.
   */
  readonly #told = new Map<string, Stored<T> | undefined>();
  readonly #synced: Promise<void>;
  #resolveSynced!: () => void;
  #hasSynced = false;
  #failures = 0;
  #lastSign = performance.now();
  #listVersion: string | undefined;

  constructor(
    cluster: Cluster,
    source: Source<T>,
    log: Logger,
    times: Partial<InformerTimes> = {},
    shared: SharedByInformers = new SharedByInformers(),
  ) {
    this.#cluster = cluster;
    this.#shared = shared;
    this.source = source;
    this.#log = log.with({ informer: source.type.plural });
    this.#times = { ...defaultTimes, ...times };
    this.#synced = new Promise((resolve) => {
      this.#resolveSynced = resolve;
    });
  }

  /** True after the first complete list. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Milliseconds since the last sign of life of the loop: a list, an event, or an error after which it waits. */
  get silentMs(): number {
    return performance.now() - this.#lastSign;
  }

  /** Resolves after the first complete list. */
  synced(): Promise<void> {
    return this.#synced;
  }

  listen(listener: ChangeListener<T>): void {
    this.#listeners.push(listener);
  }

  /**
   * Puts an object that a write or an uncached read returned into the store, so that the next reconcile sees it. Listeners get the change from the
   * watch.
   */
  observe(object: Stored<T>): void {
    // Before the first list this would be the only object in the store; and an object that the selector excludes must stay out.
    if (!this.#hasSynced || !this.#selects(object)) return;
    const { namespace, name } = object.metadata;
    const before = this.store.get(namespace, name);
    if (!this.#isReadable(object)) return;
    const isTaken = this.store.put(this.#prepare({ ...object, metadata: { ...object.metadata } }));
    const key = keyOf(object);
    if (isTaken && before?.metadata.resourceVersion !== object.metadata.resourceVersion && !this.#told.has(key))
      this.#told.set(key, before);
  }

  #selects(object: Stored<T>): boolean {
    const { ns, labelSelector, fieldSelector } = this.source;
    if (ns !== undefined && object.metadata.namespace !== ns) return false;
    if (fieldSelector !== undefined && fieldSelector !== `metadata.name=${object.metadata.name}`) return false;
    return labelSelector === undefined || labelSelector.split(',').every((key) => key in (object.metadata.labels ?? {}));
  }

  /** Runs until `signal` aborts; never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const resync = setInterval(() => this.#resync(), this.#times.resyncMs * (0.9 + Math.random() * 0.2));
    await this.#listAndWatch(signal);
    clearInterval(resync);
  }

  #resync(): void {
    for (const object of this.store.list()) this.#tell(this.#lastTold(object), object);
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    while (!signal.aborted) {
      try {
        version ??= await this.#relist(signal);
        const followed = await this.#follow(version, signal);
        version = followed.version;
        if (followed.wasShort) await this.#pause(new Error('The watch ended at once and brought nothing.'), signal);
        else this.#failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (isExpired(error)) {
          this.#log.info('watch expired, listing again');
          version = undefined;
          continue;
        }
        version = undefined;
        await this.#pause(error, signal);
      }
    }
  }

  async #pause(error: unknown, signal: AbortSignal): Promise<void> {
    this.#lastSign = performance.now();
    const missing = this.source.optional === true && isMissingKind(error);
    if (missing && !this.#hasSynced) this.#markSynced();
    const ms = missing
      ? this.#times.maxBackoffMs
      : Math.min(this.#times.maxBackoffMs, this.#times.minBackoffMs * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
    if (missing) this.#log.debug('kind is not installed', { retryInMs: ms });
    else this.#log.warn('list or watch failed', { error: (error as Error).message, retryInMs: ms });
    await sleep(ms * (0.9 + Math.random() * 0.2), undefined, { signal }).catch(() => undefined);
  }

  #options(signal: AbortSignal): ListOptions {
    const { ns, labelSelector, fieldSelector } = this.source;
    return {
      signal,
      ...defined({ ns, labelSelector, fieldSelector }),
    };
  }

  async #relist(signal: AbortSignal): Promise<string> {
    // Each page is trimmed before the next one is read.
    const keep = (item: Stored<T>): Stored<T> => this.#prepare(item);
    const { items, resourceVersion } = await this.#shared.lists.run(() =>
      this.#cluster.list(this.source.type, { ...this.#options(signal), keep }),
    );
    const objects = items.filter((item) => this.#isReadable(item));
    // A cluster that was restored from a backup counts versions from an earlier number again, so everything cached is wrong.
    if (this.#listVersion !== undefined && compareResourceVersions(resourceVersion, this.#listVersion) < 0) {
      this.store.clear();
      this.#told.clear();
    }
    this.#listVersion = resourceVersion;
    const before = new Map(objects.map((object) => [object, this.#lastTold(object)]));
    for (const gone of this.store.replaceAll(objects, resourceVersion)) this.#tell(this.#lastTold(gone) ?? gone, undefined);
    for (const object of objects) this.#tell(before.get(object), object);
    // The first list too may follow a gap, when the API server was away while this process started: others were cut off as well.
    if (this.#hasSynced || this.#cluster.awayAt > -Infinity) this.store.steadySince = this.#times.now();
    this.#markSynced();
    return resourceVersion;
  }

  #markSynced(): void {
    this.#lastSign = performance.now();
    this.#hasSynced = true;
    this.#resolveSynced();
  }

  /** Follows one watch connection until its regular end and returns the version to continue from. */
  async #follow(from: string, signal: AbortSignal): Promise<{ version: string; wasShort: boolean }> {
    let version = from;
    let isEmpty = true;
    const begun = performance.now();
    const dead = new AbortController();
    const either = AbortSignal.any([signal, dead.signal]);
    let alarm = this.#armAlarm(dead);
    try {
      for await (const event of this.#cluster.watch(this.source.type, { ...this.#options(either), resourceVersion: from })) {
        clearTimeout(alarm);
        alarm = this.#armAlarm(dead);
        this.#lastSign = performance.now();
        this.#failures = 0;
        isEmpty = false;
        version = this.#take(event) ?? version;
      }
    } catch (error) {
      if (!dead.signal.aborted || signal.aborted) throw error;
      this.#lastSign = performance.now();
      // What was not heard in the meantime comes only with the next connection.
      this.store.steadySince = this.#times.now();
      this.#log.warn('watch was silent, connecting again');
    } finally {
      clearTimeout(alarm);
    }
    return { version, wasShort: isEmpty && performance.now() - begun < shortestWatchMs };
  }

  #armAlarm(dead: AbortController): NodeJS.Timeout {
    return setTimeout(() => dead.abort(), this.#times.silenceMs);
  }

  #take(event: WatchEvent<T>): string | undefined {
    if (event.type === 'BOOKMARK') return event.resourceVersion;
    const object = this.#prepare(event.object);
    const before = this.#lastTold(object);
    const isReadable = this.#isReadable(object);
    if (event.type === 'DELETED' || !isReadable) {
      this.store.remove(object);
      if (isReadable || before !== undefined) this.#tell(before ?? object, undefined);
    } else {
      this.store.put(object);
      this.#tell(before, object);
    }
    return object.metadata.resourceVersion;
  }

  /**
   * False for an object that lacks what its kind requires, which an API server without that requirement has accepted: it counts as not there. An error
   * about it would end the watch, and with it everything that waits for other objects of the kind.
   */
  #isReadable(object: Stored<T>): boolean {
    const fault = this.store.faultOf(object);
    if (fault === undefined) return true;
    this.#log.warn('object ignored', { object: keyOf(object), error: messageOf(fault) });
    return false;
  }

  /** The form that reconcilers see: kind and apiVersion are always set (lists leave them out), and fields that only others read are removed. */
  #prepare(object: Stored<T>): Stored<T> {
    const trimmed = this.#trimmed(object);
    // Not `delete`: it makes an object several times as large.
    const { managedFields: _, ...metadata } = trimmed.metadata as Stored['metadata'] & { managedFields?: unknown };
    if (metadata.annotations !== undefined) metadata.annotations = ownAnnotations(metadata.annotations);
    const { kind = this.source.type.kind, apiVersion = apiVersionOf(this.source.type) } = trimmed;
    return this.#shared.texts.shareIn({ ...trimmed, kind, apiVersion, metadata });
  }

  /** As it is, if it lacks what its kind requires. */
  #trimmed(object: Stored<T>): Stored<T> {
    try {
      return this.source.trim?.(object) ?? object;
    } catch {
      return object;
    }
  }

  #lastTold(object: Stored<T>): Stored<T> | undefined {
    const key = keyOf(object);
    return this.#told.has(key) ? this.#told.get(key) : this.store.get(object.metadata.namespace, object.metadata.name);
  }

  #tell(before: Stored<T> | undefined, after: Stored<T> | undefined): void {
    const object = after ?? before;
    if (object === undefined) return;
    const stored = this.store.get(object.metadata.namespace, object.metadata.name);
    const isAhead = stored !== undefined && stored.metadata.resourceVersion !== after?.metadata.resourceVersion;
    if (isAhead) this.#told.set(keyOf(object), after);
    else this.#told.delete(keyOf(object));
    for (const listener of this.#listeners) {
      try {
        listener(before, after);
      } catch (error) {
        this.#log.error('a listener failed', { error });
      }
    }
  }
}
