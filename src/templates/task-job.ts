// A task's run: the TaskWorkload with the command, and the Job that runs it once.

import type { Job } from '../lib/api/core.ts';
import { annotations, contractVersion, kinds, labels } from '../lib/api/group.ts';
import { apiVersionOf, type Stored } from '../lib/api/object.ts';
import type { Container, PodSpec } from '../lib/api/pod.ts';
import type { CFApp, CFTask, Droplet, EnvVar, TaskWorkload } from '../lib/api/types.generated.ts';
import { defined } from '../lib/defined.ts';
import { ownerReference } from './metadata.ts';
import { leaveLostNode } from './node-loss.ts';
import { bindingRoot, buildHomeEnv, buildTaskInstanceEnv, databaseUrlKey, literalCommand, vcapServicesKey } from './pod-env.ts';
import { unprivilegedContainer } from './pod-security.ts';
import { pullPolicyOf } from './pull-policy.ts';

export interface TaskInput {
  app: Stored<CFApp>;
  task: Stored<CFTask>;
  command: string;
  droplet: Droplet;
  memoryMB: number;
  diskMB: number;
  env: EnvVar[];
}

/** How long a finished task's pod, and its log, can be read; as long as a build's. */
export const finishedTaskTtlSeconds = 6 * 3600;
/** The longest time that Kubernetes accepts. A pod with a time is one that ends, and the quota of app instances does not count it. */
const noDeadlineSeconds = 2_147_483_647;
const taskAccount = 'korifi-task';

/** The environment of a task: the app's variables and services at the time of its start. */
export function buildTaskEnv(app: Stored<CFApp>, variables: readonly string[], memoryMB: number): EnvVar[] {
  const name = app.metadata.name;
  const secret = (variable: string, of: string, marks = {}): EnvVar => ({
    name: variable,
    valueFrom: { secretKeyRef: { name: of, key: variable, ...marks } },
  });
  const services = `${name}-vcap-services`;
  const own = new Set(['MEMORY_LIMIT', 'VCAP_APPLICATION', vcapServicesKey]);
  return [
    ...buildHomeEnv(app.spec.lifecycle.type, variables),
    // The key is there when a service has the URL of a database.
    ...(variables.includes(databaseUrlKey) ? [] : [secret(databaseUrlKey, services, { optional: true })]),
    ...variables.filter((variable) => !own.has(variable)).map((variable) => secret(variable, app.spec.envSecretName ?? '')),
    { name: 'MEMORY_LIMIT', value: `${String(memoryMB)}m` },
    secret('VCAP_APPLICATION', `${name}-vcap-application`),
    secret(vcapServicesKey, services),
  ];
}

/** The app's bindings as its status lists them; none: no field. */
function servicesOf({ status }: Stored<CFApp>): Pick<TaskWorkload['spec'], 'services'> {
  const { serviceBindings = [] } = status ?? {};
  return serviceBindings.length === 0 ? {} : { services: serviceBindings.map(({ guid, name, secret }) => ({ guid, name, secret })) };
}

export function buildTaskWorkload({ app, task, command, droplet, memoryMB, diskMB, env }: TaskInput): TaskWorkload {
  const { name, namespace } = task.metadata;
  const size = { memory: `${String(memoryMB)}Mi`, 'ephemeral-storage': `${String(diskMB)}Mi` };
  const launcher = app.spec.lifecycle.type === 'docker' ? ['/bin/sh', '-c'] : ['/cnb/lifecycle/launcher'];
  return {
    apiVersion: apiVersionOf(kinds.taskWorkload),
    kind: kinds.taskWorkload.kind,
    metadata: {
      name,
      namespace,
      labels: { [labels.taskGuid]: name, [labels.appGuid]: app.metadata.name },
      annotations: {
        [annotations.creationVersion]: contractVersion,
        ...defined({ [annotations.taskName]: shownTaskName(task) }),
      },
      ownerReferences: [ownerReference(kinds.task, task)],
    },
    spec: {
      command: [...launcher, literalCommand(command)],
      image: droplet.registry.image,
      imagePullSecrets: droplet.registry.imagePullSecrets ?? [],
      env,
      ...servicesOf(app),
      resources: { requests: { cpu: `${String(Math.max(5, Math.floor((100 * memoryMB) / 1024)))}m`, ...size }, limits: size },
    },
  };
}

/** Undefined for a task without a name for people. */
function shownTaskName({ spec }: Stored<CFTask>): string | undefined {
  return spec.displayName === '' ? undefined : spec.displayName;
}

/**
 * The Secrets of the bindings themselves, without a copy, as in builds: a task starts once. If somebody unbinds a service before the pod starts,
 * the task begins without its files; otherwise it would wait for ever.
 */
function bindingVolumes({ spec }: TaskWorkload): Pick<PodSpec, 'volumes'> & Pick<Container, 'volumeMounts'> {
  const { services = [] } = spec;
  if (services.length === 0) return {};
  const named = services.map((service, index) => ({ ...service, volume: `binding-${String(index)}` }));
  return {
    volumes: named.map(({ volume, secret }) => ({ name: volume, secret: { secretName: secret, defaultMode: 0o644, optional: true } })),
    volumeMounts: named.map(({ volume, name }) => ({ name: volume, mountPath: `${bindingRoot}/${name}`, readOnly: true })),
  };
}

function envOf({ spec }: TaskWorkload): NonNullable<Container['env']> {
  const { env = [], services = [] } = spec;
  const own = new Set(env.map(({ name }) => name));
  const instance = buildTaskInstanceEnv(services.length > 0).filter(({ name }) => !own.has(name));
  return [...instance, ...env] as NonNullable<Container['env']>;
}

/**
 * One pod, one try: a task is not repeated automatically. The Job waits until the start is recorded,
 * so that a Job that is missing after a record may have run, and one without a record has not. Its TTL is set only when the task's end is in its status.
 */
export function buildTaskJob(workload: Stored<TaskWorkload>): Job {
  const { name, namespace, labels: marks = {}, annotations: notes = {} } = workload.metadata;
  const { spec } = workload;
  const { volumes, volumeMounts } = bindingVolumes(workload);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace, labels: marks, ownerReferences: [ownerReference(kinds.taskWorkload, workload)] },
    spec: {
      suspend: true,
      backoffLimit: 0,
      parallelism: 1,
      completions: 1,
      template: {
        metadata: { labels: marks, annotations: defined({ [annotations.taskName]: notes[annotations.taskName] }) },
        spec: {
          restartPolicy: 'Never',
          activeDeadlineSeconds: noDeadlineSeconds,
          serviceAccountName: taskAccount,
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          imagePullSecrets: (spec.imagePullSecrets ?? []).map(({ name }) => ({ name })),
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          tolerations: leaveLostNode,
          containers: [
            {
              name: 'workload',
              image: spec.image,
              imagePullPolicy: pullPolicyOf(spec.image),
              command: spec.command,
              env: envOf(workload),
              ...defined({
                resources: spec.resources && { requests: stringsOf(spec.resources.requests), limits: stringsOf(spec.resources.limits) },
              }),
              terminationMessagePolicy: 'FallbackToLogsOnError',
              securityContext: unprivilegedContainer,
              ...defined({ volumeMounts }),
            },
          ],
          ...defined({ volumes }),
        },
      },
    },
  };
}

function stringsOf(quantities: Record<string, number | string> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities ?? {}).map(([name, quantity]) => [name, String(quantity)]));
}
