// After the DELETE of an app or a route: waits until it is gone, or says what keeps it. Nothing but its own finalizers can: what an app owns never
// blocks its owner (templates/metadata.ts), and ends in the background.

import { foreignFinalizers, heldBy, withoutFinalizers } from '../../api/blockers.ts';
import { finalizers } from '../../api/group.ts';
import type { ResourceType, Stored } from '../../api/object.ts';
import { KfError } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import type { SpaceSession } from '../../session/session.ts';
import { timerMs, unlessLate } from '../../wait.ts';
import { controllerLog, unlessAbsent, whereControllerIs } from '../controller-wait.ts';

/** An object after its DELETE. */
export interface Leaving {
  type: ResourceType;
  object: Stored;
  /** As the subject of a sentence: `App 'shop'`. */
  what: string;
  /** The command that shows whether it is gone. */
  next: string;
}

/** Those that the controller removes, also from an object that is being deleted. */
const removedByController: readonly string[] = finalizers.foreign;

const needsController = ({ metadata }: Stored): boolean => (metadata.finalizers ?? []).some((name) => removedByController.includes(name));

/** What the deletion waits for now: finalizers of others, those that the controller removes, or Kubernetes itself. */
function blockersOf(kind: string, object: Stored): string {
  const all = (object.metadata.finalizers ?? []).map((name) => `'${name}'`).join(', ');
  return heldBy(kind, object, removedByController) ?? heldBy(kind, object) ?? `Kubernetes has not finished it (${all})`;
}

/** The error for what is still there when the time is up. */
function stillThere({ type, what, next }: Leaving, last: Stored): KfError {
  const { name, namespace = '' } = last.metadata;
  const isHeld = foreignFinalizers(last, removedByController).length > 0;
  const take = [
    'Whoever set a finalizer must take it away. If nothing else does:',
    withoutFinalizers(`${type.plural}.${type.group}`, name, namespace),
  ];
  return new KfError('accepted', `${what} is still being deleted: ${blockersOf(type.kind, last)}.`, {
    hints: [...(isHeld ? take : needsController(last) ? [controllerLog] : []), next],
  });
}

/** The error without a controller. It names the finalizers of others too, because the object does not go before they are taken away. */
function nobodyRemoves({ type, what, next }: Leaving, last: Stored): KfError {
  const held = heldBy(type.kind, last, removedByController);
  const also = held === undefined ? '' : ` Besides, ${held}.`;
  const message = `${what} is marked for deletion, but no controller answers: it goes when the controller is back.${also}`;
  return new KfError('accepted', message, { hints: [whereControllerIs, next] });
}

/** @throws KfError `accepted` with what keeps the object when it is still there after `timeoutMs`, or when only an absent controller can remove it */
async function untilGone(session: SpaceSession, leaving: Leaving, timeoutMs: number): Promise<void> {
  const { cluster, signal, report } = session;
  const { type, object, what } = leaving;
  const { namespace, name, uid } = object.metadata;
  // Ordinarily it is gone now, so one request is enough.
  const present = await cluster.get(type, namespace, name, signal);
  if (present?.metadata.uid !== uid) return;
  let last = present;
  const wait = async (until: AbortSignal, alive: () => void): Promise<'gone' | 'late'> => {
    const check = (seen: Stored | undefined): 'gone' | undefined => {
      if (seen?.metadata.uid !== uid) return 'gone';
      last = seen;
      if (!needsController(seen)) alive();
      // Without finalizers, it goes with this change.
      if (seen.metadata.finalizers !== undefined) report({ type: 'waiting', reason: blockersOf(type.kind, seen) });
      return undefined;
    };
    const options = { timeoutMs: timerMs(timeoutMs), signal: until, describe: `the deletion of ${what}` };
    return (await unlessLate(watchObject(cluster, type, { ns: namespace, name, known: present }, check, options))) ?? 'late';
  };
  const end = await unlessAbsent(session, wait).finally(() => report({ type: 'done' }));
  if (end === undefined) throw nobodyRemoves(leaving, last);
  if (end === 'late') throw stillThere(leaving, last);
}

/**
 * Waits until all of them are gone.
 * @throws KfError `accepted` that names what keeps each one that is still there after `timeoutMs`
 */
export async function waitUntilGone(session: SpaceSession, all: readonly Leaving[], timeoutMs: number): Promise<void> {
  const ends = await Promise.allSettled(all.map((leaving) => untilGone(session, leaving, timeoutMs)));
  const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as Error] : []));
  const [first] = errors;
  if (first === undefined) return;
  const kept = errors.filter((error) => error instanceof KfError && error.code === 'accepted') as KfError[];
  const other = errors.find((error) => !kept.includes(error as KfError));
  if (other instanceof KfError && other.code === 'interrupted')
    other.hints.push(`The deletion goes on in the cluster: ${session.bin} apps`);
  if (other !== undefined) throw other;
  if (kept.length === 1) throw first;
  const hints = [...new Set(kept.flatMap((error) => error.hints))];
  throw new KfError('accepted', kept.map(({ message }) => message).join(' '), { hints });
}
