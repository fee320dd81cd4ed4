// What is normal at the beginning and the end of a namespace: refusals that are reasons to wait, and objects that need no work any more.

import { namespaceType } from '../../lib/api/core.ts';
import { isForbidden } from '../../lib/kube/errors.ts';
import type { Context, Reconciler } from './reconciler.ts';
import { splitKey } from './store.ts';

/** The API server may take a moment to apply a new RoleBinding. In a namespace that is younger than this, a refusal is not an error yet. */
const freshRightsMs = 20_000;
/** When to try again. */
export const freshRightsRetryMs = 150;

/** True when the API server refused a right in a namespace that was just created: new rights do not apply at once. */
export function isFreshRefusal(error: unknown, context: Pick<Context, 'stores' | 'now'>): boolean {
  const ns = isForbidden(error) ? error.missingRight?.ns : undefined;
  if (ns === undefined || !context.stores.has(namespaceType)) return false;
  const made = Date.parse(context.stores.of(namespaceType).get(undefined, ns)?.metadata.creationTimestamp ?? '');
  return context.now() - made < freshRightsMs;
}

/** True while the API server deletes the namespace with all that is in it. */
export function isNamespaceEnding(stores: Context['stores'], ns: string | undefined): boolean {
  if (ns === undefined || !stores.has(namespaceType)) return false;
  return stores.of(namespaceType).get(undefined, ns)?.metadata.deletionTimestamp !== undefined;
}

/**
 * True for an object that will be deleted with its namespace: its parts go too, the controller's rights there are among the first things that the API
 * server deletes, and it refuses to create anything. When the deletion has come to the object itself, it is worked on again.
 */
export function goesWithNamespace({ watches }: Reconciler, key: string, stores: Context['stores']): boolean {
  const { ns, name } = splitKey(key);
  const own = watches[0]?.type;
  if (own === undefined || !isNamespaceEnding(stores, ns)) return false;
  const object = stores.of(own).get(ns, name);
  return object !== undefined && object.metadata.deletionTimestamp === undefined;
}
