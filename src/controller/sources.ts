// What the controller watches of each kind: which objects, and which of their fields the cache keeps. A kind of kf that is not named here is watched
// with all its objects; the informer then removes only what it removes from every object.

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
import { httpRouteType, referenceGrantType } from '../lib/api/gateway.ts';
import { annotations, kinds, labels, places } from '../lib/api/group.ts';
import type { KeptLines } from '../lib/api/kept-lines.ts';
import type { AppWorkload, BuildWorkload, CFBuild, CFTask, TaskWorkload } from '../lib/api/types.generated.ts';
import { awayTaints } from './instances/nodes.ts';
import type { Source } from './runtime/informer.ts';
import { defined } from '../lib/defined.ts';

/** Of the Secrets for a pod's pulls; messages name them. */
const mostPullSecrets = 3;

/** The controller reads a pod's node, its time limits, the first names of its pull secrets and its containers' names and images, and nothing else of the spec. */
function trimPod(pod: Stored<Pod>): Stored<Pod> {
  const { nodeName, terminationGracePeriodSeconds, activeDeadlineSeconds, imagePullSecrets: secrets, containers = [] } = pod.spec ?? {};
  const imagePullSecrets = secrets?.slice(0, mostPullSecrets).map(({ name }) => ({ name }));
  return {
    ...pod,
    spec: {
      ...defined({ nodeName, terminationGracePeriodSeconds, activeDeadlineSeconds, imagePullSecrets }),
      containers: containers.map(({ name, image }) => ({ name, ...defined({ image }) })),
    },
  };
}

/** The environment is needed once, when the pods of the workload are made. `wholeOf` reads it from the API server then. */
function withoutEnv<T extends AppWorkload | Stored<BuildWorkload> | Stored<TaskWorkload>>(workload: T): T {
  const { env: _env, ...spec } = workload.spec;
  return { ...workload, spec };
}

function besideLines<T extends KeptLines>({ logHead: _head, logOmitted: _omitted, logTail: _tail, ...rest }: T) {
  return rest;
}

/** Kept lines are for people; the task or the build copies them once, with `wholeIfThere`. */
function withoutLines<T extends KubeObject & { status?: { failure?: KeptLines; output?: KeptLines } }>(object: Stored<T>): Stored<T> {
  const { failure, output } = object.status ?? {};
  if (failure === undefined && output === undefined) return object;
  const trimmed = defined({ failure: failure && besideLines(failure), output: output && besideLines(output) });
  return { ...object, status: { ...object.status, ...trimmed } };
}

/** The controller writes pod templates and never reads them back. */
function withoutTemplate<T extends StatefulSet | Stored<Job>>(object: T): T {
  const { template: _template, ...spec } = object.spec ?? {};
  return { ...object, spec };
}

/** The controller reads only the addresses of a node, whether it answers, and whether it takes pods. */
function trimNode({ apiVersion, kind, metadata: { name, uid, resourceVersion }, spec, status }: Stored<Node>): Stored<Node> {
  const { addresses = [], conditions = [] } = status ?? {};
  const ready = conditions.find(({ type }) => type === 'Ready');
  return {
    ...defined({ apiVersion, kind }),
    metadata: { name, uid, resourceVersion },
    spec: defined({ unschedulable: spec?.unschedulable, taints: spec?.taints?.filter(({ key }) => awayTaints.has(key)) }),
    status: {
      addresses,
      conditions:
        ready === undefined ? [] : [{ type: 'Ready', status: ready.status, ...defined({ lastTransitionTime: ready.lastTransitionTime }) }],
    },
  };
}

/** The labels and annotations of a RoleBinding that the controller reads or copies. */
const keptKeys = new Set<string>([
  labels.managedBy,
  labels.partOf,
  labels.propagatedFrom,
  labels.roleGuid,
  annotations.propagateDeletion,
  annotations.propagateRole,
]);
/** The longest value that a label may have. The annotations among {@link keptKeys} are `true` or `false`. */
const longestValue = 63;

const keptEntries = (entries: Record<string, string> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(entries ?? {}).filter(([key, value]) => keptKeys.has(key) && value.length <= longestValue));

/** A manager may create many RoleBindings, and the controller copies them into every space. So the cache keeps little of their metadata. */
function trimRoleBinding(binding: Stored<RoleBinding>): Stored<RoleBinding> {
  const { ownerReferences: _owners, ...metadata } = binding.metadata;
  return { ...binding, metadata: { ...metadata, labels: keptEntries(metadata.labels), annotations: keptEntries(metadata.annotations) } };
}

const source = <T extends KubeObject>(value: Source<T>): Source => value as unknown as Source;

/**
 * The sources of all kinds that need one. What kf creates for an app, a build or a task has the app's GUID as a label, and of these kinds only
 * labelled objects are listed and watched.
 * Secrets are never listed or watched.
 */
export function sources(rootNamespace: string): Source[] {
  return [
    source({ type: podType, labelSelector: labels.appGuid, trim: trimPod }),
    source({ type: statefulSetType, labelSelector: labels.appGuid, trim: withoutTemplate }),
    source({ type: jobType, labelSelector: labels.appGuid, trim: withoutTemplate }),
    source({ type: kinds.appWorkload, trim: withoutEnv }),
    source({ type: kinds.build, trim: (build: Stored<CFBuild>) => withoutLines(build) }),
    source({ type: kinds.buildWorkload, trim: (workload: Stored<BuildWorkload>) => withoutLines(withoutEnv(workload)) }),
    source({ type: kinds.task, trim: (task: Stored<CFTask>) => withoutLines(task) }),
    source({ type: kinds.taskWorkload, trim: (workload: Stored<TaskWorkload>) => withoutLines(withoutEnv(workload)) }),
    source({ type: serviceType, labelSelector: labels.appGuid }),
    source({ type: podDisruptionBudgetType, labelSelector: labels.appGuid }),
    source({ type: httpRouteType, labelSelector: labels.routeGuid, optional: true }),
    source({ type: referenceGrantType, labelSelector: labels.routeGuid, optional: true }),
    source({ type: namespaceType, labelSelector: labels.managedBy }),
    source({ type: serviceAccountType, labelSelector: labels.managedBy }),
    source({ type: roleBindingType, trim: trimRoleBinding }),
    source({ type: networkPolicyType, labelSelector: labels.managedBy }),
    source({ type: resourceQuotaType, labelSelector: labels.managedBy }),
    source({ type: nodeType, trim: trimNode }),
    source({ type: configMapType, ns: rootNamespace, fieldSelector: `metadata.name=${places.info}` }),
  ];
}
