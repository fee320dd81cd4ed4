// Waits for the controller. A controller that does not react counts as absent, and the wait ends early.

import { annotations, kinds, places } from '../api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isForbidden } from '../kube/errors.ts';
import { watchObject } from '../kube/watch-list.ts';
import type { Session } from '../session/session.ts';
import { sleep, throwIfAborted, unlessLate } from '../wait.ts';
import type { OpEvent } from '../events.ts';

/** A controller that has not reacted to a change after this time counts as absent. It is the time that another replica needs to become the leader. */
export const absentAfterMs = 20_000;

/** How long a controller that works may take for a change, before the changes of others. */
export const busyPatienceMs = 300_000;

/** Used where the CLI acts directly in place of an absent controller, and where it does no harm if a controller does the same later. */
export const absentAfterMsWhereDoneDirectly = 6_000;

/** The next command for a user whose controller is absent. */
export const whereControllerIs = 'kubectl get pods -n kf-system';

/** The next command for a user whose controller is busy. */
export const controllerLog = 'kubectl logs -n kf-system deployment/kf-controller';

/** How often the leader is asked. It says every five to ten seconds that it leads. */
export const askEveryMs = 8_000;

/** When the controller that leads last said so, as it wrote it (undefined: nobody ever did), or why that is not known. */
type Said = { text: string | undefined } | 'unknown' | 'forbidden';

async function lastSaid({ cluster, signal }: Pick<Session, 'cluster' | 'signal'>): Promise<Said> {
  try {
    const record = await cluster.get(kinds.runnerInfo, places.systemNamespace, places.leaderRecord, signal);
    return { text: record?.metadata.annotations?.[annotations.leaderRenewed] };
  } catch (error) {
    throwIfAborted(signal);
    return isForbidden(error) ? 'forbidden' : 'unknown';
  }
}

/** A leader says every five to ten seconds that it leads, and the next one needs {@link absentAfterMs}. */
const silentAfterMs = 2 * absentAfterMs;

/** Whether no controller has said for long that it leads, by the API server's clock. False when this user may not know. */
export async function isControllerSilent(session: Pick<Session, 'cluster' | 'signal' | 'now'>): Promise<boolean> {
  const said = await lastSaid(session);
  return typeof said !== 'string' && session.now() - Date.parse(said.text ?? '') > silentAfterMs;
}

/** Resolves when no controller has said for {@link absentAfterMs} that it leads, but not before `leftMs`. Who may not ask waits for `leftMs`. */
async function untilSilent(session: Pick<Session, 'cluster' | 'signal'>, leftMs: number): Promise<void> {
  const end = performance.now() + leftMs;
  let silentFrom = end - absentAfterMs;
  await sleep(Math.max(0, silentFrom + askEveryMs - performance.now()), session.signal);
  let before: Said = 'unknown';
  for (;;) {
    const said = await lastSaid(session);
    if (said === 'forbidden') return sleep(Math.max(0, end - performance.now()), session.signal);
    if (said !== 'unknown') {
      if (before !== 'unknown' && before.text !== said.text) silentFrom = performance.now();
      before = said;
    }
    const left = silentFrom + absentAfterMs - performance.now();
    if (left <= 0) return;
    await sleep(Math.ceil(Math.min(askEveryMs, left)), session.signal);
  }
}

/** Resolves after `ms` of `pause`, which begins anew when the API server was away meanwhile: no controller can work then. */
async function whilePresent(cluster: Cluster, ms: number, pause: (leftMs: number) => Promise<void>): Promise<void> {
  for (let from = performance.now(); ; from = cluster.awayAt) {
    await pause(Math.max(0, from + ms - performance.now()));
    if (cluster.awayAt <= from) return;
  }
}

/**
 * Resolves when no controller works: after `patienceMs`, and later as long as one says that it leads, because it may be busy with the changes of
 * others. Where the CLI acts directly after a short time, nobody is asked. Rejects when the signal aborts.
 */
function untilAbsent({ cluster, signal }: Pick<Session, 'cluster' | 'signal'>, patienceMs: number): Promise<void> {
  const pause = (leftMs: number): Promise<void> =>
    patienceMs < absentAfterMs ? sleep(leftMs, signal) : untilSilent({ cluster, signal }, leftMs);
  return whilePresent(cluster, patienceMs, pause);
}

/**
 * Runs a wait that ends early when no controller seems to be running.
 * @param wait calls `alive` as soon as the controller has reacted
 * @returns undefined when it never did
 */
export async function unlessAbsent<T>(
  { cluster, signal }: Pick<Session, 'cluster' | 'signal'>,
  wait: (signal: AbortSignal, alive: () => void) => Promise<T>,
  patienceMs = absentAfterMs,
): Promise<T | undefined> {
  const absent = new AbortController();
  const settled = new AbortController();
  untilAbsent({ cluster, signal: AbortSignal.any([signal, settled.signal]) }, patienceMs).then(
    () => absent.abort(new KfError('accepted', 'No controller has taken up the change.')),
    () => undefined,
  );
  try {
    return await wait(AbortSignal.any([signal, absent.signal]), () => settled.abort());
  } catch (error) {
    if (absent.signal.aborted && !signal.aborted) return undefined;
    throw error;
  } finally {
    settled.abort();
  }
}

/** A written object that the controller has to process. */
export interface Written<T extends KubeObject> {
  type: ResourceType<T>;
  object: Stored<T>;
  /** As the subject of a sentence: `Route x.example.com`. */
  what: string;
  patienceMs?: number;
  /**
   * The error after `patienceMs`, for the object as it is then and after each later change. As long as it gives none, a controller that leads is
   * waited for: it may be busy with other changes.
   */
  late?: (last: Stored<T>, patienceMs: number) => KfError | undefined;
}

/**
 * Waits until the controller has processed an object, and reports what it waits for.
 * @param isDone throws an error that ends the wait
 * @returns the processed object
 * @throws KfError `not-found` when it is deleted, `accepted` without a controller or with one that is too busy, and what `late` gives
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
    judge();
    report(awaited(seen));
    return undefined;
  };
  const where = { ns: namespace, name, known: object };
  const tooLate = new AbortController();
  let isLate = false;
  const judge = (): void => {
    const error = isLate ? late?.(last, patienceMs) : undefined;
    if (error !== undefined) tooLate.abort(error);
  };
  const settled = new AbortController();
  const ended = AbortSignal.any([signal, settled.signal]);
  whilePresent(cluster, patienceMs, (leftMs) => sleep(leftMs, ended)).then(
    () => {
      isLate = true;
      judge();
    },
    () => undefined,
  );
  const wait = async (until: AbortSignal): Promise<Stored<T>> => {
    const watched = watchObject(cluster, type, where, check, { timeoutMs: busyPatienceMs, signal: until, describe: what });
    const done = await unlessLate(watched);
    if (done !== undefined) return done;
    throwIfAborted(until);
    throw late?.(last, busyPatienceMs) ?? stillBusy(what);
  };
  try {
    const done = await unlessAbsent({ cluster, signal: AbortSignal.any([signal, tooLate.signal]) }, wait, patienceMs);
    if (done === undefined) throw late?.(last, patienceMs) ?? nobodyTookUp(what);
    return done;
  } finally {
    settled.abort();
    report({ type: 'done' });
  }
}

/**
 * Waits until an object that is being deleted is gone, and reports that.
 * @param what the object in a report: `shop.example.com`
 * @returns false when that takes longer than `patienceMs`
 */
export async function waitUntilDeleted<T extends KubeObject>(
  { cluster, signal, report }: Pick<Session, 'cluster' | 'signal' | 'report'>,
  { type, object, what, patienceMs = absentAfterMs }: Omit<Written<T>, 'late'>,
): Promise<boolean> {
  const { namespace, name, uid } = object.metadata;
  report({ type: 'awaiting-deletion', name: what });
  const check = (seen: Stored<T> | undefined): true | undefined => (seen?.metadata.uid === uid ? undefined : true);
  const options = { timeoutMs: patienceMs, signal, describe: `the deletion of '${what}'` };
  const waiting = watchObject(cluster, type, { ns: namespace, name, known: object }, check, options);
  return (await unlessLate(waiting).finally(() => report({ type: 'done' }))) === true;
}

/** The error for a change that a controller has not taken up, although it says all the time that it works. */
function stillBusy(what: string): KfError {
  const message = `${what} is accepted, but the controller has not taken it up after ${String(busyPatienceMs / 1_000)} s, although it works; it waits in the cluster.`;
  return new KfError('accepted', message, { hints: [controllerLog] });
}

/** The error for a change that no controller has taken up. @param what as the subject of a sentence */
export function nobodyTookUp(what: string): KfError {
  const message = `${what} is accepted, but no controller has taken it up; it waits in the cluster.`;
  return new KfError('accepted', message, { hints: [whereControllerIs] });
}
