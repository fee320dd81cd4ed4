// The reconcilers' client of the cluster: it writes only while this process is the leader, and only with a precondition, and it puts the results
// into the stores.

import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { BugError } from '../../lib/errors.ts';
import type { ApplyOptions, Cluster, DeleteOptions, PatchOptions } from '../../lib/kube/cluster.ts';

export interface FenceOptions {
  /** Throws when this process must not write. */
  assertLeader: () => void;
  /** Called with every object that a write or an uncached read returned. */
  observe: (type: ResourceType, object: Stored) => void;
  /** Called for every request, successful or not, with its duration. */
  measure: (verb: string, type: ResourceType, seconds: number) => void;
}

/** The object that a write is meant for: exactly this one, or exactly this version of it. */
export type Precondition = { uid: string; resourceVersion?: string } | { uid?: string; resourceVersion: string };

type Preconditioned<T extends KubeObject> = T & { metadata: Precondition };

/** A cluster client whose writes to existing objects name the exact object that they are meant for. */
export interface FencedCluster extends Omit<Cluster, 'apply' | 'mergePatch' | 'replace' | 'delete'> {
  apply<T extends KubeObject>(
    type: ResourceType<T>,
    object: Preconditioned<T>,
    options: ApplyOptions & { fieldManager: string },
  ): Promise<Stored<T>>;
  mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    ns: string | undefined,
    name: string,
    patch: { metadata: Precondition & Record<string, unknown> } & Record<string, unknown>,
    options?: PatchOptions,
  ): Promise<Stored<T>>;
  replace<T extends KubeObject>(type: ResourceType<T>, object: Preconditioned<T>, options?: PatchOptions): Promise<Stored<T>>;
  delete(type: ResourceType, ns: string | undefined, name: string, options: DeleteOptions & Precondition): Promise<boolean>;
}

/** The API server treats an empty uid or version as none: the write would reach any object of that name. */
function assertPrecondition(verb: string, type: ResourceType, metadata: { uid?: string; resourceVersion?: string } | undefined): void {
  const { uid, resourceVersion } = metadata ?? {};
  const refuse = (how: string): never => {
    throw new BugError(`A ${verb} of a ${type.kind} was about to be sent ${how}.`);
  };
  if (uid === '') refuse('with an empty uid');
  if (resourceVersion === '') refuse('with an empty resourceVersion');
  if (uid === undefined && resourceVersion === undefined) refuse('without a uid or resourceVersion');
}

/** Wraps `cluster`; `table`, `raw` and the rest are unchanged. */
export function fence(cluster: Cluster, options: FenceOptions): FencedCluster {
  const { assertLeader, observe, measure } = options;
  const timed = async <R>(verb: string, type: ResourceType, request: () => Promise<R>): Promise<R> => {
    const started = performance.now();
    try {
      return await request();
    } finally {
      measure(verb, type, (performance.now() - started) / 1_000);
    }
  };
  const seen = <T extends KubeObject>(type: ResourceType<T>, object: Stored<T>): Stored<T> => {
    observe(type, object);
    return object;
  };
  return {
    identity: cluster.identity,
    table: (type, list) => cluster.table(type, list),
    watch: (type, watch) => cluster.watch(type, watch),
    async list(type, list) {
      const result = await timed('list', type, () => cluster.list(type, list));
      for (const object of result.items) observe(type, object);
      return result;
    },
    logs: (ns, pod, logs) => cluster.logs(ns, pod, logs),
    canI: (question, signal) => cluster.canI(question, signal),
    whoAmI: (signal) => cluster.whoAmI(signal),
    raw: (request) => cluster.raw(request),
    openChannels: (request) => cluster.openChannels(request),
    close: () => cluster.close(),
    async get(type, ns, name, signal) {
      const object = await timed('get', type, () => cluster.get(type, ns, name, signal));
      if (object !== undefined) observe(type, object);
      return object;
    },
    async create(type, object, write) {
      assertLeader();
      return seen(type, await timed('create', type, () => cluster.create(type, object, write)));
    },
    async apply(type, object, write) {
      assertLeader();
      assertPrecondition('server-side apply', type, object.metadata);
      return seen(type, await timed('apply', type, () => cluster.apply(type, object, write)));
    },
    async mergePatch(type, ns, name, patch, write) {
      assertLeader();
      assertPrecondition('merge patch', type, patch.metadata);
      return seen(type, await timed('patch', type, () => cluster.mergePatch(type, ns, name, patch, write)));
    },
    async replace(type, object, write) {
      assertLeader();
      assertPrecondition('replace', type, object.metadata);
      return seen(type, await timed('replace', type, () => cluster.replace(type, object, write)));
    },
    async delete(type, ns, name, write) {
      assertLeader();
      assertPrecondition('delete', type, write);
      return timed('delete', type, () => cluster.delete(type, ns, name, write));
    },
  };
}
