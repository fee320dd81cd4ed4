// Waits for the controller. A controller that does not react counts as absent, and the wait ends early.

import { annotations, kinds, places } from '../api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import { KfError } from '../errors.ts';
import { watchObject } from '../kube/watch-list.ts';
import type { Session } from '../session/session.ts';
import { sleep, unlessLate } from '../wait.ts';
import type { OpEvent } from '../events.ts';

/** A controller that has not reacted to a change after this time counts as absent. It is the time that another replica needs to become the leader. */
export const absentAfterMs = 20_000;

/** How long a controller that works may take for a change, before the changes of others. */
export const busyPatienceMs = 300_000;

/** Used where the CLI acts directly in place of an absent controller, and where it does no harm if a controller does the same later. */
export const absentAfterMsWhereDoneDirectly = 6_000;

/** The next command for a user whose controller is absent. */
export const whereControllerIs = 'kubectl get pods -n kf-system';

/** The controller's sentence as the end of a sentence of ours. */
export function awaitedIn(message: string): string {
  return message
    .replace(/^Waiting for /, '')
    .replace(/^(?:The|An?) /, (article) => article.toLowerCase())
    .replace(/\.$/, '');
}

/** A leader says every five seconds that it leads; after this time that must have changed. */
export const heartbeatMs = 8_000;

/** When the controller that leads last said so, as it wrote it; undefined when nobody says, or may not be asked. */
async function lastSaid({ cluster, signal }: Pick<Session, 'cluster' | 'signal'>): Promise<string | undefined> {
  try {
    const record = await cluster.get(kinds.runnerInfo, places.systemNamespace, places.leaderRecord, signal);
    return record?.metadata.annotations?.[annotations.leaderRenewed];
  } catch {
    return undefined;
  }
}

/** Resolves when no controller says that it leads, but not before `leftMs`. Where the CLI acts directly after a short time, nobody is asked. */
async function untilSilent(session: Pick<Session, 'cluster' | 'signal'>, leftMs: number, isAsked: boolean): Promise<void> {
  if (!isAsked) return sleep(Math.max(0, leftMs), session.signal);
  await sleep(Math.max(0, leftMs - heartbeatMs), session.signal);
  let said = await lastSaid(session);
  for (;;) {
    await sleep(heartbeatMs, session.signal);
    const now = await lastSaid(session);
    if (now === undefined || now === said) return;
    said = now;
  }
}

/**
 * Resolves when no controller works: after `patienceMs`, and later as long as one says that it leads, because it may be busy with the changes of
 * others. Time in which the API server was away does not count: no controller can work then, and a new leader needs its time afterwards. Rejects
 * when the signal aborts.
 */
async function untilAbsent(session: Pick<Session, 'cluster' | 'signal'>, patienceMs: number): Promise<void> {
  for (let from = performance.now(); ; from = session.cluster.awayAt) {
    await untilSilent(session, patienceMs - (performance.now() - from), patienceMs >= absentAfterMs);
    if (session.cluster.awayAt <= from) return;
  }
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
  /** The error after `patienceMs`. If it is left out or gives none, a controller that leads is waited for: it may be busy with other changes. */
  late?: (last: Stored<T>, patienceMs: number) => KfError | undefined;
}

/**
 * Waits until the controller has processed an object, and reports what it waits for.
 * @param isDone throws an error that ends the wait
 * @returns the processed object
 * @throws KfError `not-found` when it is deleted, `accepted` without a controller, and what `late` gives after `patienceMs`
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
  const tooLate = new AbortController();
  const timer = setTimeout(() => {
    const error = late?.(last, patienceMs);
    if (error !== undefined) tooLate.abort(error);
  }, patienceMs);
  const wait = (until: AbortSignal): Promise<Stored<T> | undefined> =>
    unlessLate(watchObject(cluster, type, where, check, { timeoutMs: busyPatienceMs, signal: until, describe: what }));
  try {
    const done = await unlessAbsent({ cluster, signal: AbortSignal.any([signal, tooLate.signal]) }, wait, patienceMs);
    if (done === undefined) throw late?.(last, patienceMs) ?? nobodyTookUp(what);
    return done;
  } finally {
    clearTimeout(timer);
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

/** The error for a change that no controller has taken up. @param what as the subject of a sentence */
export function nobodyTookUp(what: string): KfError {
  const message = `${what} is accepted, but no controller has taken it up; it waits in the cluster.`;
  return new KfError('accepted', message, { hints: [whereControllerIs] });
}
