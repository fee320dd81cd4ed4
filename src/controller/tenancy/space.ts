// Reconciles CFSpace: a namespace with the space's labels, the service accounts of its apps, registry credentials, the roles of its org, and an
// orderly deletion.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { namespaceType, nodeType, roleBindingType, serviceAccountType } from '../../lib/api/core.ts';
import type { Namespace, RoleBinding, ServiceAccount } from '../../lib/api/core.ts';
import { conditionTypes, finalizers, kinds, labels } from '../../lib/api/group.ts';
import { networkPolicyType, type NetworkPolicy } from '../../lib/api/network-policy.ts';
import { isSshEnabled } from '../../lib/api/ssh.ts';
import type { CFOrg, CFQuota, CFSpace } from '../../lib/api/types.generated.ts';
import { spaceAccount, spaceAccounts, spaceNamespace } from '../../templates/namespace.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeStatus } from '../runtime/status.ts';
import type { Statement } from '../runtime/status.ts';
import { splitKey } from '../runtime/store.ts';
import { BuildHosts } from '../builds/hosts.ts';
import { claimName } from '../names/leases.ts';
import {
  deletionPollMs,
  ensureNamespace,
  ensureObject,
  ensureOwnRights,
  propagateRoles,
  removeNamespace,
  reportDeleting,
  reportHeld,
  setFinalizer,
  spaceKeys,
  withFreshRights,
} from './namespaces.ts';
import { isNamespaceOf, type Owner } from './ownership.ts';
import { ensureSpaceLimits, type SpaceShares } from './limits.ts';
import { instanceMemoryNotes, quotasOf, spaceKeysOfQuota } from './quotas.ts';
import { ensureNetworkPolicies } from './network.ts';
import { ensureRegistrySecrets } from '../registry/credentials.ts';
import { paceMs } from '../runtime/secrets.ts';
import type { RegistryKeys } from '../registry/credentials.ts';

/** Two Secrets and the quota. */
const looksPerSpace = 3;

/**
 * @param keys shared with the reconciler of builds
 * @param shares shared with the reconciler of orgs' shares
 */
export function spaceReconciler(keys: RegistryKeys, shares: SpaceShares): Reconciler {
  const looks: Looks = { shares, lookedAt: new Map(), hosts: new BuildHosts() };
  return {
    name: 'space',
    watches: [
      watch(kinds.space),
      watch<CFOrg>(kinds.org, (org, stores) => spaceKeys(org.metadata.name, stores)),
      watch<CFQuota>(kinds.quota, spaceKeysOfQuota),
      watch<Namespace>(namespaceType, (namespace, stores) => spaceKeys(namespace.metadata.name, stores)),
      watch<RoleBinding>(roleBindingType, (binding, stores) => spaceKeys(binding.metadata.namespace, stores)),
      watch<ServiceAccount>(serviceAccountType, (account, stores) => spaceKeys(account.metadata.namespace, stores)),
      watch<NetworkPolicy>(networkPolicyType, (policy, stores) => spaceKeys(policy.metadata.namespace, stores)),
    ],
    reads: [nodeType],
    reconcile: async (key, context) => {
      const { ns, name } = splitKey(key);
      const space = context.stores.of(kinds.space).get(ns, name);
      if (space === undefined) {
        looks.lookedAt.delete(name);
        return undefined;
      }
      return space.metadata.deletionTimestamp === undefined ? reconcileSpace(context, space, keys, looks) : remove(context, space);
    },
  };
}

async function reconcileSpace(context: Context, live: Stored<CFSpace>, keys: RegistryKeys, looks: Looks): Promise<Result | undefined> {
  const claim = await claimName(context, { entity: 'space', object: live });
  if (claim.notReady !== undefined) {
    await write(context, live, claim.claimed, claim.notReady);
    return claim;
  }
  const space = await setFinalizer(context, kinds.space, live, { name: finalizers.space, present: true });
  const pace = paceMs(context.stores.of(kinds.space).size, looksPerSpace);
  try {
    await ensureParts(context, space, keys, { ...looks, pace });
  } catch (error) {
    await write(context, space, claim.claimed, notReady(error));
    throw error;
  }
  await write(context, space, claim.claimed, readyStatement, ...sshStatement(space));
  return { requeueAfterMs: pace };
}

/** The namespace has the label by now. Nothing where nobody has ever said it. */
function sshStatement(space: Stored<CFSpace>): Statement[] {
  const type = conditionTypes.sshAllowed;
  if (space.metadata.labels?.[labels.ssh] === undefined && findCondition(space, type) === undefined) return [];
  return isSshEnabled(space)
    ? [{ type, status: 'True', reason: 'Enabled', message: '' }]
    : [{ type, status: 'False', reason: 'Disabled', message: 'Nobody can open shells in instances of the space.' }];
}

interface Looks {
  shares: SpaceShares;
  lookedAt: Map<string, number>;
  hosts: BuildHosts;
}

interface PacedLooks extends Looks {
  pace: number;
}

async function ensureParts(context: Context, space: Stored<CFSpace>, keys: RegistryKeys, looks: PacedLooks): Promise<void> {
  const { name, namespace: org } = space.metadata;
  // Without its org, the space would be a namespace without an owner, so the org's own namespace must exist first.
  const parent = context.stores.of(kinds.org).get(context.info().root, org);
  if (parent === undefined) throw new WaitingError('OrgNotFound', `The org '${org}' of the space does not exist.`);
  const home = context.stores.of(namespaceType).get(undefined, org);
  if (home === undefined || !isNamespaceOf(home, { entity: 'org', object: parent }))
    throw new WaitingError('OrgNotReady', `The namespace of the org '${parent.spec.displayName}' does not exist yet.`);
  const owner: Owner = { entity: 'space', object: space };
  const namespace = await ensureInstanceMemory(context, space, await ensureNamespace(context, owner, spaceNamespace(space, parent)));
  await withFreshRights(context, namespace, async () => {
    await ensureOwnRights(context, name);
    // Before anybody gets a right in the space.
    const limits = isDue(context, name, looks)
      ? ensureSpaceLimits(context, org, { ns: name, isReady: isReady(space) }, looks.shares)
      : undefined;
    await Promise.all([limits, ensureNetworkPolicies(context, name, looks.hosts)]);
    const accounts = spaceAccounts.map((account) => ensureObject(context, serviceAccountType, spaceAccount(account, name)));
    await Promise.all([...accounts, propagateRoles(context, org, name), ensureSecrets(context, name, keys, looks)]);
  });
}

/** Tells the policy how much memory the quotas allow one instance. */
async function ensureInstanceMemory(context: Context, space: Stored<CFSpace>, namespace: Stored<Namespace>): Promise<Stored<Namespace>> {
  const { name, resourceVersion, annotations: live = {} } = namespace.metadata;
  const quotas = quotasOf(context.stores, context.info().root, space.metadata.namespace, space);
  const notes = instanceMemoryNotes(quotas, live);
  if (Object.entries(notes).every(([key, note]) => (live[key] ?? null) === note)) return namespace;
  const patch = { metadata: { resourceVersion, annotations: notes } };
  return context.cluster.mergePatch(namespaceType, undefined, name, patch, { signal: context.signal });
}

const isReady = (space: Stored<CFSpace>): boolean => findCondition(space, conditionTypes.ready)?.status === 'True';

/** Unwatched objects are checked at intervals. */
function isDue(context: Context, name: string, { lookedAt, pace }: PacedLooks): boolean {
  const last = lookedAt.get(name);
  return last === undefined || context.now() - last >= pace * 0.9;
}

async function ensureSecrets(context: Context, name: string, keys: RegistryKeys, looks: PacedLooks): Promise<void> {
  if (!isDue(context, name, looks)) return;
  await ensureRegistrySecrets(context, keys, name);
  looks.lookedAt.set(name, context.now());
}

async function write(context: Context, space: Stored<CFSpace>, ...statements: Statement[]): Promise<void> {
  const conditions = conditionsWith(space, ...statements);
  await writeStatus(context, kinds.space, space, { ...space.status, guid: space.metadata.name, conditions });
}

async function remove(context: Context, space: Stored<CFSpace>): Promise<Result | undefined> {
  const { finalizers: present = [] } = space.metadata;
  if (!present.includes(finalizers.space)) {
    await reportHeld(context, kinds.space, space);
    return undefined;
  }
  const end = await removeNamespace(context, { entity: 'space', object: space });
  if (!end.gone) {
    await reportDeleting(context, kinds.space, space, end.message);
    return { requeueAfterMs: deletionPollMs };
  }
  await setFinalizer(context, kinds.space, space, { name: finalizers.space, present: false });
  return undefined;
}
