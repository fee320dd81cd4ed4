// Names the org or space that is being deleted when Kubernetes therefore refuses a new object: the API server names only the namespace.

import { isTerminating } from '../kube/errors.ts';
import type { NameAndGuid } from './state.ts';

/** The part of a session that names places. */
interface Place {
  readonly org?: NameAndGuid | undefined;
  readonly space?: NameAndGuid | undefined;
  readonly bin: string;
}

/**
 * Says it in the error in cf's words; other errors stay, and those of other namespaces. What is added to its hints later stays too.
 * @returns whether the error says it
 */
export function nameLeaving({ org, space, bin }: Place, error: unknown): boolean {
  if (!isTerminating(error)) return false;
  const isOf = (place: NameAndGuid | undefined): place is NameAndGuid =>
    place !== undefined && error.body?.message?.includes(`in namespace ${place.guid} `) === true;
  const left = isOf(space) ? `Space '${space.name}'` : isOf(org) ? `Organization '${org.name}'` : undefined;
  if (left === undefined) return false;
  const text = `${left} is being deleted.`;
  if (error.message === text) return true;
  error.message = text;
  error.hints.splice(0, error.hints.length, `${bin} ${isOf(space) ? 'spaces' : 'orgs'}`);
  return true;
}
