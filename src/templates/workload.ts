// A generation of a process: its inputs, its hashes, and the AppWorkload with its frozen Secrets.

import { createHash } from 'node:crypto';
import { processDefaults, effectiveCommand, ownMemoryMB, sidecarMemoryMB } from '../lib/api/app.ts';
import type { Secret } from '../lib/api/core.ts';
import { annotations, contractVersion, kinds, labels, places } from '../lib/api/group.ts';
import { defaultGraceSeconds } from '../lib/api/kf-info.ts';
import { appWorkloadName } from '../lib/api/names.ts';
import { apiVersionOf, type Stored } from '../lib/api/object.ts';
import type { AppWorkload, CFApp, CFProcess, Droplet, EnvVar, Probe } from '../lib/api/types.generated.ts';
import { ownerReference } from './metadata.ts';
import { literalCommand } from './pod-env.ts';
import { defined } from '../lib/defined.ts';

/** Inputs whose change makes a new generation. */
export interface LiveInputs {
  image: string;
  pullSecrets: string[];
  /** Container command; empty: the image's own. */
  command: string[];
  memoryMB: number;
  diskMB: number;
  healthCheck: {
    type: 'http' | 'port' | 'process';
    path: string;
    timeoutSeconds: number;
    invocationSeconds: number;
    intervalSeconds: number;
  };
  readiness: { type: 'http' | 'port' | 'process'; path: string; invocationSeconds: number; intervalSeconds: number } | null;
  ports: number[];
  appRev: string;
  user: string;
  architecture: string;
  /** Left out without any, so that the hash of processes without sidecars stays what it was. */
  sidecars?: { name: string; command: string[]; memoryMB: number }[];
}

/** A frozen binding: the content of its mount secret. */
export interface FrozenBinding {
  guid: string;
  name: string;
  /** Base64 by key, as in a Secret's data. */
  data: Record<string, string>;
}

/** Inputs that are copied when a generation is made; later changes do not reach running instances. */
export interface FrozenInputs {
  /** Base64 by key: the user's variables, and the secret ones of the platform. */
  env: Record<string, string>;
  bindings: FrozenBinding[];
  vcapApplication: Record<string, unknown>;
  drainSeconds: number;
  graceSeconds: number;
}

const digest = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 10);
const sorted = <T>(record: Record<string, T>): [string, T][] => Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));

export function liveHash(live: LiveInputs): string {
  return digest([
    live.image, live.pullSecrets, live.command, live.memoryMB, live.diskMB, sorted(live.healthCheck),
    live.readiness === null ? null : sorted(live.readiness), live.ports, live.appRev, live.user, live.architecture,
    ...(live.sidecars === undefined ? [] : [live.sidecars]),
  ]); // prettier-ignore
}

/** The generation's name: 10 hex digits of a hash over all inputs of its pods and the name of their process. */
export function generationHash(process: string, live: LiveInputs, frozen: FrozenInputs): string {
  const bindings = frozen.bindings.map(({ guid, name, data }) => [guid, name, sorted(data)]);
  return digest([
    process, liveHash(live), sorted(frozen.env), bindings, sorted(frozen.vcapApplication), frozen.drainSeconds,
    // As before it could be set: what is not changed keeps its hash, and with it its instances.
    ...(frozen.graceSeconds === defaultGraceSeconds ? [] : [frozen.graceSeconds]),
  ]); // prettier-ignore
}

const started = (app: Stored<CFApp>, text: string): string[] => [
  ...(app.spec.lifecycle.type === 'docker' ? ['/bin/sh', '-c'] : ['/cnb/lifecycle/launcher']),
  literalCommand(text),
];

function command(app: Stored<CFApp>, process: Stored<CFProcess>): string[] {
  const text = effectiveCommand(process);
  return text === undefined ? [] : started(app, text);
}

function sidecarsOf(app: Stored<CFApp>, { spec }: Stored<CFProcess>): Pick<LiveInputs, 'sidecars'> {
  const { sidecars = [], memoryMB } = spec;
  if (sidecars.length === 0) return {};
  return {
    sidecars: sidecars.map((sidecar) => ({
      name: sidecar.name,
      command: started(app, sidecar.command),
      memoryMB: sidecarMemoryMB(sidecar, memoryMB),
    })),
  };
}

/** Live inputs of a process; defaults of the contract (4.6) replace empty fields. */
export function liveInputs(app: Stored<CFApp>, process: Stored<CFProcess>, droplet: Droplet, ports: number[]): LiveInputs {
  const { healthCheck, readinessHealthCheck, processType } = process.spec;
  const { data } = healthCheck;
  const type = (given: 'http' | 'port' | 'process' | ''): 'http' | 'port' | 'process' =>
    given === '' ? processDefaults.healthCheckType(processType) : given;
  const path = (endpoint: string | undefined): string => (endpoint === undefined || endpoint === '' ? '/' : endpoint);
  return {
    image: droplet.registry.image,
    pullSecrets: (droplet.registry.imagePullSecrets ?? []).map(({ name }) => name),
    command: command(app, process),
    memoryMB: process.spec.memoryMB,
    diskMB: process.spec.diskQuotaMB,
    healthCheck: {
      type: type(healthCheck.type),
      path: path(data.httpEndpoint),
      timeoutSeconds: data.timeoutSeconds || processDefaults.healthCheckTimeoutSeconds,
      invocationSeconds: data.invocationTimeoutSeconds || 1,
      intervalSeconds: data.intervalSeconds ?? 30,
    },
    readiness:
      readinessHealthCheck === undefined
        ? null
        : {
            type: type(readinessHealthCheck.type),
            path: path(readinessHealthCheck.data?.httpEndpoint),
            invocationSeconds: readinessHealthCheck.data?.invocationTimeoutSeconds ?? 1,
            intervalSeconds: readinessHealthCheck.data?.intervalSeconds ?? 5,
          },
    ports,
    appRev: app.metadata.annotations?.[annotations.appRev] ?? '0',
    user: process.spec.user ?? '',
    architecture: droplet.architecture ?? '',
    ...sidecarsOf(app, process),
  };
}

interface ProbeTimes {
  period: number;
  failures: number;
  timeout: number;
}

function probe(check: { type: string; path: string }, port: number | undefined, times: ProbeTimes): Probe | undefined {
  if (port === undefined || check.type === 'process') return undefined;
  const how = check.type === 'http' ? { httpGet: { path: check.path, port } } : { tcpSocket: { port } };
  return { ...how, periodSeconds: times.period, failureThreshold: times.failures, timeoutSeconds: times.timeout };
}

/** Probes: each second until the first success, then rarely for liveness, and for readiness with some tolerance. */
function probes(live: LiveInputs): Pick<AppWorkload['spec'], 'startupProbe' | 'livenessProbe' | 'readinessProbe'> {
  const { healthCheck } = live;
  const port = live.ports[0];
  const startup = probe(healthCheck, port, { period: 1, failures: healthCheck.timeoutSeconds, timeout: healthCheck.invocationSeconds });
  const liveness = probe(healthCheck, port, { period: healthCheck.intervalSeconds, failures: 1, timeout: healthCheck.invocationSeconds });
  const wanted = live.readiness ?? { ...healthCheck, intervalSeconds: 5 };
  const readiness = probe(wanted, port, { period: wanted.intervalSeconds, failures: 3, timeout: wanted.invocationSeconds });
  return {
    ...defined({ startupProbe: startup, livenessProbe: liveness, readinessProbe: readiness }),
  };
}

/** A sidecar writes its logs and little else; files that it shares with the app would need a volume. */
const sidecarDiskMB = 64;
/** What the app gets at least, if somebody gave its sidecars all its memory. */
const leastMemoryMB = 16;

/** Memory of the container of the app's own program. */
export const programMemoryMB = ({ memoryMB, sidecars = [] }: Pick<LiveInputs, 'memoryMB' | 'sidecars'>): number =>
  sidecars.length === 0 ? memoryMB : Math.max(leastMemoryMB, ownMemoryMB(memoryMB, sidecars));

function resources(memoryMB: number, diskMB: number): NonNullable<AppWorkload['spec']['resources']> {
  const size = { memory: `${String(memoryMB)}Mi`, 'ephemeral-storage': `${String(diskMB)}Mi` };
  return { requests: { cpu: `${String(Math.max(5, Math.floor((100 * memoryMB) / 1024)))}m`, ...size }, limits: size };
}

export interface WorkloadInput {
  app: Stored<CFApp>;
  process: Stored<CFProcess>;
  live: LiveInputs;
  frozen: FrozenInputs;
  env: EnvVar[];
}

/** Names of the objects of one generation. */
export function generationNames(
  process: Stored<CFProcess>,
  hash: string,
): { workload: string; env: string; binding: (index: number) => string } {
  const workload = appWorkloadName(process.metadata.name, hash);
  return { workload, env: `${workload}-env`, binding: (index) => `${workload}-b-${String(index)}` };
}

/** The AppWorkload, without instances: they are started when its Secrets exist. */
export function buildAppWorkload({ app, process, live, frozen, env }: WorkloadInput, hash: string): AppWorkload {
  const names = generationNames(process, hash);
  const { name, namespace } = process.metadata;
  const appGuid = app.metadata.name;
  const { processType } = process.spec;
  const user = live.user === '' ? {} : { user: live.user };
  return {
    apiVersion: apiVersionOf(kinds.appWorkload),
    kind: 'AppWorkload',
    metadata: {
      name: names.workload,
      namespace,
      labels: {
        [labels.appGuid]: appGuid,
        [labels.appRev]: live.appRev,
        [labels.processGuid]: name,
        [labels.processType]: processType,
        [labels.generation]: hash,
      },
      annotations: {
        [annotations.liveHash]: liveHash(live),
        [annotations.lastStopAppRev]: app.metadata.annotations?.[annotations.lastStopAppRev] ?? '0',
        [annotations.creationVersion]: contractVersion,
      },
      ownerReferences: [ownerReference(kinds.process, process)],
    },
    spec: {
      GUID: name,
      appGUID: appGuid,
      processType,
      version: live.appRev,
      image: live.image,
      imagePullSecrets: live.pullSecrets.map((secret) => ({ name: secret })),
      ...(live.command.length === 0 ? {} : { command: live.command }),
      env,
      instances: 0,
      ports: live.ports,
      runnerName: places.runner,
      services: frozen.bindings.map(({ guid, name: binding }, index) => ({ guid, name: binding, secret: names.binding(index) })),
      resources: resources(programMemoryMB(live), live.diskMB),
      ...probes(live),
      ...user,
      drainSeconds: frozen.drainSeconds,
      graceSeconds: frozen.graceSeconds,
      ...(live.architecture === '' ? {} : { architecture: live.architecture }),
      ...defined({
        sidecars: live.sidecars?.map((sidecar) => ({
          name: sidecar.name,
          command: sidecar.command,
          resources: resources(sidecar.memoryMB, sidecarDiskMB),
        })),
      }),
    },
  };
}

/** A copy for one generation: immutable, deleted with the AppWorkload. */
export function buildFrozenSecret(workload: Stored<AppWorkload>, name: string, data: Record<string, string>): Secret {
  const { namespace } = workload.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace,
      labels: { [labels.appGuid]: workload.spec.appGUID },
      ownerReferences: [ownerReference(kinds.appWorkload, workload)],
    },
    type: 'Opaque',
    immutable: true,
    data,
  };
}

/** All copies of a generation; the one with its environment is the last. */
export function buildFrozenSecrets(
  workload: Stored<AppWorkload>,
  names: ReturnType<typeof generationNames>,
  frozen: FrozenInputs,
): Secret[] {
  const bindings = frozen.bindings.map(({ data }, index) => buildFrozenSecret(workload, names.binding(index), data));
  return [...bindings, buildFrozenSecret(workload, names.env, frozen.env)];
}

/** Names of all copies of a generation. */
export function frozenSecretNames({ metadata, spec }: Stored<AppWorkload>): string[] {
  return [...(spec.services ?? []).map(({ secret }) => secret), `${metadata.name}-env`];
}
