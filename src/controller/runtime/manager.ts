// Connects the parts: informers feed queues, workers run while this process is the leader, and everything stops in order.

import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { configMapType } from '../../lib/api/core.ts';
import { places } from '../../lib/api/group.ts';
import { parseKfInfo, type KfInfo } from '../../lib/api/kf-info.ts';
import type { KubeObject, ResourceType } from '../../lib/api/object.ts';
import { defined } from '../../lib/defined.ts';
import type { Cluster } from '../../lib/kube/cluster.ts';
import { EventRecorder } from './events.ts';
import { fence, type FencedCluster } from './fenced.ts';
import { serveHealth } from './http.ts';
import { Informer, SharedByInformers, type Source } from './informer.ts';
import { Leader, type LeaderOptions } from './leader.ts';
import type { Logger } from './log.ts';
import { Memory } from './memory.ts';
import { Metrics } from './metrics.ts';
import { OutsideCalls } from './outside.ts';
import type { Context, Reconciler, Stores } from './reconciler.ts';
import { WaitingError } from './result.ts';
import { Runner, type Work } from './runner.ts';
import { splitKey, type Store } from './store.ts';

export interface ManagerOptions {
  cluster: Cluster;
  /** The selection for each kind; a kind without an entry is watched in all namespaces without a selector. */
  sources: readonly Source[];
  reconcilers: readonly Reconciler[];
  leader: LeaderOptions;
  rootNamespace: string;
  /** No server if left out. */
  httpPort?: number;
  /** The API server's time; default: this machine's. */
  now?: () => number;
  /** A watch without an event for this long is opened again; default: that of {@link Informer}. */
  silenceMs?: number;
  /** `/healthz` fails when a reconcile, a watch or the leader election shows no sign of life for this long. */
  stuckMs?: number;
  log: Logger;
}

const drainMs = 10_000;
/** Reconciles end after a minute, silent watches after two and a half: after this time they will not recover. */
const defaultStuckMs = 5 * 60_000;
const sourceId = (type: ResourceType): string => `${type.group}/${type.plural}`;

export class Manager {
  readonly #options: ManagerOptions;
  readonly #metrics = new Metrics();
  readonly #informers = new Map<string, Informer<KubeObject>>();
  readonly #runners: Runner[];
  readonly #stores: Stores;
  readonly #leader: Leader;
  readonly #cluster: FencedCluster;
  readonly #events: EventRecorder;
  readonly #now: () => number;
  #memory = new Memory();
  readonly #shared = new SharedByInformers();
  #gate = Promise.withResolvers<boolean>();
  #info: { text: string; value: KfInfo } | undefined;

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    const { cluster, log, leader } = options;
    const steadiness = { since: () => this.#steadySince(), inherit: (since: number) => this.#inheritGap(since) };
    this.#leader = new Leader(cluster, { ...leader, serverNow: this.#now, steadiness }, log, (isLeader) => this.#setGate(isLeader));
    this.#stores = { of: (type) => this.#storeOf(type), has: (type) => this.#informers.has(sourceId(type)) };
    this.#cluster = fence(cluster, {
      assertLeader: () => this.#leader.assertLeader(),
      observe: (type, object) => this.#informers.get(sourceId(type))?.observe(object),
      measure: (verb, type, seconds) => this.#measureRequest(verb, type, seconds),
    });
    this.#events = new EventRecorder(this.#cluster, leader.identity, log);
    this.#metrics.collect(() => this.#metrics.leader.set(this.#leader.isLeader ? 1 : 0));
    this.#runners = options.reconcilers.map((reconciler) => this.#plug(reconciler));
  }

  /** Runs until `signal` aborts, then drains: no new keys, running reconciles end, the Lease is released. */
  async run(signal: AbortSignal): Promise<void> {
    const inner = new AbortController();
    const server = await this.#serve();
    // A signal that has already aborted emits no further event.
    if (signal.aborted) return void server?.close();
    const informers = [...this.#informers.values()].map((informer) => informer.run(inner.signal));
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const leading = new AbortController();
    const leader = this.#leader.run(leading.signal);
    const synced = Promise.all([...this.#informers.values()].map((informer) => informer.synced()));
    await Promise.race([aborted, synced]);
    const workers = signal.aborted ? [] : this.#runners.map((runner) => runner.run(inner.signal));
    if (!signal.aborted) this.#options.log.info('all kinds are listed', { kinds: this.#informers.size });
    await aborted;
    for (const runner of this.#runners) runner.queue.close();
    // Lets workers that wait for leadership end. A leader's gate is resolved already, so this changes nothing there.
    this.#gate.resolve(false);
    await Promise.race([Promise.all(workers), sleep(drainMs, undefined, { ref: false })]);
    leading.abort();
    await leader;
    inner.abort();
    await Promise.all(informers);
    server?.close();
    this.#options.log.info('ended');
  }

  /** Prometheus text format, as /metrics serves it. */
  renderMetrics(): Promise<string> {
    return this.#metrics.render();
  }

  #measureRequest(verb: string, { kind }: ResourceType, seconds: number): void {
    this.#metrics.requests.inc({ verb, kind });
    this.#metrics.requestSeconds.observe({ verb }, seconds);
  }

  #serve(): Promise<Server> | undefined {
    const { httpPort } = this.#options;
    if (httpPort === undefined) return undefined;
    return serveHealth(httpPort, {
      unhealthy: () => this.#whatIsStuck(),
      unready: () => {
        const missing = [...this.#informers.values()]
          .filter((informer) => !informer.hasSynced)
          .map((informer) => informer.source.type.plural);
        return missing.length === 0 ? undefined : `not listed yet: ${missing.join(', ')}`;
      },
      metrics: () => this.renderMetrics(),
    });
  }

  #whatIsStuck(): string | undefined {
    const { stuckMs = defaultStuckMs } = this.#options;
    for (const runner of this.#runners) {
      const key = runner.stuckKey(stuckMs);
      if (key !== undefined) return `the reconciler '${runner.reconciler.name}' does not come back from ${key}`;
    }
    const silent = [...this.#informers.values()].find((informer) => informer.silentMs > stuckMs);
    if (silent !== undefined) return `nothing is heard of ${silent.source.type.plural} any more`;
    return this.#leader.silentMs > stuckMs ? 'the Lease is not looked at any more' : undefined;
  }

  #setGate(isLeader: boolean): void {
    // Another leader may work between two terms of this process, so that what it remembers of the first one is not true in the second one.
    this.#memory = new Memory();
    if (isLeader) this.#gate.resolve(true);
    else this.#gate = Promise.withResolvers<boolean>();
  }

  /** Since when all kinds have had no gap. */
  #steadySince(): number {
    return Math.max(0, ...[...this.#informers.values()].map(({ store }) => store.steadySince));
  }

  #inheritGap(since: number): void {
    for (const { store } of this.#informers.values()) store.steadySince = Math.max(store.steadySince, since);
  }

  #storeOf<T extends KubeObject>(type: ResourceType<T>): Store<T> {
    const informer = this.#informers.get(sourceId(type));
    if (informer === undefined) throw new Error(`No reconciler of this process watches or reads ${type.plural}.`);
    return informer.store as unknown as Store<T>;
  }

  #informerFor(type: ResourceType): Informer<KubeObject> {
    const id = sourceId(type);
    let informer = this.#informers.get(id);
    if (informer === undefined) {
      const source = this.#options.sources.find((candidate) => sourceId(candidate.type) === id) ?? { type };
      const times = { now: this.#now, ...defined({ silenceMs: this.#options.silenceMs }) };
      informer = new Informer(this.#options.cluster, source, this.#options.log, times, this.#shared);
      this.#informers.set(id, informer);
    }
    return informer;
  }

  #plug(reconciler: Reconciler): Runner {
    // Each reconciler makes one kind of call, so a pool for each reconciler separates the kinds: probes never wait behind registries.
    const outside = new OutsideCalls();
    const runner = new Runner(reconciler, {
      context: (work) => this.#context(reconciler, outside, work),
      mayWork: () => this.#gate.promise,
      log: this.#options.log,
      metrics: this.#metrics,
    });
    for (const type of [configMapType, ...(reconciler.reads ?? [])]) this.#informerFor(type);
    for (const { type, name, of } of reconciler.indexes ?? []) this.#informerFor(type).store.addIndex(name, of);
    for (const { type, keys, only } of reconciler.watches) {
      this.#informerFor(type).listen((before, after) => {
        const isKnown = before !== undefined && after !== undefined && before !== after;
        if (isKnown && only !== undefined && !only(before, after)) return;
        const affected = new Set<string>();
        for (const object of [before, after]) {
          for (const key of object === undefined ? [] : keys(object, this.#stores)) affected.add(key);
        }
        for (const key of affected) runner.queue.add(key);
      });
    }
    return runner;
  }

  #context(reconciler: Reconciler, outside: OutsideCalls, { key, log, signal, requeue }: Work): Context {
    return {
      cluster: this.#cluster,
      stores: this.#stores,
      memory: this.#memory,
      metrics: this.#metrics,
      log,
      signal,
      info: () => this.#currentInfo(),
      event: (type, object, note) => this.#events.record(type, object, note, reconciler.name),
      outside: (id, timeoutMs, work) => outside.ask({ id, space: splitKey(key).ns, timeoutMs }, requeue, work),
      now: this.#now,
    };
  }

  #currentInfo(): KfInfo {
    const text = this.#stores.of(configMapType).get(this.#options.rootNamespace, places.info)?.data?.[places.infoKey];
    if (text === undefined)
      throw new WaitingError('NotSetUp', `The ConfigMap ${this.#options.rootNamespace}/${places.info} does not exist yet.`, 5_000);
    if (this.#info?.text !== text) this.#info = { text, value: parseKfInfo(text) };
    return this.#info.value;
  }
}
