// Common parts of orgs and spaces: their namespace, its RoleBindings, and its deletion.

import { heldBy, namespaceBlockers } from '../../lib/api/blockers.ts';
import {
  jobType,
  namespaceType,
  podDisruptionBudgetType,
  roleBindingType,
  serviceAccountType,
  serviceType,
  statefulSetType,
} from '../../lib/api/core.ts';
import { podType } from '../../lib/api/pod-kind.ts';
import type { Namespace, RoleBinding } from '../../lib/api/core.ts';
import { httpRouteType } from '../../lib/api/gateway.ts';
import type { finalizers } from '../../lib/api/group.ts';
import { annotations, conditionTypes, kinds, labels } from '../../lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { controllerRole, controllerRoleBinding, copiedRoleBinding, isPropagated } from '../../templates/role-binding.ts';
import { isAlreadyExists, isForbidden } from '../../lib/kube/errors.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { contains, isEqual } from '../runtime/merge-patch.ts';
import type { Context, Stores } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { conditionsWith, writeStatus } from '../runtime/status.ts';
import type { WithStatus } from '../runtime/status.ts';
import { claimNamespace, namespaceToRemove } from './ownership.ts';
import type { Owner } from './ownership.ts';
import { defined } from '../../lib/defined.ts';

/** New rights may not apply everywhere at once; a refusal within this time is not a failure. */
const freshRightsMs = 20_000;
const deletionPollMs = 1_000;

/**
 * The owner's namespace with correct labels and annotations; `wanted` names no owner yet.
 * @throws TerminalError when a namespace of that name belongs to another owner
 */
export async function ensureNamespace(context: Context, owner: Owner, wanted: Namespace): Promise<Stored<Namespace>> {
  const name = wanted.metadata.name ?? '';
  const notes = { ...wanted.metadata.annotations, [annotations.ownerUid]: owner.object.metadata.uid };
  const live =
    (await claimNamespace(context, owner)) ??
    (await createNamespace(context, { ...wanted, metadata: { ...wanted.metadata, annotations: notes } }));
  if (live.metadata.deletionTimestamp !== undefined)
    throw new WaitingError('NamespaceTerminating', `The namespace ${name} is being deleted: ${blockers(context, live)}`, deletionPollMs);
  const { labels: marks } = wanted.metadata;
  if (contains(live.metadata, { labels: marks, annotations: notes })) return live;
  const { resourceVersion } = live.metadata;
  const patch = { metadata: { resourceVersion, labels: marks, annotations: notes } };
  return context.cluster.mergePatch(namespaceType, undefined, name, patch, { signal: context.signal });
}

/** Another owner may have created a namespace of that name just now; the next reconcile checks its owner. */
async function createNamespace(context: Context, wanted: Namespace): Promise<Stored<Namespace>> {
  try {
    return await context.cluster.create(namespaceType, wanted, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    throw new WaitingError('InMotion', `The namespace ${wanted.metadata.name ?? ''} is being created right now.`, 300);
  }
}

/** Creates the object, or restores its declared fields. */
export async function ensureObject<T extends KubeObject>(context: Context, type: ResourceType<T>, wanted: T): Promise<void> {
  const { namespace, name = '', labels: marks, annotations: notes } = wanted.metadata;
  const live = context.stores.of(type).get(namespace, name) ?? (await createObject(context, type, wanted));
  if (live === undefined) return;
  const { metadata: _, ...body } = wanted;
  const wantedMetadata = { ...defined({ labels: marks, annotations: notes }) };
  if (contains(live, { ...body, metadata: wantedMetadata })) return;
  const patch = { ...body, metadata: { resourceVersion: live.metadata.resourceVersion, ...wantedMetadata } };
  await context.cluster.mergePatch(type, namespace, name, patch, { signal: context.signal });
}

/** Undefined when the object was created; otherwise the existing object, which the cache did not have: it has no label, or it is new. */
async function createObject<T extends KubeObject>(context: Context, type: ResourceType<T>, wanted: T): Promise<Stored<T> | undefined> {
  const { namespace, name = '' } = wanted.metadata;
  try {
    await context.cluster.create(type, wanted, { signal: context.signal });
    return undefined;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const present = await context.cluster.get(type, namespace, name, context.signal);
  if (present === undefined) throw new WaitingError('InMotion', `${type.kind} ${name} is just being deleted.`, 300);
  return present;
}

async function ensureRoleBinding(context: Context, wanted: RoleBinding): Promise<void> {
  const { namespace, name = '' } = wanted.metadata;
  const live = context.stores.of(roleBindingType).get(namespace, name);
  // The role of a binding cannot be changed, so the binding is replaced.
  if (live !== undefined && !isEqual(live.roleRef, wanted.roleRef)) {
    await context.cluster.delete(roleBindingType, namespace, name, { uid: live.metadata.uid, signal: context.signal });
    await context.cluster.create(roleBindingType, wanted, { signal: context.signal });
    return;
  }
  await ensureObject(context, roleBindingType, wanted);
}

/** Gives the controller its own rights in a new namespace, before anything else. */
export async function ensureOwnRights(context: Context, ns: string): Promise<void> {
  const account = { namespace: context.info().controller.namespace, name: 'kf-controller' };
  await ensureRoleBinding(context, controllerRoleBinding(ns, account));
}

/**
 * Copies the role bindings that `parent` propagates, and deletes copies whose original is gone. Returns in how many milliseconds to try a refused
 * copy again.
 */
export async function propagateRoles(context: Context, parent: string, ns: string): Promise<number | undefined> {
  const all = context.stores.of(roleBindingType);
  const originals = all
    .list(parent)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined && metadata.name !== controllerRole)
    .filter(isPropagated);
  const names = new Set(originals.map((binding) => binding.metadata.name));
  // One after the other: a manager may make hundreds, and other namespaces need the API server too.
  let refused: Refused | undefined;
  for (const original of originals) {
    // A full quota also refuses every other new binding, so one request is enough.
    if (refused === 'full' && all.get(ns, original.metadata.name) === undefined) continue;
    refused = (await propagateRole(context, original, ns)) ?? refused;
  }
  for (const copy of all.list(ns)) {
    const isCopy = copy.metadata.labels?.[labels.propagatedFrom] !== undefined;
    const kept = copy.metadata.annotations?.[annotations.propagateDeletion] === 'false';
    const { name, uid } = copy.metadata;
    if (!isCopy || kept || names.has(name) || name === controllerRole) continue;
    await context.cluster.delete(roleBindingType, ns, name, { uid, signal: context.signal });
  }
  return refused === undefined ? undefined : { full: fullQuotaMs, denied: refusalTrustMs }[refused];
}

/** Why a copy was refused. `full`: the quota of bindings is full. `denied`: a policy or RBAC does not let the controller give this role. */
type Refused = 'full' | 'denied';

/** Temporary refusals, until other objects go or until rights apply everywhere, contain none of these texts. */
const deniedText = /denied (the )?request|attempting to grant RBAC permissions/;
const fullText = /exceeded quota|status unknown for quota/;
const fullQuotaMs = 60_000;

function refusalOf(error: unknown): Refused | undefined {
  if (!isForbidden(error)) return undefined;
  const text = error.body?.message ?? error.message;
  if (deniedText.test(text)) return 'denied';
  return fullText.test(text) ? 'full' : undefined;
}

/**
 * A refused copy is not tried again for this long unless its original changes: the writer of the original could make the controller send requests
 * without end.
 */
const refusalTrustMs = 10 * 60_000;
const refusals = new Remembered(() => new BoundedMap<string, number>(20_000));

/** Copies one role binding. If a policy or a full quota refuses the copy, an Event on the original says so, and the other copies go on. */
async function propagateRole(context: Context, original: Stored<RoleBinding>, ns: string): Promise<Refused | undefined> {
  const refusedCopies = context.memory.of(refusals);
  const attempt = `${ns} ${original.metadata.uid} ${original.metadata.resourceVersion}`;
  if (context.now() - (refusedCopies.get(attempt) ?? -Infinity) < refusalTrustMs) return 'denied';
  try {
    await ensureRoleBinding(context, copiedRoleBinding(original, ns));
    return undefined;
  } catch (error) {
    const refused = refusalOf(error);
    // This may also be one of the controller's own rights that does not apply everywhere yet.
    if (refused === undefined) throw error;
    if (refused === 'denied') refusedCopies.set(attempt, context.now());
    const message = `Not copied into ${ns}: ${(error as Error).message}`;
    context.event(roleBindingType, original, { type: 'Warning', reason: 'RoleNotPropagated', message });
    return refused;
  }
}

/** Runs `work` in a namespace. Right after its creation, a refusal only means that the rights do not apply everywhere yet. */
export async function withFreshRights(context: Context, namespace: Stored<Namespace>, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const age = context.now() - Date.parse(namespace.metadata.creationTimestamp ?? '');
    if (isForbidden(error) && age < freshRightsMs)
      throw new WaitingError('RightsNotActive', "The controller's rights in the new namespace do not count yet.", 150);
    throw error;
  }
}

/** Kinds whose objects can be read from the caches, if this process watches them. */
const knownKinds: readonly ResourceType[] = [
  ...Object.values(kinds),
  podType,
  serviceType,
  statefulSetType,
  jobType,
  podDisruptionBudgetType,
  httpRouteType,
  serviceAccountType,
  roleBindingType,
];
const mostNamed = 10;

/** What blocks the deletion of a namespace: finalizers of others, by object, and the API server's text for the rest. */
function blockers(context: Context, namespace: Stored<Namespace>): string {
  const held = knownKinds.flatMap((type) => {
    if (!context.stores.has(type)) return [];
    const leaving = context.stores
      .of(type)
      .list(namespace.metadata.name)
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    return leaving.flatMap((object) => heldBy(type.kind, object) ?? []);
  });
  return namespaceBlockers(namespace, held.slice(0, mostNamed));
}

/**
 * Deletes the namespace of an org or space that is being deleted. Returns `gone`, or what blocks the deletion. A namespace of another owner is not
 * touched.
 */
export async function removeNamespace(context: Context, owner: Owner): Promise<{ gone: true } | { gone: false; message: string }> {
  const live = await namespaceToRemove(context, owner);
  if (live === undefined) return { gone: true };
  const { name, uid, deletionTimestamp } = live.metadata;
  if (deletionTimestamp === undefined)
    await context.cluster.delete(namespaceType, undefined, name, { uid, propagation: 'Background', signal: context.signal });
  return { gone: false, message: `The namespace ${name} is being deleted: ${blockers(context, live)}` };
}

/** Writes into the status why an org or space that is being deleted still exists. */
export async function reportDeleting<T extends WithStatus>(
  context: Context,
  type: ResourceType<T>,
  live: Stored<T>,
  message: string,
): Promise<void> {
  const conditions = conditionsWith(live, { type: conditionTypes.ready, status: 'False', reason: 'Deleting', message });
  await writeStatus(context, type, live, { guid: live.metadata.name, ...live.status, conditions });
}

/** For an object without our finalizer: names the finalizers of others that still hold it. */
export async function reportHeld<T extends WithStatus>(context: Context, type: ResourceType<T>, live: Stored<T>): Promise<void> {
  const held = heldBy(type.kind, live);
  if (held !== undefined) await reportDeleting(context, type, live, `${held}. Whoever set it must take it away.`);
}

type Finalizer = typeof finalizers.org | typeof finalizers.space;

/** Adds or removes one finalizer; sends nothing when it is right already. */
export async function setFinalizer<T extends KubeObject>(
  context: Context,
  type: ResourceType<T>,
  live: Stored<T>,
  change: { name: Finalizer; present: boolean },
): Promise<Stored<T>> {
  const { namespace, name, resourceVersion, finalizers: now = [] } = live.metadata;
  if (now.includes(change.name) === change.present) return live;
  const next = change.present ? [...now, change.name] : now.filter((finalizer) => finalizer !== change.name);
  return context.cluster.mergePatch(type, namespace, name, { metadata: { resourceVersion, finalizers: next } }, { signal: context.signal });
}

/** Orgs whose namespace, or whose parent namespace, has that name. */
export function orgKeys(ns: string, stores: Stores): string[] {
  const orgs = stores.of(kinds.org).list();
  return orgs
    .filter((org) => org.metadata.name === ns || org.metadata.namespace === ns)
    .map((org) => `${org.metadata.namespace}/${org.metadata.name}`);
}

/** Spaces whose namespace, or whose parent namespace, has that name. */
export function spaceKeys(ns: string, stores: Stores): string[] {
  const spaces = stores.of(kinds.space).list();
  return spaces
    .filter((space) => space.metadata.name === ns || space.metadata.namespace === ns)
    .map((space) => `${space.metadata.namespace}/${space.metadata.name}`);
}

export { deletionPollMs };
