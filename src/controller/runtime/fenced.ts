// The reconcilers' client of the cluster: it writes only while this process is the leader, and only with a precondition, and it puts the results
// into the stores.

import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { BugError } from '../../lib/errors.ts';
import type { ApplyOptions, Cluster, DeleteOptions, PatchOptions } from '../../lib/kube/cluster.ts';
import { isForbidden } from '../../lib/kube/errors.ts';
import { NotLeaderError } from './result.ts';

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

/** The policy of manifests/policies/controller.yaml that compares the pod of a write with the holder of the Lease. */
const leaderPolicy = "ValidatingAdmissionPolicy 'kf-controller-leads'";

/** The cluster's word on who leads comes after this process's own: its last requests, and the first ones of a new leader, may be refused. */
async function asLeader<R>(request: () => Promise<R>): Promise<R> {
  try {
    return await request();
  } catch (error) {
    if (isForbidden(error) && error.body?.message?.includes(leaderPolicy) === true) throw new NotLeaderError({ cause: error });
    throw error;
  }
}

/** Runs requests, and passes the duration of each to `measure`. */
function timedBy(measure: FenceOptions['measure']): <R>(verb: string, type: ResourceType, request: () => Promise<R>) => Promise<R> {
  return async (verb, type, request) => {
    const started = performance.now();
    try {
      return await request();
    } finally {
      measure(verb, type, (performance.now() - started) / 1_000);
    }
  };
}

/** Wraps `cluster`; `table`, `raw` and the rest are unchanged. */
export function fence(cluster: Cluster, fencing: FenceOptions): FencedCluster {
  const { assertLeader, observe, measure } = fencing;
  const timed = timedBy(measure);
  const write = <R>(verb: string, type: ResourceType, request: () => Promise<R>): Promise<R> => timed(verb, type, () => asLeader(request));
  const seen = <T extends KubeObject>(type: ResourceType<T>, object: Stored<T>): Stored<T> => {
    observe(type, object);
    return object;
  };
  return {
    identity: cluster.identity,
    get awayAt() {
      return cluster.awayAt;
    },
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
    async create(type, object, options) {
      assertLeader();
      return seen(type, await write('create', type, () => cluster.create(type, object, options)));
    },
    async apply(type, object, options) {
      assertLeader();
      assertPrecondition('server-side apply', type, object.metadata);
      return seen(type, await write('apply', type, () => cluster.apply(type, object, options)));
    },
    async mergePatch(type, ns, name, patch, options) {
      assertLeader();
      assertPrecondition('merge patch', type, patch.metadata);
      return seen(type, await write('patch', type, () => cluster.mergePatch(type, ns, name, patch, options)));
    },
    async replace(type, object, options) {
      assertLeader();
      assertPrecondition('replace', type, object.metadata);
      return seen(type, await write('replace', type, () => cluster.replace(type, object, options)));
    },
    async delete(type, ns, name, options) {
      assertLeader();
      assertPrecondition('delete', type, options);
      return write('delete', type, () => cluster.delete(type, ns, name, options));
    },
  };
}
