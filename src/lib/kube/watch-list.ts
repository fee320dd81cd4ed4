// Waits of the CLI: a list and then a watch, which continues after cut connections, expiry and restarts of the API server, until a check is
// satisfied.

import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import { abortError, backoffMs, sleep, timeoutError, timerMs } from '../wait.ts';
import type { Cluster, ListOptions, WatchEvent } from './cluster.ts';
import { isExpired, isTransient, type KubeError } from './errors.ts';
import { defined } from '../defined.ts';

export interface WatchTarget<T extends KubeObject> {
  /** Default: all namespaces, or a cluster-scoped kind. */
  ns?: string | undefined;
  /** One object by name, or those of a label selector; neither: all. */
  name?: string;
  selector?: string;
  /** The object as the server has just returned it; saves the first list. */
  known?: Stored<T>;
  /** No list first: the watch starts with the existing objects, one by one. For checks that do not need a complete first state; saves a request. */
  withoutList?: boolean;
}

export interface WatchUntilOptions {
  signal?: AbortSignal | undefined;
  /** Infinity: no limit. */
  timeoutMs: number;
  /** What is awaited, as the end of "Timed out after 60 s waiting for …". */
  describe: string | (() => string);
  /** Called when the API server is away and tried again, for a progress line. */
  onInterruption?: (error: KubeError) => void;
}

/**
 * Returns a value when its condition is met; undefined means: continue. `deleted`: what this change deleted, as it was last; what was deleted
 * between two connections may be missing without it.
 */
export type WatchCheck<T extends KubeObject, R> = (
  objects: readonly Stored<T>[],
  deleted?: Stored<T>,
) => R | undefined | Promise<R | undefined>;

const keyOf = ({ metadata }: Stored): string => `${metadata.namespace ?? ''}/${metadata.name}`;

/** The current objects of a target, updated by events. */
class Mirror<T extends KubeObject> {
  readonly objects = new Map<string, Stored<T>>();
  resourceVersion = '';
  isFilled = false;

  reset(items: readonly Stored<T>[], resourceVersion: string): void {
    this.isFilled = true;
    this.objects.clear();
    for (const item of items) this.objects.set(keyOf(item), item);
    this.resourceVersion = resourceVersion;
  }

  /** True when the objects changed. */
  take(event: WatchEvent<T>): boolean {
    if (event.type === 'BOOKMARK') {
      this.resourceVersion = event.resourceVersion;
      return false;
    }
    this.resourceVersion = event.object.metadata.resourceVersion;
    if (event.type === 'DELETED') this.objects.delete(keyOf(event.object));
    else this.objects.set(keyOf(event.object), event.object);
    return true;
  }
}

interface Round<T extends KubeObject, R> {
  cluster: Cluster;
  type: ResourceType<T>;
  scope: ListOptions;
  mirror: Mirror<T>;
  check: WatchCheck<T, R>;
  withoutList: boolean;
}

/** One list (unless the objects are known) and one watch. */
async function watchOnce<T extends KubeObject, R>(
  { cluster, type, scope, mirror, check, withoutList }: Round<T, R>,
  progressed: () => void,
): Promise<R | undefined> {
  if (mirror.resourceVersion === '' && !withoutList) {
    const list = await cluster.list(type, scope);
    mirror.reset(list.items, list.resourceVersion);
    progressed();
    const answer = await check([...mirror.objects.values()]);
    if (answer !== undefined) return answer;
  }
  const from = mirror.resourceVersion === '' ? {} : { resourceVersion: mirror.resourceVersion };
  for await (const event of cluster.watch(type, { ...scope, ...from })) {
    progressed();
    mirror.isFilled = true;
    if (!mirror.take(event)) continue;
    const answer = await check([...mirror.objects.values()], event.type === 'DELETED' ? event.object : undefined);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

async function watchLoop<T extends KubeObject, R>(
  round: Round<T, R>,
  signal: AbortSignal,
  onInterruption: WatchUntilOptions['onInterruption'],
): Promise<R> {
  let failures = 0;
  const progressed = (): void => {
    failures = 0;
  };
  for (;;) {
    if (signal.aborted) throw abortError(signal);
    try {
      const answer = await watchOnce(round, progressed);
      if (answer !== undefined) return answer;
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      if (isExpired(error)) round.mirror.resourceVersion = '';
      // A server that has never answered is not waited for: the user must see the error.
      else if (isTransient(error) && round.mirror.isFilled) onInterruption?.(error);
      else throw error;
    }
    // A server may end watches at once, so there is a pause.
    await sleep(backoffMs(failures++, { baseMs: 50, maxMs: 2_000 }), signal);
  }
}

/**
 * Follows the target until `check` returns a value; it is called with the first state and after every change. Needs the rights to list and watch
 * the kind. Throws KfError `timeout`, the signal's reason, or the API server's refusal (403, missing kind). If the API server goes away after its
 * first answer, this waits for it.
 */
export async function watchUntil<T extends KubeObject, R>(
  cluster: Cluster,
  type: ResourceType<T>,
  target: WatchTarget<T>,
  check: WatchCheck<T, R>,
  options: WatchUntilOptions,
): Promise<R> {
  const mirror = new Mirror<T>();
  if (target.known !== undefined) {
    mirror.reset([target.known], target.known.metadata.resourceVersion);
    const answer = await check([target.known]);
    if (answer !== undefined) return answer;
  }
  const stop = new AbortController();
  const { timeoutMs, describe } = options;
  const timer = timeoutMs === Infinity ? undefined : setTimeout(() => stop.abort(timeoutError(timeoutMs, describe)), timerMs(timeoutMs));
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal]);
  const scope = {
    ...defined({ ns: target.ns, labelSelector: target.selector }),
    ...(target.name === undefined ? {} : { fieldSelector: `metadata.name=${target.name}` }),
    signal,
  };
  try {
    return await watchLoop(
      { cluster, type, scope, mirror, check, withoutList: target.withoutList === true },
      signal,
      options.onInterruption,
    );
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

/** {@link watchUntil} for one object: the check gets it, or undefined while it does not exist. */
export function watchObject<T extends KubeObject, R>(
  cluster: Cluster,
  type: ResourceType<T>,
  target: { ns?: string | undefined; name: string; known?: Stored<T> },
  check: (object: Stored<T> | undefined) => R | undefined | Promise<R | undefined>,
  options: WatchUntilOptions,
): Promise<R> {
  return watchUntil<T, R>(cluster, type, target, ([object]) => check(object), options);
}
