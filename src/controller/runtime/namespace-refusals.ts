// Refusals that belong to the beginning and the end of each namespace: waits, no failures.

import { namespaceType } from '../../lib/api/core.ts';
import { isForbidden } from '../../lib/kube/errors.ts';
import type { Context } from './reconciler.ts';

/** An API server may need a moment until a new RoleBinding counts. In a namespace that is younger than this, a refusal is not an error yet. */
const freshRightsMs = 20_000;
/** When to look again. */
export const freshRightsRetryMs = 150;

/** True for the refusal to make something in a namespace that is being deleted. */
export function isTerminatingRefusal(error: unknown): boolean {
  return isForbidden(error) && error.body?.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true;
}

/** True for the API server's refusal of a right in a namespace that has just been made. Rights that were given a moment ago do not count at once. */
export function isFreshRefusal(error: unknown, context: Pick<Context, 'stores' | 'now'>): boolean {
  const ns = isForbidden(error) ? error.missingRight?.ns : undefined;
  if (ns === undefined || !context.stores.has(namespaceType)) return false;
  const made = Date.parse(context.stores.of(namespaceType).get(undefined, ns)?.metadata.creationTimestamp ?? '');
  return context.now() - made < freshRightsMs;
}
