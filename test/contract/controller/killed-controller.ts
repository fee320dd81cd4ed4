// A controller that is killed at one of its writes: nothing of it reaches the cluster afterwards, and the next one begins without memory.

import { AsyncLocalStorage } from 'node:async_hooks';
import { allReconcilers } from '../../../src/controller/reconcilers.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import type { Reconciler } from '../../../src/controller/runtime/reconciler.ts';
import { sources } from '../../../src/controller/sources.ts';
import { namespaceType } from '../../../src/lib/api/core.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import type { Cluster, PatchOptions } from '../../../src/lib/kube/cluster.ts';
import { errorFromAnswer } from '../../../src/lib/kube/errors.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';

/** The reconciler whose step runs, also in what it has left running. */
const current = new AsyncLocalStorage<string>();

/** `before`: the write is not done. `after`: it is done, and the controller never learns of it. */
export type Moment = 'before' | 'after';

export interface Kill {
  /** As {@link KilledController.steps} names it. */
  step: string;
  moment: Moment;
  /** Which of these writes; 1 is the first. */
  nth: number;
}

/** Names the reconciler in its steps. */
function named(reconciler: Reconciler): Reconciler {
  return { ...reconciler, reconcile: (key, context) => current.run(reconciler.name, () => reconciler.reconcile(key, context)) };
}

/** No value has to be stable for long, because this cluster counts at once. */
const fastClock = (): number => performance.now() * 50;

const reconcilers = (): Reconciler[] => allReconcilers({ fetchProgram: 'fetch()', now: fastClock }).map(named);

/** The names of the controller's reconcilers. */
export const reconcilerNames = (): string[] => reconcilers().map(({ name }) => name);

/** One process of the controller. */
interface Process {
  isDead: boolean;
  aborter: AbortController;
}

/** The API server refuses new objects in a namespace that is being deleted, or is gone. */
function terminating(type: ResourceType, name: string, ns: string): Error {
  const message = `${type.plural} "${name}" is forbidden: unable to create new content in namespace ${ns} because it is being terminated`;
  const details = { name, causes: [{ reason: 'NamespaceTerminating', message: `namespace ${ns} is being terminated` }] };
  return errorFromAnswer(403, JSON.stringify({ kind: 'Status', status: 'Failure', reason: 'Forbidden', message, code: 403, details }));
}

export class KilledController {
  /** The writes of all reconcilers in their order, as `reconciler verb Kind`. */
  readonly steps: string[] = [];
  /** The kills that are left, by their step. */
  readonly #due: Map<string, Kill>;
  readonly #counts = new Map<string, number>();
  readonly #cluster: MemoryCluster;
  readonly #now: () => number;
  readonly #runs: Promise<void>[] = [];
  #process: Process;

  /** @param now the wall clock in milliseconds */
  constructor(cluster: MemoryCluster, kills: readonly Kill[], now: () => number) {
    this.#cluster = cluster;
    this.#due = new Map(kills.map((kill) => [kill.step, kill]));
    this.#now = now;
    this.#process = this.#start();
  }

  /** The steps at which no controller was killed, although one should have been. */
  get missed(): string[] {
    return [...this.#due.keys()];
  }

  /** Ends it as SIGTERM does. */
  async stop(): Promise<void> {
    this.#process.aborter.abort();
    await Promise.all(this.#runs);
  }

  /** A write of a reconciler outside the API server. @throws Error when the controller is killed at it */
  outside<R>(reconciler: string, step: string, send: () => Promise<R>): Promise<R> {
    return current.run(reconciler, () => this.#write(this.#process, step, send));
  }

  #start(): Process {
    const process: Process = { isDead: false, aborter: new AbortController() };
    const manager = new Manager({
      cluster: this.#connection(process),
      sources: sources('cf'),
      reconcilers: reconcilers(),
      // A container that is started again in its pod has the name of the one before, and so its Lease.
      leader: { ns: 'kf-system', name: 'kf-controller', identity: 'kf-controller-0' },
      rootNamespace: 'cf',
      now: this.#now,
      log: createLogger('error', (line) => globalThis.process.stderr.write(line)),
    });
    // Nothing of the controller before belongs to a step that starts the next one.
    this.#runs.push(current.exit(() => manager.run(process.aborter.signal)));
    return process;
  }

  /** What a process has of the cluster; nothing after its end. */
  #connection(process: Process): Cluster {
    const cluster = this.#cluster;
    const alive = <R>(result: R): R => {
      if (process.isDead) throw new Error('killed');
      return result;
    };
    const read = async <R>(send: () => Promise<R>): Promise<R> => alive(await alive(send)());
    const name = (verb: string, { kind }: ResourceType, { subresource }: PatchOptions = {}): string =>
      `${verb} ${kind}${subresource === undefined ? '' : `/${subresource}`}`;
    return {
      identity: cluster.identity,
      awayAt: cluster.awayAt,
      get: (type, ns, of) => read(() => cluster.get(type, ns, of)),
      list: (...given) => read(() => cluster.list(...given)),
      async *watch(...given) {
        for await (const event of alive(cluster).watch(...given)) yield alive(event);
      },
      create: (type, object) =>
        this.#write(process, name('create', type), async () => {
          this.#assertNamespace(type, object);
          return cluster.create(type, withFinalizer(type, object));
        }),
      mergePatch: (type, ns, of, patch, options) =>
        this.#write(process, name('patch', type, options), () => cluster.mergePatch(type, ns, of, patch, options)),
      apply: (type, object) => this.#write(process, name('apply', type), () => cluster.apply(type, object)),
      replace: (type, object) => this.#write(process, name('replace', type), () => cluster.replace(type, object)),
      delete: (...given) => this.#write(process, name('delete', given[0]), () => cluster.delete(...given)),
      logs: (ns, pod) => read(() => cluster.logs(ns, pod)),
      table: () => cluster.table(),
      raw: () => cluster.raw(),
      openChannels: () => cluster.openChannels(),
      canI: () => cluster.canI(),
      whoAmI: () => cluster.whoAmI(),
      close: () => undefined,
    };
  }

  #assertNamespace(type: ResourceType, { metadata: { name = '', namespace } }: KubeObject): void {
    if (namespace === undefined) return;
    const live = this.#cluster.peek(namespaceType, undefined, namespace);
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) throw terminating(type, name, namespace);
  }

  async #write<R>(process: Process, what: string, send: () => Promise<R>): Promise<R> {
    if (process.isDead) throw new Error('killed');
    const reconciler = current.getStore();
    // The leader election is not a step of a reconciler.
    if (reconciler === undefined) return send();
    const step = `${reconciler} ${what}`;
    this.steps.push(step);
    this.#counts.set(step, (this.#counts.get(step) ?? 0) + 1);
    if (this.#isDue(step, 'before')) this.#end(process);
    const result = await send();
    if (process.isDead) throw new Error('killed');
    if (this.#isDue(step, 'after')) this.#end(process);
    return result;
  }

  #isDue(step: string, moment: Moment): boolean {
    const kill = this.#due.get(step);
    return kill?.moment === moment && (this.#counts.get(step) ?? 0) >= kill.nth && this.#due.delete(step);
  }

  /** The process is gone, and its successor starts. */
  #end(process: Process): never {
    process.isDead = true;
    process.aborter.abort();
    this.#process = this.#start();
    throw new Error('killed');
  }
}

/** A namespace is gone only when everything in it is: the API server keeps it until then. */
function withFinalizer<T extends KubeObject>(type: ResourceType, object: T): T {
  return type.plural === namespaceType.plural ? { ...object, metadata: { ...object.metadata, finalizers: ['kubernetes'] } } : object;
}
