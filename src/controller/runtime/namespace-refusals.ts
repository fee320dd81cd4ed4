// Recognizes refusals that are normal at the beginning and the end of a namespace: reasons to wait, not failures.

import { namespaceType } from '../../lib/api/core.ts';
import { isForbidden } from '../../lib/kube/errors.ts';
import type { Context } from './reconciler.ts';

/** The API server may take a moment to apply a new RoleBinding. In a namespace that is younger than this, a refusal is not an error yet. */
const freshRightsMs = 20_000;
/** When to try again. */
export const freshRightsRetryMs = 150;

/** True for the refusal to create an object in a namespace that is being deleted. */
export function isTerminatingRefusal(error: unknown): boolean {
  return isForbidden(error) && error.body?.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true;
}

/** True when the API server refused a right in a namespace that was just created: new rights do not apply at once. */
export function isFreshRefusal(error: unknown, context: Pick<Context, 'stores' | 'now'>): boolean {
  const ns = isForbidden(error) ? error.missingRight?.ns : undefined;
  if (ns === undefined || !context.stores.has(namespaceType)) return false;
  const made = Date.parse(context.stores.of(namespaceType).get(undefined, ns)?.metadata.creationTimestamp ?? '');
  return context.now() - made < freshRightsMs;
}
