// How each kind is looked at: which objects, and what of them the cache keeps. Kinds of ours that are not named here are watched
// whole, but for what the informer cuts of every object.

import {
  configMapType,
  jobType,
  namespaceType,
  nodeType,
  podDisruptionBudgetType,
  resourceQuotaType,
  roleBindingType,
  serviceAccountType,
  serviceType,
  statefulSetType,
  type Job,
  type Node,
  type RoleBinding,
  type StatefulSet,
} from '../lib/api/core.ts';
import { podType, type Pod } from '../lib/api/pod-kind.ts';
import type { KubeObject, Stored } from '../lib/api/object.ts';
import { networkPolicyType } from '../lib/api/network-policy.ts';
import { httpRouteType } from '../lib/api/gateway.ts';
import { annotations, kinds, labels, limitsName, places } from '../lib/api/group.ts';
import type { AppWorkload, BuildWorkload, TaskWorkload } from '../lib/api/types.generated.ts';
import type { Source } from './runtime/informer.ts';
import { defined } from '../lib/defined.ts';

/** Of a pod's spec only where it runs, how long it may run and how long it may take to end is read. */
function trimPod(pod: Stored<Pod>): Stored<Pod> {
  const { nodeName, terminationGracePeriodSeconds, activeDeadlineSeconds, containers = [] } = pod.spec ?? {};
  return {
    ...pod,
    spec: {
      ...defined({ nodeName, terminationGracePeriodSeconds, activeDeadlineSeconds }),
      containers: containers.map(({ name, image }) => ({ name, ...defined({ image }) })),
    },
  };
}

/** What the instances, or the pod of a task or build, are made of is read once, when they are made, and then from the API server. */
function withoutEnv<T extends AppWorkload | Stored<BuildWorkload> | Stored<TaskWorkload>>(workload: T): T {
  const { env: _env, ...spec } = workload.spec;
  return { ...workload, spec };
}

function withoutTemplate<T extends StatefulSet | Stored<Job>>(object: T): T {
  const { template: _template, ...spec } = object.spec ?? {};
  return { ...object, spec };
}

/** Of a node only its addresses are read. */
function trimNode({ apiVersion, kind, metadata: { name, uid, resourceVersion }, status }: Stored<Node>): Stored<Node> {
  return { ...defined({ apiVersion, kind }), metadata: { name, uid, resourceVersion }, status: { addresses: status?.addresses ?? [] } };
}

const readOfBindings = new Set<string>([
  labels.managedBy,
  labels.partOf,
  labels.propagatedFrom,
  labels.roleGuid,
  annotations.propagateDeletion,
  annotations.propagateRole,
]);
/** As long as a label may be: what is read of an annotation is `true` or `false`. */
const mostOfNote = 63;

const readOnly = (entries: Record<string, string> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(entries ?? {}).filter(([key, value]) => readOfBindings.has(key) && value.length <= mostOfNote));

/** A manager may make many bindings, and the controller copies them into every space: of their metadata only what is read and copied stays. */
function trimRoleBinding(binding: Stored<RoleBinding>): Stored<RoleBinding> {
  const { ownerReferences: _owners, ...metadata } = binding.metadata;
  return { ...binding, metadata: { ...metadata, labels: readOnly(metadata.labels), annotations: readOnly(metadata.annotations) } };
}

const source = <T extends KubeObject>(value: Source<T>): Source => value as unknown as Source;

/**
 * Everything that an app, a build or a task of ours makes carries the app's GUID as label; only that is listed and watched.
 * Secrets are never listed or watched.
 */
export function sources(rootNamespace: string): Source[] {
  return [
    source({ type: podType, labelSelector: labels.appGuid, trim: trimPod }),
    source({ type: statefulSetType, labelSelector: labels.appGuid, trim: withoutTemplate }),
    source({ type: jobType, labelSelector: labels.appGuid, trim: withoutTemplate }),
    source({ type: kinds.appWorkload, trim: withoutEnv }),
    source({ type: kinds.buildWorkload, trim: withoutEnv }),
    source({ type: kinds.taskWorkload, trim: withoutEnv }),
    source({ type: serviceType, labelSelector: labels.appGuid }),
    source({ type: podDisruptionBudgetType, labelSelector: labels.appGuid }),
    source({ type: httpRouteType, labelSelector: labels.routeGuid, optional: true }),
    source({ type: namespaceType, labelSelector: labels.managedBy }),
    source({ type: serviceAccountType, labelSelector: labels.managedBy }),
    source({ type: roleBindingType, trim: trimRoleBinding }),
    source({ type: networkPolicyType, labelSelector: labels.managedBy }),
    source({ type: resourceQuotaType, fieldSelector: `metadata.name=${limitsName}` }),
    source({ type: nodeType, trim: trimNode }),
    source({ type: configMapType, ns: rootNamespace, fieldSelector: `metadata.name=${places.info}` }),
  ];
}
