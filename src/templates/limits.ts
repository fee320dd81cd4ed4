// The limits of an org and a space, as a ResourceQuota: one tenant must not fill the nodes or the controller's memory for all.

import type { ResourceQuota } from '../lib/api/core.ts';
import { annotations, instanceLimitsName, labels, limitsName } from '../lib/api/group.ts';
import { parseQuantity } from '../lib/api/sizes.ts';
import { defined } from '../lib/defined.ts';

const group = 'korifi.cloudfoundry.org';

/** Limits by resource, as in `spec.hard` of a ResourceQuota. */
export type Limits = Record<string, string>;

const ofKinds = (counts: Record<string, number>): Limits =>
  Object.fromEntries(Object.entries(counts).map(([plural, count]) => [`count/${plural}.${group}`, String(count)]));

/** docs/decisions/0015-sizes-and-counts.md says how they relate to the controller's memory. */
const defaults = {
  // A manager can make developers of the org's own namespace too, who may write Secrets there. Empty spaces also take memory of the controller.
  org: { 'count/rolebindings.rbac.authorization.k8s.io': '200', 'count/secrets': '100', ...ofKinds({ cfspaces: 20, cfquotas: 20 }) },
  space: {
    // Running and waiting ones: apps, tasks and builds together.
    pods: '64',
    'requests.memory': '16Gi',
    // The scheduler reserves the full disk limit of an instance on its node, whatever the instance writes.
    'requests.ephemeral-storage': '64Gi',
    'count/pods': '400',
    // With the 600 KiB that policy kf-sizes allows for a Secret, they stay well below the 2 GiB of etcd.
    'count/secrets': '2000',
    // One per app, with its revisions, and those of builds.
    'count/configmaps': '300',
    'count/services': '600',
    'count/statefulsets.apps': '600',
    'count/jobs.batch': '1000',
    'count/horizontalpodautoscalers.autoscaling': '200',
    'count/rolebindings.rbac.authorization.k8s.io': '200',
    ...ofKinds({
      cfapps: 100,
      cfprocesses: 200,
      cfpackages: 600,
      cfbuilds: 600,
      cfroutes: 200,
      cfnetworkpolicies: 200,
      cftasks: 200,
      cfserviceinstances: 100,
      cfservicebindings: 200,
      appworkloads: 600,
      buildworkloads: 600,
      taskworkloads: 200,
    }),
  },
} as const satisfies Record<string, Limits>;

/** How many finished tasks of an app are kept by default: a month of nightly runs (docs/decisions/0036). */
export const defaultTasksKept = 30;

export type LimitedPlace = keyof typeof defaults;

/**
 * The limits of an org or space: the defaults, overridden and extended by the operator's. An empty limit means none.
 * @param withKinds false leaves out kf's own kinds
 */
export function limitsOf(place: LimitedPlace, named: Limits = {}, withKinds = true): Limits {
  const all: Limits = { ...defaults[place], ...named };
  return Object.fromEntries(Object.entries(all).filter(([resource, limit]) => limit !== '' && (withKinds || !resource.endsWith(group))));
}

/** The total of an org, in full spaces, however many spaces it has. All Secrets share etcd's 2 GiB, and one full space comes close to that. */
const fullSpaces = (resource: string): number => (resource === 'count/secrets' ? 1 : 2);
/** Not divided: each space has copies of the org's own roles. */
const ofEachSpace = new Set(['count/rolebindings.rbac.authorization.k8s.io']);

/**
 * The limits of all spaces of an org together: twice the limit of one space for each count (once for Secrets), unless the operator sets another
 * total. An empty total means none.
 * @param space the limits of one space
 * @param withKinds false leaves out kf's own kinds
 */
export function totalsOf(space: Limits, named: Limits = {}, withKinds = true): Limits {
  const counts = Object.entries(space).filter(([resource]) => resource.startsWith('count/') && !ofEachSpace.has(resource));
  const all: Limits = {
    ...Object.fromEntries(counts.map(([resource, limit]) => [resource, String((parseQuantity(limit) ?? 0) * fullSpaces(resource))])),
    ...named,
  };
  return Object.fromEntries(Object.entries(all).filter(([resource, limit]) => limit !== '' && (withKinds || !resource.endsWith(group))));
}

/** One of the ResourceQuotas of a space. */
export interface LimitsKind {
  name: string;
  scopes?: string[];
}

/** Counts everything in a space. */
export const wholeLimits: LimitsKind = { name: limitsName };
/** Counts app instances only: pods of builds and tasks have a time after which they end. */
export const instanceLimits: LimitsKind = { name: instanceLimitsName, scopes: ['NotTerminating'] };

/**
 * Records the written limits in an annotation, so that changes by an operator can be recognized.
 * @param quotas the quotas of org and space that the limits follow from, as JSON; left out: none
 */
export function buildLimits(ns: string, limits: Limits, { name, scopes }: LimitsKind = wholeLimits, quotas?: string): ResourceQuota {
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: {
      name,
      namespace: ns,
      labels: { [labels.managedBy]: 'kf' },
      annotations: { [annotations.defaultLimits]: JSON.stringify(limits), ...defined({ [annotations.quotas]: quotas }) },
    },
    spec: { hard: limits, ...defined({ scopes }) },
  };
}

/** A quota without limits: with it the cluster counts the contents of the namespace. */
export function buildCounter(ns: string, limits: Limits): ResourceQuota {
  const hard = Object.fromEntries(Object.keys(limits).map((resource) => [resource, '1P']));
  const { metadata, ...quota } = buildLimits(ns, hard);
  return { ...quota, metadata: { ...metadata, annotations: { [annotations.countsUse]: 'true' } } };
}
