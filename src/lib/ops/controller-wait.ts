// Waits for the controller: one that has not shown itself is taken for absent, and the wait ends early.

import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import { KfError } from '../errors.ts';
import { watchObject } from '../kube/watch-list.ts';
import type { Session } from '../session/session.ts';
import type { OpEvent } from './events.ts';

/** A controller that has not taken up a change by then is taken for absent: as long as another one needs to become the leader. */
export const absentAfterMs = 20_000;

/** Where something is done without the controller instead, and a controller that comes later does no harm by doing it again. */
export const absentAfterMsWhereDoneDirectly = 6_000;

/** The next command of who waits for a controller that is not there. */
export const whereControllerIs = 'kubectl get pods -n kf-system';

/** The controller's sentence as the end of one of ours. */
export function awaitedIn(message: string): string {
  return message
    .replace(/^Waiting for /, '')
    .replace(/^(?:The|An?) /, (article) => article.toLowerCase())
    .replace(/\.$/, '');
}

/**
 * Runs a wait that ends early when nobody seems to be there.
 * @param wait calls `alive` as soon as the controller has shown itself
 * @returns undefined when it never did
 */
export async function unlessAbsent<T>(
  signal: AbortSignal,
  wait: (signal: AbortSignal, alive: () => void) => Promise<T>,
  patienceMs = absentAfterMs,
): Promise<T | undefined> {
  const absent = new AbortController();
  const timer = setTimeout(() => absent.abort(new KfError('accepted', 'No controller has taken up the change.')), patienceMs);
  try {
    return await wait(AbortSignal.any([signal, absent.signal]), () => clearTimeout(timer));
  } catch (error) {
    if (absent.signal.aborted && !signal.aborted) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** An object that was written, of which the controller makes something. */
export interface Written<T extends KubeObject> {
  type: ResourceType<T>;
  object: Stored<T>;
  /** As the subject of a sentence: `Route x.example.com`. */
  what: string;
  patienceMs?: number;
  /** The error when the time is up; else the object is accepted, and no controller has taken it up. */
  late?: (last: Stored<T>, patienceMs: number) => KfError | undefined;
}

/**
 * Waits until the controller has made of an object what was asked for, and reports what is awaited.
 * @param isDone throws what ends the wait badly
 * @returns the object as it is then
 * @throws KfError `not-found` when it is deleted, `accepted` without a controller
 */
export async function waitForController<T extends KubeObject>(
  { cluster, signal, report }: Pick<Session, 'cluster' | 'signal' | 'report'>,
  { type, object, what, patienceMs = absentAfterMs, late }: Written<T>,
  isDone: (seen: Stored<T>) => boolean,
  awaited: (seen: Stored<T>) => OpEvent,
): Promise<Stored<T>> {
  const { namespace, name } = object.metadata;
  let last = object;
  const check = (seen: Stored<T> | undefined): Stored<T> | undefined => {
    if (seen === undefined) throw new KfError('not-found', `${what} was deleted meanwhile.`);
    last = seen;
    if (isDone(seen)) return seen;
    report(awaited(seen));
    return undefined;
  };
  const where = { ns: namespace, name, known: object };
  try {
    return await watchObject(cluster, type, where, check, { timeoutMs: patienceMs, signal, describe: what });
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'timeout') throw error;
    throw late?.(last, patienceMs) ?? nobodyTookUp(what, error);
  } finally {
    report({ type: 'done' });
  }
}

function nobodyTookUp(what: string, cause: unknown): KfError {
  const message = `${what} is accepted, but no controller has taken it up; it waits in the cluster.`;
  return new KfError('accepted', message, { hints: [whereControllerIs], cause });
}
