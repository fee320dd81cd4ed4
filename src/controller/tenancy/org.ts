// Reconciles CFOrg: a namespace with the org's labels, the roles of all orgs, and an orderly deletion.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { namespaceType, roleBindingType } from '../../lib/api/core.ts';
import type { Namespace, RoleBinding } from '../../lib/api/core.ts';
import { conditionTypes, finalizers, kinds, labels } from '../../lib/api/group.ts';
import type { CFOrg, CFSpace } from '../../lib/api/types.generated.ts';
import { orgNamespace } from '../../templates/namespace.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeStatus } from '../runtime/status.ts';
import type { Statement } from '../runtime/status.ts';
import { splitKey } from '../runtime/store.ts';
import { ensureOrgLimits } from './limits.ts';
import { claimName } from '../names/leases.ts';
import {
  deletionPollMs,
  ensureNamespace,
  ensureOwnRights,
  orgKeys,
  propagateRoles,
  removeNamespace,
  reportDeleting,
  reportHeld,
  setFinalizer,
  withFreshRights,
} from './namespaces.ts';
import { namespaceToRemove, ownerUid } from './ownership.ts';
import type { Owner } from './ownership.ts';

export const orgReconciler: Reconciler = {
  name: 'org',
  watches: [
    watch(kinds.org),
    watch<Namespace>(namespaceType, (namespace, stores) =>
      namespace.metadata.labels?.[labels.spaceGuid] === undefined ? orgKeys(namespace.metadata.name, stores) : [],
    ),
    watch<RoleBinding>(roleBindingType, (binding, stores) => orgKeys(binding.metadata.namespace, stores)),
    watch<CFSpace>(kinds.space, (space, stores) =>
      orgKeys(space.metadata.namespace, stores).filter(
        (key) => stores.of(kinds.org).get(...keyParts(key))?.metadata.deletionTimestamp !== undefined,
      ),
    ),
  ],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const org = context.stores.of(kinds.org).get(ns, name);
    if (org === undefined) return undefined;
    return org.metadata.deletionTimestamp === undefined ? reconcileOrg(context, org) : remove(context, org);
  },
};

const keyParts = (key: string): [string, string] => {
  const { ns, name } = splitKey(key);
  return [ns, name];
};

async function reconcileOrg(context: Context, live: Stored<CFOrg>): Promise<Result | undefined> {
  const claim = await claimName(context, { entity: 'org', object: live });
  if (claim.notReady !== undefined) {
    await write(context, live, claim.claimed, claim.notReady);
    return claim;
  }
  const org = await setFinalizer(context, kinds.org, live, { name: finalizers.org, present: true });
  let requeueAfterMs: number | undefined;
  try {
    requeueAfterMs = await ensureParts(context, org);
  } catch (error) {
    await write(context, org, claim.claimed, notReady(error));
    throw error;
  }
  await write(context, org, claim.claimed, readyStatement);
  return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
}

/** Returns in how many milliseconds there is more to do, if anything. */
async function ensureParts(context: Context, org: Stored<CFOrg>): Promise<number | undefined> {
  const name = org.metadata.name;
  const namespace = await ensureNamespace(context, { entity: 'org', object: org }, orgNamespace(org));
  const looks: (number | undefined)[] = [];
  await withFreshRights(context, namespace, async () => {
    await ensureOwnRights(context, name);
    looks.push(await ensureOrgLimits(context, name), await propagateRoles(context, org.metadata.namespace, name));
  });
  const due = looks.filter((look) => look !== undefined);
  return due.length === 0 ? undefined : Math.min(...due);
}

async function write(context: Context, org: Stored<CFOrg>, ...statements: Statement[]): Promise<void> {
  const conditions = conditionsWith(org, ...statements);
  await writeStatus(context, kinds.org, org, { ...org.status, guid: org.metadata.name, conditions });
}

/** A space that is being deleted, with the reason why it still exists. */
function spaceWithReason(space: Stored<CFSpace>): string {
  const ready = findCondition(space, conditionTypes.ready);
  return `'${space.spec.displayName}'${ready?.reason === 'Deleting' ? ` (${ready.message})` : ''}`;
}

async function remove(context: Context, org: Stored<CFOrg>): Promise<Result | undefined> {
  const { name, finalizers: present = [] } = org.metadata;
  if (!present.includes(finalizers.org)) {
    await reportHeld(context, kinds.org, org);
    return undefined;
  }
  const owner: Owner = { entity: 'org', object: org };
  // The GUID belongs to another owner, so only the org object itself is deleted.
  if ((await namespaceToRemove(context, owner)) === undefined) {
    await setFinalizer(context, kinds.org, org, { name: finalizers.org, present: false });
    return undefined;
  }
  const spaces = context.stores.of(kinds.space).list(name);
  for (const { metadata } of spaces) {
    if (metadata.deletionTimestamp !== undefined) continue;
    await context.cluster.delete(kinds.space, name, metadata.name, { uid: metadata.uid, signal: context.signal });
  }
  if (spaces.length > 0) {
    await reportDeleting(context, kinds.org, org, `These spaces are not gone yet: ${spaces.map(spaceWithReason).join(', ')}.`);
    return { requeueAfterMs: deletionPollMs };
  }
  await removeOrphans(context, name);
  const end = await removeNamespace(context, owner);
  if (!end.gone) {
    await reportDeleting(context, kinds.org, org, end.message);
    return { requeueAfterMs: deletionPollMs };
  }
  await setFinalizer(context, kinds.org, org, { name: finalizers.org, present: false });
  return undefined;
}

/**
 * Deletes namespaces of spaces that were deleted without the controller, because a manager of the org removed their finalizer: their apps would
 * run for ever.
 */
async function removeOrphans(context: Context, org: string): Promise<void> {
  const owners = new Set(
    context.stores
      .of(kinds.space)
      .list()
      .map(({ metadata }) => metadata.uid),
  );
  for (const namespace of context.stores.of(namespaceType).list()) {
    const { name, uid, deletionTimestamp, labels: marks = {} } = namespace.metadata;
    const owner = ownerUid(namespace);
    const isOfOrg = marks[labels.managedBy] === 'kf' && marks[labels.orgGuid] === org && marks[labels.spaceGuid] === name;
    if (!isOfOrg || owner === undefined || owners.has(owner) || deletionTimestamp !== undefined) continue;
    await context.cluster.delete(namespaceType, undefined, name, { uid, propagation: 'Background', signal: context.signal });
  }
}
