// The interface of a reconciler: the objects that it watches, and one function that brings one object to its desired state.

import type { KfInfo } from '../../lib/api/kf-info.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import type { EventNote } from './events.ts';
import type { FencedCluster } from './fenced.ts';
import type { Logger } from './log.ts';
import type { Memory } from './memory.ts';
import type { Metrics } from './metrics.ts';
import type { Outcome } from './outside.ts';
import type { Result } from './result.ts';
import type { IndexFunction, Store } from './store.ts';
import { keyOf } from './store.ts';

/** The caches of all kinds that some reconciler declared. */
export interface Stores {
  /** Throws for a kind that no reconciler of this process watches or reads. */
  of<T extends KubeObject>(type: ResourceType<T>): Store<T>;
  /** True for a kind that some reconciler of this process watches or reads. */
  has(type: ResourceType): boolean;
}

/** Maps changes of one kind to keys (`namespace/name`) of the reconciler's own kind. */
export interface Watch {
  type: ResourceType;
  keys: (object: Stored, stores: Stores) => readonly string[];
  /** Which changes of an object that stays matter; default: all. */
  only?: (before: Stored, after: Stored) => boolean;
}

/** A typed {@link Watch}. Without `keys` the object's own key is queued. */
export function watch<T extends KubeObject>(
  type: ResourceType<T>,
  keys: (object: Stored<T>, stores: Stores) => readonly string[] = (object) => [keyOf(object)],
): Watch {
  return { type, keys: keys as Watch['keys'] };
}

/** An index that a reconciler needs on some store. Equal names of one kind are one index. */
export interface Index {
  type: ResourceType;
  name: string;
  of: IndexFunction<KubeObject>;
}

export function index<T extends KubeObject>(type: ResourceType<T>, name: string, of: IndexFunction<T>): Index {
  return { type, name, of: of as IndexFunction<KubeObject> };
}

/** The tools of a reconcile. Everything it knows comes from here, so tests can provide all of it. */
export interface Context {
  /** Writes are fenced: only as the leader, only with a precondition. Their results are in the stores at once. */
  cluster: FencedCluster;
  stores: Stores;
  /** State between runs. */
  memory: Memory;
  metrics: Metrics;
  log: Logger;
  /** Aborts when the reconcile takes too long or the process ends. */
  signal: AbortSignal;
  /** The installation's settings; throws a WaitingError while they do not exist. */
  info(): KfInfo;
  /** Writes an Event about an object, unless it repeats the last one. */
  event<T extends KubeObject>(type: ResourceType<T>, object: Stored<T>, note: EventNote): void;
  /** The outcome of an outside call; undefined while it runs. When it ends, this key is queued again. See {@link OutsideCalls}. */
  outside<T>(id: string, timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Outcome<T> | undefined;
  /** Wall clock in milliseconds. */
  now(): number;
}

export interface Reconciler {
  /** Lower case, as `--reconcilers` takes it. */
  readonly name: string;
  /** Number of keys reconciled at the same time; default 4. */
  readonly workers?: number;
  /** The first one is usually the reconciler's own kind. */
  readonly watches: readonly Watch[];
  /** Kinds whose stores it reads without being triggered by their changes. */
  readonly reads?: readonly ResourceType[];
  readonly indexes?: readonly Index[];
  /** Brings the object of `key` to its desired state. Called again for the same key only after it ended. */
  reconcile(key: string, context: Context): Promise<Result | undefined>;
}
