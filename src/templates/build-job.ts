// The Job of one source build: a pod with parallel containers. Only containers that never run untrusted code have a credential.

import { jobType } from '../lib/api/core.ts';
import type { Job } from '../lib/api/core.ts';
import { annotations, labels } from '../lib/api/group.ts';
import { apiVersionOf } from '../lib/api/object.ts';
import type { OwnerReference } from '../lib/api/object.ts';
import type { Container, EnvVar, PodSpec, Volume, VolumeMount } from '../lib/api/pod.ts';
import type { EnvVar as BuildVariable } from '../lib/api/types.generated.ts';
import { buildPaths, buildScript, platformApi, registryKeys, registryScript, releaseFile } from './build-scripts.ts';
import type { LifecycleInput } from './build-scripts.ts';
import { leaveLostNode } from './node-loss.ts';
import { nonRootContainer } from './pod-security.ts';

export interface BuildJobInput {
  /** Name of the CFBuild, its BuildWorkload and this Job. */
  name: string;
  namespace: string;
  appGuid: string;
  owner: OwnerReference;
  builderImage: string;
  nodeImage: string;
  /** User of the builder image, numeric. */
  uid: number;
  gid: number;
  /** Source image by digest, with the host of the push port. */
  source: string;
  /** The only registry that gets the build's credential. */
  registryHost: string;
  lifecycle: LifecycleInput;
  /** Text of an order.toml. */
  order?: string;
  /** Secret with the keys of `registryKeys`. */
  registrySecret: string;
  /** ConfigMap whose key `fetch.mjs` is the fetch program. */
  fetchConfigMap: string;
  /** Build environment, each variable a literal or a reference to a Secret. */
  env: BuildVariable[];
  /** Secret for the literals among `env`, a key per variable. */
  literalEnvSecret?: string;
  /** Secrets that buildpacks can read below /platform/bindings. */
  bindings: string[];
  pullSecrets: string[];
  memoryMB: number;
  diskMB: number;
  timeoutSeconds: number;
}

/** How long a finished build's pod, and its log, can be read. */
export const finishedBuildTtlSeconds = 6 * 3600;

export const buildContainers = { source: 'source', registry: 'registry', build: 'build' } as const;

const mount = (name: string, mountPath: string, readOnly = false): VolumeMount => ({ name, mountPath, ...(readOnly ? { readOnly } : {}) });
const shared = {
  workspace: mount('workspace', buildPaths.workspace),
  layers: mount('layers', buildPaths.layers),
  hand: mount('hand', buildPaths.hand),
};
const credential = mount('registry', buildPaths.registry, true);

function container(name: string, image: string, rest: Partial<Container>): Container {
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: nonRootContainer,
    ...rest,
  };
}

/**
 * Requests and limits of a container. Its own file system has the same limit as the volumes; otherwise a build could fill its node's disk. It
 * requests no disk space, so when a node runs out of it, the kubelet evicts builds first.
 */
function bounded({ diskMB }: BuildJobInput, cpu: string, memory: { request: string; limit: string }): NonNullable<Container['resources']> {
  return {
    requests: { cpu, memory: memory.request, 'ephemeral-storage': '0' },
    limits: { memory: memory.limit, 'ephemeral-storage': `${diskMB}Mi` },
  };
}

function sourceContainer(input: BuildJobInput): Container {
  return container(buildContainers.source, input.nodeImage, {
    command: ['node', `${buildPaths.fetch}/fetch.mjs`],
    env: [
      { name: 'KF_SOURCE', value: input.source },
      { name: 'KF_TARGET', value: buildPaths.workspace },
      { name: 'KF_HAND', value: buildPaths.hand },
      { name: 'KF_CREDENTIAL', value: buildPaths.registry },
      { name: 'KF_CREDENTIAL_HOST', value: input.registryHost },
      { name: 'KF_INSECURE', value: input.lifecycle.insecureRegistries.join(',') },
    ],
    volumeMounts: [shared.workspace, shared.hand, credential, mount('fetch', buildPaths.fetch, true)],
    resources: bounded(input, '10m', { request: '48Mi', limit: '256Mi' }),
  });
}

function lifecycleEnv(input: BuildJobInput): EnvVar[] {
  return [
    { name: 'CNB_PLATFORM_API', value: platformApi },
    { name: 'CNB_NO_COLOR', value: 'true' },
    { name: 'CNB_USER_ID', value: String(input.uid) },
    { name: 'CNB_GROUP_ID', value: String(input.gid) },
  ];
}

function registryContainer(input: BuildJobInput): Container {
  return container(buildContainers.registry, input.builderImage, {
    command: ['sh', '-c', registryScript(input.lifecycle)],
    env: lifecycleEnv(input),
    volumeMounts: [shared.workspace, shared.layers, shared.hand, credential, mount('release', buildPaths.release, true)],
    resources: bounded(input, '50m', { request: '64Mi', limit: '1Gi' }),
  });
}

function buildContainer(input: BuildJobInput): Container {
  const bindings = input.bindings.map((secret, index) => mount(`binding-${index}`, `${buildPaths.platform}/bindings/${secret}`, true));
  const memory = `${input.memoryMB}Mi`;
  return container(buildContainers.build, input.builderImage, {
    command: ['sh', '-c', buildScript(input.order)],
    env: lifecycleEnv(input),
    volumeMounts: [
      shared.workspace,
      shared.layers,
      // If untrusted code could write here, the other containers would trust its markers.
      mount('hand', buildPaths.hand, true),
      mount('platform-env', `${buildPaths.platform}/env`, true),
      ...bindings,
    ],
    resources: bounded(input, '100m', { request: memory, limit: memory }),
  });
}

// The build environment reaches the lifecycle as files, so that no variable of it can change how a container itself runs.
function environmentVolume(input: BuildJobInput): Volume {
  const sources = input.env.flatMap(({ name, value, valueFrom }) => {
    const secret = valueFrom?.secretKeyRef;
    if (secret?.name !== undefined)
      return [{ secret: { name: secret.name, items: [{ key: secret.key, path: name }], optional: secret.optional ?? false } }];
    const literal = value === undefined ? undefined : input.literalEnvSecret;
    return literal === undefined ? [] : [{ secret: { name: literal, items: [{ key: name, path: name }] } }];
  });
  return { name: 'platform-env', projected: { sources } };
}

function volumes(input: BuildJobInput): Volume[] {
  const sizeLimit = `${input.diskMB}Mi`;
  return [
    { name: 'workspace', emptyDir: { sizeLimit } },
    { name: 'layers', emptyDir: { sizeLimit } },
    { name: 'hand', emptyDir: { sizeLimit: '1Mi' } },
    {
      name: 'registry',
      secret: { secretName: input.registrySecret, items: Object.values(registryKeys).map((key) => ({ key, path: key })) },
    },
    {
      name: 'release',
      downwardAPI: { items: [{ path: releaseFile, fieldRef: { fieldPath: `metadata.annotations['${annotations.buildEnded}']` } }] },
    },
    { name: 'fetch', configMap: { name: input.fetchConfigMap } },
    environmentVolume(input),
    ...input.bindings.map((secretName, index) => ({ name: `binding-${index}`, secret: { secretName } })),
  ];
}

function podSpec(input: BuildJobInput): PodSpec {
  return {
    restartPolicy: 'Never',
    // On the pod, not on the Job: a Job past its deadline deletes its pod, and the log that says why would be gone.
    activeDeadlineSeconds: input.timeoutSeconds,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    shareProcessNamespace: false,
    terminationGracePeriodSeconds: 1,
    imagePullSecrets: input.pullSecrets.map((name) => ({ name })),
    tolerations: leaveLostNode,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: input.uid,
      runAsGroup: input.gid,
      fsGroup: input.gid,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [sourceContainer(input), registryContainer(input), buildContainer(input)],
    volumes: volumes(input),
  };
}

/** One pod, never a second try: a build is not repeated automatically. */
export function buildJob(input: BuildJobInput): Job {
  const marks = { [labels.buildWorkloadName]: input.name, [labels.buildGuid]: input.name, [labels.appGuid]: input.appGuid };
  return {
    apiVersion: apiVersionOf(jobType),
    kind: jobType.kind,
    metadata: { name: input.name, namespace: input.namespace, labels: marks, ownerReferences: [input.owner] },
    spec: {
      backoffLimit: 0,
      completions: 1,
      parallelism: 1,
      ttlSecondsAfterFinished: finishedBuildTtlSeconds,
      template: {
        metadata: { labels: marks, annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' } },
        spec: podSpec(input),
      },
    },
  };
}
