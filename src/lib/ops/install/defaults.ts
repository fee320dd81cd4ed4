// The objects that make a new installation usable: default domain, org and space, and the data of `kf buildpacks`.

import { kinds, labels, places } from '../../api/group.ts';
import { sha224 } from '../../api/names.ts';
import type { KubeObject, ResourceType, Stored } from '../../api/object.ts';
import { namespaceType } from '../../api/core.ts';
import { defined } from '../../defined.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isMissingKind } from '../../kube/errors.ts';
import { internalDomain, internalNamespace } from '../../../templates/internal-domain.ts';
import { rootNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { buildDomain, buildOrg, buildSpace } from '../../../templates/tenancy.ts';

/** Object name of the default domain. */
export const defaultDomain = 'default-domain';
/** Object name of the internal domain that setup makes. */
const ownInternalDomain = 'internal-domain';

export interface Defaults {
  /** Objects in the root namespace. */
  root: KubeObject[];
  space: KubeObject[];
}

interface WithDisplayName extends KubeObject {
  spec: { displayName: string };
}

/** GUID of the object with this display name; undefined also when its kind does not exist yet. */
async function guidOf(
  cluster: Cluster,
  type: ResourceType<KubeObject>,
  where: { ns: string; label: string },
  name: string,
): Promise<string | undefined> {
  const labelSelector = `${where.label}=${sha224(name)}`;
  const items = await cluster.list(type as ResourceType<WithDisplayName>, { ns: where.ns, labelSelector }).then(
    (list) => list.items,
    (error: unknown) => {
      if (isMissingKind(error)) return [];
      throw error;
    },
  );
  // A manager of the org may make a second space of that name: the oldest one has the name.
  const [first] = items
    .filter((item) => item.spec.displayName === name && item.metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''));
  return first?.metadata.name;
}

/** The plan with the GUIDs of the default org and space that exist. */
export async function withDefaultGuids(cluster: Cluster, plan: SetupPlan): Promise<SetupPlan> {
  const org = await guidOf(cluster, kinds.org, { ns: rootNamespace, label: labels.orgName }, plan.org.name);
  if (org === undefined) return plan;
  const space = await guidOf(cluster, kinds.space, { ns: org, label: labels.spaceName }, plan.space.name);
  return { ...plan, org: { ...plan.org, guid: org }, space: { ...plan.space, ...defined({ guid: space }) } };
}

const lies = (name: string, other: string): boolean => name === other || name.endsWith(`.${other}`) || other.endsWith(`.${name}`);

/** Items of a kind; empty while the kind does not exist. */
async function listAny<T extends KubeObject>(cluster: Cluster, type: ResourceType<T>, ns: string): Promise<Stored<T>[]> {
  try {
    return (await cluster.list(type, { ns })).items;
  } catch (error) {
    if (isMissingKind(error)) return [];
    throw error;
  }
}

export interface InternalDomainPlan {
  plan: SetupPlan;
  /** The namespace that the domain needs is somebody else's, so there will be no domain. */
  taken?: { namespace: string };
}

/**
 * The plan with the internal domain, unless a domain made by somebody has that name or overlaps with it, or the namespace that it needs is not kf's.
 */
export async function withInternalDomain(cluster: Cluster, plan: SetupPlan): Promise<InternalDomainPlan> {
  const domains = await listAny(cluster, kinds.domain, rootNamespace);
  const others = domains
    .filter(({ metadata }) => metadata.name !== ownInternalDomain)
    .map(({ spec }) => spec.name.toLowerCase().replace(/\.$/, ''));
  if ([plan.domain, ...others].some((name) => lies(name, internalDomain))) return { plan };
  const namespace = await cluster.get(namespaceType, undefined, internalNamespace);
  if (namespace !== undefined && namespace.metadata.labels?.[labels.managedBy] !== 'kf')
    return { plan, taken: { namespace: internalNamespace } };
  return { plan: { ...plan, internalDomain: true } };
}

/** Removes labels and annotations that depend on time or author: otherwise every setup would be a change. An existing object keeps its own. */
function stable(object: KubeObject): KubeObject {
  const { finalizers, ...metadata } = object.metadata;
  const kept = Object.fromEntries(
    Object.entries(metadata.labels ?? {}).filter(([key]) => key !== labels.createdAt && key !== labels.updatedAt),
  );
  return { ...object, metadata: { ...metadata, labels: kept, annotations: {}, ...defined({ finalizers }) } };
}

/** The CFDomain apps.internal. */
export function buildInternalDomain(): KubeObject {
  const author = { changedBy: '', now: new Date(0) };
  return stable(buildDomain({ guid: ownInternalDomain, rootNamespace, name: internalDomain, internal: true }, author));
}

/** The default objects of a plan. Until its GUIDs are known, org and space have no object names. */
export function buildDefaults(plan: SetupPlan): Defaults {
  const [orgGuid, spaceGuid] = [plan.org.guid ?? '', plan.space.guid ?? ''];
  const author = { changedBy: '', now: new Date(0) };
  const domain = buildDomain({ guid: defaultDomain, rootNamespace, name: plan.domain }, author);
  const org = buildOrg({ guid: orgGuid, rootNamespace, displayName: plan.org.name }, author);
  const space = buildSpace({ guid: spaceGuid, orgGuid, displayName: plan.space.name }, author);
  const apiVersion = 'korifi.cloudfoundry.org/v1alpha1';
  const infos: KubeObject[] = [
    { apiVersion, kind: 'BuilderInfo', metadata: { name: places.builder, namespace: rootNamespace } },
    {
      apiVersion,
      kind: 'RunnerInfo',
      metadata: { name: places.runner, namespace: rootNamespace },
      ...{ spec: { runnerName: places.runner } },
    },
  ];
  return { root: [stable(domain), stable(org), ...infos], space: [stable(space)] };
}
