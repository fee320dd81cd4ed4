// How much an org and a space may hold: a ResourceQuota, so that one tenant can fill neither the nodes nor the controller's memory for all.

import type { ResourceQuota } from '../lib/api/core.ts';
import { annotations, labels, limitsName } from '../lib/api/group.ts';
import { parseQuantity } from '../lib/api/sizes.ts';

const group = 'korifi.cloudfoundry.org';

/** By resource, as `spec.hard` of a ResourceQuota names it. */
export type Limits = Record<string, string>;

const ofKinds = (counts: Record<string, number>): Limits =>
  Object.fromEntries(Object.entries(counts).map(([plural, count]) => [`count/${plural}.${group}`, String(count)]));

/** docs/decisions/0015-sizes-and-counts.md says how they go together with the controller's memory. */
const defaults = {
  // A manager may make developers of the org's own namespace too: they may write Secrets there. A space without anything takes room of the controller, too.
  org: { 'count/rolebindings.rbac.authorization.k8s.io': '200', 'count/secrets': '100', ...ofKinds({ cfspaces: 20 }) },
  space: {
    // Those that run or wait: apps, tasks and builds together.
    pods: '64',
    'requests.memory': '16Gi',
    // What an instance may write is kept free for it on its node, whatever it does write.
    'requests.ephemeral-storage': '64Gi',
    'count/pods': '400',
    // With the 600 KiB that policy kf-sizes lets a Secret have, they stay well below the 2 GiB of etcd.
    'count/secrets': '2000',
    'count/configmaps': '100',
    'count/services': '600',
    'count/statefulsets.apps': '600',
    'count/jobs.batch': '1000',
    'count/rolebindings.rbac.authorization.k8s.io': '200',
    ...ofKinds({
      cfapps: 100,
      cfprocesses: 200,
      cfpackages: 600,
      cfbuilds: 600,
      cfroutes: 200,
      cftasks: 200,
      cfserviceinstances: 100,
      cfservicebindings: 200,
      appworkloads: 600,
      buildworkloads: 600,
      taskworkloads: 200,
    }),
  },
} as const satisfies Record<string, Limits>;

/** How many tasks of an app that have ended are kept, where setup says nothing: a month of nightly runs (docs/decisions/0036). */
export const defaultTasksKept = 30;

export type LimitedPlace = keyof typeof defaults;

/**
 * The limits of a place: the defaults, with those that the operator names instead of or beside them. A limit that is empty is none.
 * @param withKinds false leaves kf's own kinds out
 */
export function limitsOf(place: LimitedPlace, named: Limits = {}, withKinds = true): Limits {
  const all: Limits = { ...defaults[place], ...named };
  return Object.fromEntries(Object.entries(all).filter(([resource, limit]) => limit !== '' && (withKinds || !resource.endsWith(group))));
}

/** So many full spaces an org may hold the content of, however many it spreads it over. Secrets are a matter of etcd's 2 GiB, which one space comes near. */
const fullSpaces = (resource: string): number => (resource === 'count/secrets' ? 1 : 2);
/** Not shared out: copies of the org's own roles are in each of its spaces. */
const ofEachSpace = new Set(['count/rolebindings.rbac.authorization.k8s.io']);

/**
 * What all spaces of an org together may hold: of each count what two spaces may (of Secrets one), unless the operator names another total. A total that is empty is none.
 * @param space the limits of one space
 * @param withKinds false leaves kf's own kinds out
 */
export function totalsOf(space: Limits, named: Limits = {}, withKinds = true): Limits {
  const counts = Object.entries(space).filter(([resource]) => resource.startsWith('count/') && !ofEachSpace.has(resource));
  const all: Limits = {
    ...Object.fromEntries(counts.map(([resource, limit]) => [resource, String((parseQuantity(limit) ?? 0) * fullSpaces(resource))])),
    ...named,
  };
  return Object.fromEntries(Object.entries(all).filter(([resource, limit]) => limit !== '' && (withKinds || !resource.endsWith(group))));
}

/** Remembers in an annotation what it was made with: what an operator changed is told from that. */
export function buildLimits(ns: string, limits: Limits): ResourceQuota {
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: {
      name: limitsName,
      namespace: ns,
      labels: { [labels.managedBy]: 'kf' },
      annotations: { [annotations.defaultLimits]: JSON.stringify(limits) },
    },
    spec: { hard: limits },
  };
}

/** A quota that limits nothing: the cluster counts by it what the namespace holds. */
export function buildCounter(ns: string, limits: Limits): ResourceQuota {
  const hard = Object.fromEntries(Object.keys(limits).map((resource) => [resource, '1P']));
  const { metadata, ...quota } = buildLimits(ns, hard);
  return { ...quota, metadata: { ...metadata, annotations: { [annotations.countsUse]: 'true' } } };
}
