// The runner's objects: the immutable StatefulSet of one generation, and the PodDisruptionBudget for all generations of a process.

import type { Stored } from '../lib/api/object.ts';
import { createHash } from 'node:crypto';
import type { PodDisruptionBudget, StatefulSet } from '../lib/api/core.ts';
import { annotations, kinds, labels } from '../lib/api/group.ts';
import { sidecarContainer, statefulSetName } from '../lib/api/names.ts';
import type { Container, PodSpec } from '../lib/api/pod.ts';
import type { AppWorkload, CFProcess } from '../lib/api/types.generated.ts';
import { bindingRoot, buildInstanceEnv } from './pod-env.ts';
import { ownerReference } from './metadata.ts';
import { leaveLostNode } from './node-loss.ts';
import { unprivilegedContainer } from './pod-security.ts';
import { pullPolicyOf } from './pull-policy.ts';
import { defined } from '../lib/defined.ts';
import { defaultGraceSeconds } from '../lib/api/kf-info.ts';

/** Contract 6.4: in every space; it has no rights and no token. */
const appAccount = 'korifi-app';
const defaultDrainSeconds = 4;
const leastPercent = 50;

/** The generation's hash; for an AppWorkload that somebody else made, a hash of its name. */
export function generationOf(workload: Stored<AppWorkload>): string {
  return workload.metadata.labels?.[labels.generation] ?? createHash('sha256').update(workload.metadata.name).digest('hex').slice(0, 10);
}

export function statefulSetNameOf(workload: Stored<AppWorkload>): string {
  return statefulSetName(workload.spec.appGUID, workload.metadata.namespace, workload.spec.GUID, generationOf(workload));
}

/** How long the stop of an instance may take: requests come to an end, and then the app does. */
export const stopSecondsOf = ({ spec }: Stored<AppWorkload>): number =>
  (spec.drainSeconds ?? defaultDrainSeconds) + (spec.graceSeconds ?? defaultGraceSeconds);

function bindingVolumes(workload: Stored<AppWorkload>): Pick<PodSpec, 'volumes'> & Pick<Container, 'volumeMounts'> {
  const services = workload.spec.services ?? [];
  if (services.length === 0) return {};
  return {
    volumes: services.map((service, index) => ({
      name: `binding-${String(index)}`,
      secret: { secretName: service.secret, defaultMode: 0o644 },
    })),
    volumeMounts: services.map((service, index) => ({
      name: `binding-${String(index)}`,
      mountPath: `${bindingRoot}/${service.name}`,
      readOnly: true,
    })),
  };
}

function container(workload: Stored<AppWorkload>): Container {
  const { spec } = workload;
  const ports = spec.ports ?? [];
  const drain = spec.drainSeconds ?? defaultDrainSeconds;
  const { volumeMounts } = bindingVolumes(workload);
  const own = new Set((spec.env ?? []).map((variable) => variable.name));
  const instanceEnv = buildInstanceEnv(ports, (spec.services ?? []).length > 0).filter((variable) => !own.has(variable.name));
  const runAsUser = spec.user !== undefined && /^\d+$/.test(spec.user) ? { runAsUser: Number(spec.user) } : {};
  return {
    name: 'application',
    image: spec.image,
    imagePullPolicy: pullPolicyOf(spec.image),
    ...defined({ command: spec.command }),
    env: [...instanceEnv, ...(spec.env ?? [])] as NonNullable<Container['env']>,
    ports: ports.map((containerPort) => ({ containerPort })),
    ...defined({ resources: spec.resources as Container['resources'] }),
    ...probe('startupProbe', spec.startupProbe),
    ...probe('readinessProbe', spec.readinessProbe),
    ...probe('livenessProbe', spec.livenessProbe),
    ...(drain > 0 ? { lifecycle: { preStop: { sleep: { seconds: drain } } } } : {}),
    // The last lines of an ended container stay in its status, for later questions about the cause.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: { ...unprivilegedContainer, ...runAsUser },
    ...defined({ volumeMounts }),
  };
}

/**
 * Containers beside the app's own, from the same image: they start before it and end after it (native sidecars of Kubernetes). Their log prefix
 * needs the name, which may have characters that a container's name may not.
 */
function sidecars(workload: Stored<AppWorkload>): Container[] {
  const { imagePullPolicy, env = [], securityContext, volumeMounts } = container(workload);
  return (workload.spec.sidecars ?? []).map(({ name, command, resources = {} }, index) => {
    const memory = resources.limits?.['memory'];
    const ownEnv = env.map((variable) =>
      variable.name === 'MEMORY_LIMIT' && memory !== undefined
        ? { name: variable.name, value: `${String(Number.parseInt(String(memory), 10))}m` }
        : variable,
    );
    return {
      name: sidecarContainer(index, name),
      image: workload.spec.image,
      ...defined({ imagePullPolicy, securityContext, volumeMounts }),
      command,
      env: ownEnv,
      resources: resources as NonNullable<Container['resources']>,
      restartPolicy: 'Always',
      terminationMessagePolicy: 'FallbackToLogsOnError',
    };
  });
}

function probe<K extends 'startupProbe' | 'readinessProbe' | 'livenessProbe'>(key: K, value: AppWorkload['spec'][K]): Pick<Container, K> {
  return (value === undefined ? {} : { [key]: value }) as Pick<Container, K>;
}

function podSpec(workload: Stored<AppWorkload>): PodSpec {
  const { spec } = workload;
  const { volumes } = bindingVolumes(workload);
  const selector = { matchLabels: { [labels.guid]: spec.GUID } };
  const spread = (topologyKey: string) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway' as const,
    labelSelector: selector,
  });
  return {
    ...(spec.sidecars === undefined || spec.sidecars.length === 0 ? {} : { initContainers: sidecars(workload) }),
    containers: [container(workload)],
    serviceAccountName: appAccount,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    imagePullSecrets: (spec.imagePullSecrets ?? []).map(({ name }) => ({ name })),
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    terminationGracePeriodSeconds: stopSecondsOf(workload),
    tolerations: leaveLostNode,
    topologySpreadConstraints: [spread('topology.kubernetes.io/zone'), spread('kubernetes.io/hostname')],
    ...(spec.architecture === undefined ? {} : { nodeSelector: { 'kubernetes.io/arch': spec.architecture } }),
    ...defined({ volumes }),
  };
}

/** Depends only on the AppWorkload, so a deleted set is created again with the same content. */
export function buildStatefulSet(workload: Stored<AppWorkload>): StatefulSet {
  const { spec } = workload;
  const { name, namespace } = workload.metadata;
  const podLabels = {
    [labels.guid]: spec.GUID,
    [labels.processType]: spec.processType,
    [labels.version]: spec.version,
    [labels.appGuid]: spec.appGUID,
    [labels.appWorkloadGuid]: name,
    [labels.generation]: generationOf(workload),
  };
  const marks = {
    [annotations.applicationId]: spec.appGUID,
    [annotations.version]: spec.version,
    [annotations.processGuid]: `${spec.GUID}-${spec.version}`,
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: {
      name: statefulSetNameOf(workload),
      namespace,
      labels: podLabels,
      annotations: marks,
      ownerReferences: [ownerReference(kinds.appWorkload, workload)],
    },
    spec: {
      replicas: spec.instances,
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'OnDelete' },
      revisionHistoryLimit: 0,
      selector: { matchLabels: { [labels.guid]: spec.GUID, [labels.generation]: generationOf(workload) } },
      template: { metadata: { labels: podLabels, annotations: marks }, spec: podSpec(workload) },
    },
  };
}

/** The least number of instances that evictions leave of so many, as the budget says and Kubernetes rounds. */
export const leastServing = (wanted: number): number => Math.ceil((wanted * leastPercent) / 100);

/** While nodes are drained, half of the process's pods stay, of any generation; pods that do not run may always be evicted. */
export function buildBudget(process: Stored<CFProcess>): PodDisruptionBudget {
  const { name, namespace } = process.metadata;
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: {
      name,
      namespace,
      labels: { [labels.guid]: name, [labels.appGuid]: process.spec.appRef.name },
      ownerReferences: [ownerReference(kinds.process, process)],
    },
    spec: {
      minAvailable: `${String(leastPercent)}%`,
      selector: { matchLabels: { [labels.guid]: name } },
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  };
}
