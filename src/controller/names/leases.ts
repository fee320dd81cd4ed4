// Unique names, as in Korifi: a name belongs to the object that holds its Lease. An object without its Lease has no effect.

import { findCondition } from '../../lib/api/conditions.ts';
import { leaseType } from '../../lib/api/core.ts';
import type { Lease } from '../../lib/api/core.ts';
import { annotations, conditionTypes, kinds, labels, reasons } from '../../lib/api/group.ts';
import { nameClaims } from '../../lib/api/names.ts';
import type { NameClaim } from '../../lib/api/names.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import type { CFApp, CFOrg, CFRoute, CFServiceBinding, CFServiceInstance, CFSpace } from '../../lib/api/types.generated.ts';
import { ownerReference } from '../../templates/metadata.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import type { Statement } from '../runtime/status.ts';

/** An object with a name to claim, and what its claim or its message needs from other objects. */
export type NamedObject =
  | { entity: 'org'; object: Stored<CFOrg> }
  | { entity: 'space'; object: Stored<CFSpace> }
  | { entity: 'app'; object: Stored<CFApp> }
  /** `domainName` is for the message only. */
  | { entity: 'route'; object: Stored<CFRoute>; domainName: string }
  | { entity: 'serviceInstance'; object: Stored<CFServiceInstance> }
  /** `instanceName` counts where the binding has no name of its own. */
  | { entity: 'serviceBinding'; object: Stored<CFServiceBinding>; instanceName: string };

export interface ClaimOutcome {
  held: boolean;
  /** Condition `Claimed`. */
  claimed: Statement;
  /** Condition `Ready` of an object whose name is taken; nothing else may be made for it. */
  notReady?: Statement;
}

/** An object whose name is taken looks again after this time: its owner may have gone or been renamed. */
export const duplicateRetryMs = 3_000;
/** A claim that was seen to hold is not looked up again for so long. */
export const trustMs = 60_000;
const rememberedClaims = 10_000;

/** Kinds by the entity type that their Leases carry. */
export const claimedKinds: Record<string, ResourceType> = {
  cforg: kinds.org,
  cfspace: kinds.space,
  app: kinds.app,
  route: kinds.route,
  serviceinstance: kinds.serviceInstance,
  servicebinding: kinds.serviceBinding,
};

const heldClaims = new Remembered(() => new BoundedMap<string, { lease: string; at: number }>(rememberedClaims));

function claimOf(named: NamedObject): NameClaim {
  switch (named.entity) {
    case 'org':
      return nameClaims.org(named.object);
    case 'space':
      return nameClaims.space(named.object);
    case 'app':
      return nameClaims.app(named.object);
    case 'route':
      return nameClaims.route(named.object);
    case 'serviceInstance':
      return nameClaims.serviceInstance(named.object);
    case 'serviceBinding':
      return nameClaims.serviceBinding(named.object, named.instanceName);
  }
}

/** The contract's texts (16.3): cf looks for some of them. */
function duplicateText(named: NamedObject): string {
  switch (named.entity) {
    case 'org':
      return `Organization '${named.object.spec.displayName}' already exists.`;
    case 'space':
      return `Space '${named.object.spec.displayName}' already exists. Name must be unique per organization.`;
    case 'app':
      return `App with the name '${named.object.spec.displayName}' already exists.`;
    case 'route': {
      const { host = '', path = '' } = named.object.spec;
      return `Route already exists with host '${host}'${path === '' ? '' : ` and path '${path}'`} for domain '${named.domainName}'.`;
    }
    case 'serviceInstance':
      return `The service instance name is taken: ${named.object.spec.displayName}`;
    case 'serviceBinding':
      return `Service binding already exists: ${named.object.spec.displayName ?? named.instanceName}. Each binding of an app needs a name of its own.`;
  }
}

// Orgs and routes are unique in the whole installation, so their Leases lie in the root namespace, where domains are too.
function leaseNamespace(named: NamedObject): string {
  if (named.entity === 'route') return named.object.spec.domainRef.namespace ?? '';
  return named.object.metadata.namespace;
}

function leaseFor(named: NamedObject, claim: NameClaim): Lease {
  const ns = leaseNamespace(named);
  const type = claimedKinds[claim.entityType];
  // In one namespace the garbage collector frees the name together with its owner.
  const isBeside = ns === named.object.metadata.namespace && type !== undefined;
  return claimLease(ns, claim, named.object, isBeside ? { ownerReferences: [ownerReference(type, named.object, false)] } : {});
}

/** The Lease that says that a name is `owner`'s. */
export function claimLease(ns: string, claim: NameClaim, owner: KubeObject, more: Partial<KubeObject['metadata']> = {}): Lease {
  const { namespace = '', name = '' } = owner.metadata;
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: claim.leaseName,
      namespace: ns,
      labels: { [labels.managedBy]: 'kf' },
      annotations: {
        [annotations.leaseEntityType]: claim.entityType,
        [annotations.leaseNamespace]: ns,
        [annotations.leaseName]: claim.uniqueName,
        [annotations.leaseOwnerNamespace]: namespace,
        [annotations.leaseOwnerName]: name,
      },
      ...more,
    },
    spec: { holderIdentity: 'none' },
  };
}

export function leaseOwner(lease: Stored<Lease>): { type: ResourceType | undefined; namespace: string; name: string } {
  const notes = lease.metadata.annotations ?? {};
  return {
    type: claimedKinds[notes[annotations.leaseEntityType] ?? ''],
    namespace: notes[annotations.leaseOwnerNamespace] ?? '',
    name: notes[annotations.leaseOwnerName] ?? '',
  };
}

/** False only when the owner is known to be gone, or to bear another name by now. */
async function isOwned(context: Context, lease: Stored<Lease>, named: NamedObject): Promise<boolean> {
  const owner = leaseOwner(lease);
  // Who claims a route holds its host: a path of it that another space once held means nothing any more.
  if (named.entity === 'route' && owner.namespace !== named.object.metadata.namespace) return false;
  if (owner.type === undefined) return true;
  const object = await context.cluster.get(owner.type, owner.namespace, owner.name, context.signal);
  if (object === undefined) return false;
  const wanted = currentClaim(owner.type, object);
  return wanted === undefined || wanted.leaseName === lease.metadata.name;
}

/** The claim that an object makes by itself; undefined where it takes another object to tell. */
export function currentClaim(type: ResourceType, object: KubeObject): NameClaim | undefined {
  switch (type.kind) {
    case kinds.org.kind:
      return nameClaims.org(object as CFOrg);
    case kinds.space.kind:
      return nameClaims.space(object as CFSpace);
    case kinds.app.kind:
      return nameClaims.app(object as CFApp);
    case kinds.route.kind:
      return nameClaims.route(object as CFRoute);
    case kinds.serviceInstance.kind:
      return nameClaims.serviceInstance(object as CFServiceInstance);
    default:
      return undefined;
  }
}

export function isLeaseOf(lease: Stored<Lease>, object: KubeObject): boolean {
  const owner = leaseOwner(lease);
  return owner.namespace === (object.metadata.namespace ?? '') && owner.name === object.metadata.name;
}

/** For `duplicate` the Lease of whoever has the name. */
type Taken = { state: 'held' | 'acquired' } | { state: 'duplicate'; lease: Stored<Lease> };

/** False when there is a Lease of that name already. */
export async function createLease(context: Context, lease: Lease): Promise<boolean> {
  try {
    await context.cluster.create(leaseType, lease, { signal: context.signal });
    return true;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return false;
  }
}

async function take(context: Context, named: NamedObject, wanted: Lease): Promise<Taken> {
  const { namespace, name = '' } = wanted.metadata;
  const mayHold = findCondition(named.object, conditionTypes.claimed)?.status === 'True';
  if (!mayHold && (await createLease(context, wanted))) return { state: 'acquired' };
  const present = await context.cluster.get(leaseType, namespace, name, context.signal);
  if (present === undefined) {
    if (mayHold && (await createLease(context, wanted))) return { state: 'acquired' };
    throw new WaitingError('NameInMotion', 'The name is being given free or taken at this moment.', 200);
  }
  if (isLeaseOf(present, named.object)) return keepLease(context, present, wanted);
  if (await isOwned(context, present, named)) return { state: 'duplicate', lease: present };
  // The resource version makes sure that of several who see a free name only one gets it.
  const { resourceVersion, uid } = present.metadata;
  await context.cluster.replace(
    leaseType,
    { ...wanted, metadata: { ...wanted.metadata, resourceVersion, uid } },
    { signal: context.signal },
  );
  return { state: 'acquired' };
}

/** A Lease that a deleted object of the same name left, or that came from a backup, names an owner that is gone: the garbage collector would take it. */
async function keepLease(context: Context, present: Stored<Lease>, wanted: Lease): Promise<Taken> {
  const { ownerReferences: owners = [], resourceVersion, uid } = present.metadata;
  const isOwners = (wanted.metadata.ownerReferences ?? []).every((owner) => owners.some((other) => other.uid === owner.uid));
  if (!isOwners) {
    const metadata = { ...wanted.metadata, resourceVersion, uid };
    await context.cluster.replace(leaseType, { ...wanted, metadata }, { signal: context.signal });
  }
  return { state: 'held' };
}

/** Frees the Leases of names that the object bore before. */
async function releaseOthers(context: Context, wanted: Lease, object: KubeObject): Promise<void> {
  const { namespace = '', name } = wanted.metadata;
  const { items } = await context.cluster.list(leaseType, {
    ns: namespace,
    labelSelector: `${labels.managedBy}=kf`,
    signal: context.signal,
  });
  const entity = wanted.metadata.annotations?.[annotations.leaseEntityType];
  for (const lease of items) {
    const same = lease.metadata.annotations?.[annotations.leaseEntityType] === entity && isLeaseOf(lease, object);
    if (same && lease.metadata.name !== name) await freeLease(context, lease);
  }
}

/** Deletes exactly this Lease in exactly this state. */
export async function freeLease(context: Context, lease: Stored<Lease>): Promise<void> {
  const { namespace, name, uid, resourceVersion } = lease.metadata;
  await context.cluster.delete(leaseType, namespace, name, { uid, resourceVersion, signal: context.signal });
}

/** The outcome for an object that may not have its name: nothing is made for it. */
export function refusedClaim(reason: string, message: string): ClaimOutcome {
  const statement: Statement = { type: conditionTypes.claimed, status: 'False', reason, message };
  return { held: false, claimed: statement, notReady: { ...statement, type: conditionTypes.ready } };
}

/** The outcome for an object that has its name. */
export const heldClaim: ClaimOutcome = {
  held: true,
  claimed: { type: conditionTypes.claimed, status: 'True', reason: reasons.claimed, message: '' },
};

/**
 * Claims the object's name, or finds out who has it. To be called on every reconcile of a named kind before anything is made for the object; asks the
 * API server at most once a minute per object whose claim holds.
 */
export async function claimName(context: Context, named: NamedObject): Promise<ClaimOutcome> {
  const claim = claimOf(named);
  const uid = named.object.metadata.uid;
  const seen = context.memory.of(heldClaims);
  const known = seen.get(uid);
  if (known?.lease === claim.leaseName && context.now() - known.at < trustMs) return heldClaim;
  const wanted = leaseFor(named, claim);
  const before = findCondition(named.object, conditionTypes.claimed);
  const taken = await take(context, named, wanted);
  if (taken.state === 'duplicate') {
    seen.delete(uid);
    const owner = leaseOwner(taken.lease);
    const who = `(${owner.type?.kind ?? 'object'} ${owner.namespace}/${owner.name} has it)`;
    return refusedClaim(reasons.duplicateName, `${duplicateText(named)} ${named.entity === 'route' ? 'This space has it already.' : who}`);
  }
  const isRename = taken.state === 'acquired' && before?.status === 'True';
  if (isRename) await releaseOthers(context, wanted, named.object);
  seen.set(uid, { lease: claim.leaseName, at: context.now() });
  return heldClaim;
}
