// Unique names, as in Korifi: a name belongs to the object that holds its Lease. The controller makes nothing for an object that does not hold one.

import { findCondition } from '../../lib/api/conditions.ts';
import { leaseType } from '../../lib/api/core.ts';
import type { Lease } from '../../lib/api/core.ts';
import { annotations, conditionTypes, kinds, labels, reasons } from '../../lib/api/group.ts';
import { nameClaims } from '../../lib/api/names.ts';
import type { NameClaim } from '../../lib/api/names.ts';
import type { Condition, KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
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
  /** `domainName` is only for the message. */
  | { entity: 'route'; object: Stored<CFRoute>; domainName: string }
  | { entity: 'serviceInstance'; object: Stored<CFServiceInstance> }
  /** `instanceName` is used when the binding has no name of its own. */
  | { entity: 'serviceBinding'; object: Stored<CFServiceBinding>; instanceName: string };

export interface ClaimOutcome {
  held: boolean;
  /** Condition `Claimed`. */
  claimed: Statement;
  /** Condition `Ready` of an object whose name is taken; nothing else may be made for it. */
  notReady?: Statement;
  /** When to look again whether a taken name is free. */
  requeueAfterMs?: number;
}

/**
 * An object whose name is taken looks again after this time: its owner may have gone or been renamed. The longer the name has been taken, the later,
 * because each look asks the API server, and a space can have many such objects.
 */
const duplicateRetryMs = { first: 3_000, last: 60_000 };
/** How long a claim counts as held after its Lease was read. */
export const trustMs = 60_000;
const rememberedClaims = 10_000;

/** The kind that each entity type in a Lease stands for. */
export const claimedKinds: Record<string, ResourceType> = {
  cforg: kinds.org,
  cfspace: kinds.space,
  app: kinds.app,
  route: kinds.route,
  serviceinstance: kinds.serviceInstance,
  servicebinding: kinds.serviceBinding,
};

/** The Lease that each object was seen to hold, by the object's uid. */
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

/** Texts of the contract (16.3); cf recognizes some of them. */
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

// The names of orgs and routes are unique in the whole installation: their Leases are in the root namespace, where orgs and domains are as well.
function leaseNamespace(named: NamedObject): string {
  if (named.entity === 'route') return named.object.spec.domainRef.namespace ?? '';
  return named.object.metadata.namespace;
}

function leaseFor(named: NamedObject, claim: NameClaim): Lease {
  const ns = leaseNamespace(named);
  const type = claimedKinds[claim.entityType];
  // The garbage collector frees the name when its owner goes. Owner references work only within one namespace.
  const canBeOwned = ns === named.object.metadata.namespace && type !== undefined;
  return claimLease(ns, claim, named.object, canBeOwned ? { ownerReferences: [ownerReference(type, named.object, false)] } : {});
}

/** The Lease by which `owner` holds a name. */
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

/** The object that holds a Lease, by the Lease's annotations; no type for an entity type that is not known. */
export function leaseOwner(lease: Stored<Lease>): { type: ResourceType | undefined; namespace: string; name: string } {
  const { annotations: values = {} } = lease.metadata;
  return {
    type: claimedKinds[values[annotations.leaseEntityType] ?? ''],
    namespace: values[annotations.leaseOwnerNamespace] ?? '',
    name: values[annotations.leaseOwnerName] ?? '',
  };
}

/** Whether the Lease's owner still has the name. False only when the owner does not exist any more or has another name now. */
async function isOwned(context: Context, lease: Stored<Lease>, named: NamedObject): Promise<boolean> {
  const owner = leaseOwner(lease);
  // An object claims a route only after its space has got the route's host: the Lease of a path that another space held before is out of date.
  if (named.entity === 'route' && owner.namespace !== named.object.metadata.namespace) return false;
  if (owner.type === undefined) return true;
  const object = await context.cluster.get(owner.type, owner.namespace, owner.name, context.signal);
  if (object === undefined) return false;
  const wanted = currentClaim(owner.type, object) ?? (await claimOfBinding(context, owner.type, object));
  return wanted === undefined || wanted.leaseName === lease.metadata.name;
}

/** The claim of a service binding; undefined when its instance is gone, whose name it may need. */
async function claimOfBinding(context: Context, type: ResourceType, object: Stored): Promise<NameClaim | undefined> {
  if (type.kind !== kinds.serviceBinding.kind) return undefined;
  const binding = object as Stored<CFServiceBinding>;
  const { namespace } = binding.metadata;
  const instance = await context.cluster.get(kinds.serviceInstance, namespace, binding.spec.service.name ?? '', context.signal);
  return instance === undefined ? undefined : nameClaims.serviceBinding(binding, instance.spec.displayName);
}

/** The claim that follows from an object alone; undefined when it depends on another object, as that of a service binding does. */
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

/** Whether the object holds the Lease. */
export function isLeaseOf(lease: Stored<Lease>, object: KubeObject): boolean {
  const owner = leaseOwner(lease);
  return owner.namespace === (object.metadata.namespace ?? '') && owner.name === object.metadata.name;
}

/** For `duplicate`: the Lease of the object that has the name. */
type Taken = { state: 'held' | 'acquired' } | { state: 'duplicate'; lease: Stored<Lease> };

/** Creates a Lease; false when one of that name exists already. */
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
    throw new WaitingError('NameInMotion', 'Another object is claiming or releasing this name right now.', 200);
  }
  if (isLeaseOf(present, named.object)) return keepLease(context, present, wanted);
  if (await isOwned(context, present, named)) return { state: 'duplicate', lease: present };
  // Several objects may find the name free at the same time; the resource version lets only one of them replace the Lease.
  const { resourceVersion, uid } = present.metadata;
  await context.cluster.replace(
    leaseType,
    { ...wanted, metadata: { ...wanted.metadata, resourceVersion, uid } },
    { signal: context.signal },
  );
  return { state: 'acquired' };
}

/**
 * Corrects the owner reference of a Lease that the object holds. It is wrong when the Lease is that of a deleted object of the same name, or came from a
 * backup: the garbage collector would delete it.
 */
async function keepLease(context: Context, present: Stored<Lease>, wanted: Lease): Promise<Taken> {
  const { ownerReferences: owners = [], resourceVersion, uid } = present.metadata;
  const hasOwners = (wanted.metadata.ownerReferences ?? []).every((owner) => owners.some((other) => other.uid === owner.uid));
  if (!hasOwners) {
    const metadata = { ...wanted.metadata, resourceVersion, uid };
    await context.cluster.replace(leaseType, { ...wanted, metadata }, { signal: context.signal });
  }
  return { state: 'held' };
}

/** Frees the names that the object had before. */
async function releaseOthers(context: Context, wanted: Lease, object: KubeObject): Promise<void> {
  const { namespace = '', name } = wanted.metadata;
  const { items } = await context.cluster.list(leaseType, {
    ns: namespace,
    labelSelector: `${labels.managedBy}=kf`,
    signal: context.signal,
  });
  const entity = wanted.metadata.annotations?.[annotations.leaseEntityType];
  for (const lease of items) {
    const isOwn = lease.metadata.annotations?.[annotations.leaseEntityType] === entity && isLeaseOf(lease, object);
    if (isOwn && lease.metadata.name !== name) await freeLease(context, lease);
  }
}

/** Deletes this Lease, unless it has changed since it was read. */
export async function freeLease(context: Context, lease: Stored<Lease>): Promise<void> {
  const { namespace, name, uid, resourceVersion } = lease.metadata;
  await context.cluster.delete(leaseType, namespace, name, { uid, resourceVersion, signal: context.signal });
}

/** The outcome for an object whose name is taken: nothing is made for it. */
export function refusedClaim(reason: string, message: string): ClaimOutcome {
  const statement: Statement = { type: conditionTypes.claimed, status: 'False', reason, message };
  return { held: false, claimed: statement, notReady: { ...statement, type: conditionTypes.ready } };
}

function nextLookMs({ now }: Context, before: Condition | undefined): number {
  const { first, last } = duplicateRetryMs;
  const takenMs = before?.status === 'False' ? now() - Date.parse(before.lastTransitionTime) : 0;
  return Math.min(Math.max(takenMs / 10, first), last);
}

/** The outcome for an object that has its name. */
export const heldClaim: ClaimOutcome = {
  held: true,
  claimed: { type: conditionTypes.claimed, status: 'True', reason: reasons.claimed, message: '' },
};

/**
 * Claims the object's name, or finds out which object has it. Every reconcile of a named kind calls this before it makes anything for the object. For a
 * claim that holds, the API server is asked at most once in {@link trustMs}.
 */
export async function claimName(context: Context, named: NamedObject): Promise<ClaimOutcome> {
  const claim = claimOf(named);
  const uid = named.object.metadata.uid;
  const held = context.memory.of(heldClaims);
  const known = held.get(uid);
  if (known?.lease === claim.leaseName && context.now() - known.at < trustMs) return heldClaim;
  const wanted = leaseFor(named, claim);
  const before = findCondition(named.object, conditionTypes.claimed);
  const taken = await take(context, named, wanted);
  if (taken.state === 'duplicate') {
    held.delete(uid);
    const owner = leaseOwner(taken.lease);
    const who = `(${owner.type?.kind ?? 'object'} ${owner.namespace}/${owner.name} has it)`;
    const text = `${duplicateText(named)} ${named.entity === 'route' ? 'This space has it already.' : who}`;
    return { ...refusedClaim(reasons.duplicateName, text), requeueAfterMs: nextLookMs(context, before) };
  }
  // Also an object whose last name was taken may still hold the one before that.
  const isRename = taken.state === 'acquired' && before !== undefined;
  if (isRename) await releaseOthers(context, wanted, named.object);
  held.set(uid, { lease: claim.leaseName, at: context.now() });
  return heldClaim;
}
