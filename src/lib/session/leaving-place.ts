// Names the org or space that is being deleted when Kubernetes therefore refuses a new object: the API server names only the namespace.

import { isTerminating } from '../kube/errors.ts';
import type { NameAndGuid } from './state.ts';

/** The part of a session that names places. */
interface Place {
  readonly org?: NameAndGuid | undefined;
  readonly space?: NameAndGuid | undefined;
  readonly bin: string;
}

/** Says it in the error in cf's words; other errors stay, and those of other namespaces. */
export function nameLeaving({ org, space, bin }: Place, error: unknown): void {
  if (!isTerminating(error)) return;
  const isOf = (place: NameAndGuid | undefined): place is NameAndGuid =>
    place !== undefined && error.body?.message?.includes(`in namespace ${place.guid} `) === true;
  if (isOf(space)) error.message = `Space '${space.name}' is being deleted.`;
  else if (isOf(org)) error.message = `Organization '${org.name}' is being deleted.`;
  else return;
  error.hints.splice(0, error.hints.length, `${bin} ${isOf(space) ? 'spaces' : 'orgs'}`);
}
