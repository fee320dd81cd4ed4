// Decides to whom a namespace belongs: to the one CFOrg or CFSpace whose uid it records, for ever. The name alone gives no right
// (docs/decisions/0011).

import type { Stored } from '../../lib/api/object.ts';
import { leaseType, namespaceType } from '../../lib/api/core.ts';
import type { Lease, Namespace } from '../../lib/api/core.ts';
import { annotations, kinds, labels, reasons } from '../../lib/api/group.ts';
import type { CFOrg, CFSpace } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import type { Context } from '../runtime/reconciler.ts';
import { TerminalError, WaitingError } from '../runtime/result.ts';

/** The owner of a namespace: an org or a space. The namespace is named by its GUID. */
export type Owner = { entity: 'org'; object: Stored<CFOrg> } | { entity: 'space'; object: Stored<CFSpace> };

const namesakeRetryMs = 3_000;
const rememberedRecords = 10_000;
/** Owners, by uid, whose record this process has seen. */
const recorded = new Remembered(() => new BoundedMap<string, true>(rememberedRecords));

const wordOf = ({ entity }: Owner): string => (entity === 'org' ? 'org' : 'space');
const guidOf = ({ object }: Owner): string => object.metadata.name;
const uidOf = ({ object }: Owner): string => object.metadata.uid;

/** The uid of the object that a namespace was made for; undefined for namespaces of 0.1.0 until they are adopted, and for foreign ones. */
export function ownerUid(namespace: Stored<Namespace>): string | undefined {
  return namespace.metadata.annotations?.[annotations.ownerUid];
}

/** True when the namespace was made for exactly this object. */
export function isNamespaceOf(namespace: Stored<Namespace>, { object }: Owner): boolean {
  return ownerUid(namespace) === object.metadata.uid;
}

/**
 * True for a namespace that 0.1.0, which wrote no uid, made for this object or for an older one of the same name. An object that is newer than the
 * namespace cannot be its owner.
 */
function isUnclaimedAndNotOlder(namespace: Stored<Namespace>, { object }: Owner): boolean {
  const { labels: marks = {}, creationTimestamp: made = '' } = namespace.metadata;
  const isOfTenants = marks[labels.managedBy] === 'kf' && marks[labels.orgGuid] !== undefined && marks[labels.partOf] === undefined;
  const { creationTimestamp: wanted = '' } = object.metadata;
  return isOfTenants && ownerUid(namespace) === undefined && wanted !== '' && wanted <= made;
}

function takenError(owner: Owner): TerminalError {
  return new TerminalError(
    reasons.guidTaken,
    `The GUID '${guidOf(owner)}' belongs to another org or space, so nothing is made for this ${wordOf(owner)}. Delete it and create it again with its own GUID.`,
  );
}

function notOursError(owner: Owner): TerminalError {
  const name = guidOf(owner);
  return new TerminalError(
    reasons.namespaceNotOurs,
    `A namespace '${name}' exists that kf did not make, so nothing is made for this ${wordOf(owner)}.`,
  );
}

/** Only admins make orgs, so an org comes before a space of the same second. */
function isOlder(a: Owner, b: Owner): boolean {
  const order = ({ entity, object }: Owner): string => `${object.metadata.creationTimestamp ?? ''} ${entity} ${object.metadata.uid}`;
  return order(a) < order(b);
}

/** Whether an older org or space has the same name. Asks the API server, because the caches of the two kinds may differ in age. */
async function olderNamesake(context: Context, owner: Owner): Promise<boolean> {
  const query = { fieldSelector: `metadata.name=${guidOf(owner)}`, signal: context.signal };
  const [orgs, spaces] = await Promise.all([
    context.cluster.list(kinds.org, { ...query, ns: context.info().root }),
    context.cluster.list(kinds.space, query),
  ]);
  const others: Owner[] = [
    ...orgs.items.map((object): Owner => ({ entity: 'org', object })),
    ...spaces.items.map((object): Owner => ({ entity: 'space', object })),
  ];
  return others.some((other) => uidOf(other) !== uidOf(owner) && isOlder(other, owner));
}

function recordFor(owner: Owner, ns: string): Lease {
  const { name, namespace } = owner.object.metadata;
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: `guid.${name}`,
      namespace: ns,
      labels: { [labels.managedBy]: 'kf' },
      annotations: {
        [annotations.leaseEntityType]: owner.entity === 'org' ? 'cforg' : 'cfspace',
        [annotations.leaseOwnerNamespace]: namespace,
      },
    },
    spec: { holderIdentity: uidOf(owner) },
  };
}

/** Records for ever that the GUID belongs to this object. @throws TerminalError when it belongs, or belonged, to another one */
async function recordGuid(context: Context, owner: Owner): Promise<void> {
  if (context.memory.of(recorded).has(uidOf(owner))) return;
  const record = recordFor(owner, context.info().controller.namespace);
  const { namespace, name = '' } = record.metadata;
  try {
    await context.cluster.create(leaseType, record, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const present = await context.cluster.get(leaseType, namespace, name, context.signal);
    if (present?.spec?.holderIdentity !== uidOf(owner)) throw takenError(owner);
  }
  context.memory.of(recorded).set(uidOf(owner), true);
}

/**
 * The existing namespace if it belongs to this object; undefined when it is to be created. In both cases the GUID belongs to this object from then
 * on. A namespace of 0.1.0 is returned without the uid; the caller writes the uid with the labels.
 * @throws TerminalError when the name belongs to another owner; nothing may be created or deleted for the object then
 */
export async function claimNamespace(context: Context, owner: Owner): Promise<Stored<Namespace> | undefined> {
  const name = guidOf(owner);
  const cached = context.stores.of(namespaceType).get(undefined, name);
  const isKnown = cached !== undefined && isNamespaceOf(cached, owner);
  const live = isKnown ? cached : await context.cluster.get(namespaceType, undefined, name, context.signal);
  if (live === undefined || isUnclaimedAndNotOlder(live, owner)) {
    if (!context.memory.of(recorded).has(uidOf(owner)) && (await olderNamesake(context, owner)))
      throw new WaitingError(reasons.guidTaken, takenError(owner).message, namesakeRetryMs);
  } else if (!isNamespaceOf(live, owner)) {
    const isOfTenants = live.metadata.labels?.[labels.orgGuid] !== undefined && live.metadata.labels[labels.managedBy] === 'kf';
    throw isOfTenants ? takenError(owner) : notOursError(owner);
  }
  await recordGuid(context, owner);
  return live;
}

/** The namespace of an object that is being deleted; undefined when there is none, or when it belongs to another owner. */
export async function namespaceToRemove(context: Context, owner: Owner): Promise<Stored<Namespace> | undefined> {
  const name = guidOf(owner);
  const cached = context.stores.of(namespaceType).get(undefined, name);
  const live = cached ?? (await context.cluster.get(namespaceType, undefined, name, context.signal));
  if (live === undefined || isNamespaceOf(live, owner)) return live;
  if (!isUnclaimedAndNotOlder(live, owner) || (await olderNamesake(context, owner))) return undefined;
  try {
    await recordGuid(context, owner);
  } catch (error) {
    if (error instanceof TerminalError) return undefined;
    throw error;
  }
  return live;
}
