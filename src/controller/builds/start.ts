// Starts the pod of a build: its Secret, the fetch program, and the Job.

import type { Stored } from '../../lib/api/object.ts';
import { createHash } from 'node:crypto';
import { configMapType, jobType } from '../../lib/api/core.ts';
import type { ConfigMap, Job } from '../../lib/api/core.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { conditionTypes, kinds, labels, places, reasons } from '../../lib/api/group.ts';
import { buildUser } from '../../lib/api/registry-credentials.ts';
import { insecureRegistries, pushReference, pushRepository } from '../../lib/api/repositories.ts';
import type { BuilderFacts, BuildWorkload, EnvVar } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildJob } from '../../templates/build-job.ts';
import { encoded, ownerReference } from '../../templates/metadata.ts';
import { buildRegistrySecret, hostOf } from '../../templates/registry-secret.ts';
import type { Context } from '../runtime/reconciler.ts';
import { TerminalError, WaitingError } from '../runtime/result.ts';
import { wholeOf } from '../runtime/whole.ts';
import { explicitOrder } from '../../lib/api/build-order.ts';
import { isCurrent } from './builder-info.ts';
import { lastOfEach } from './env.ts';
import { buildCredential } from '../registry/credentials.ts';
import { ensureSecret } from '../runtime/secrets.ts';
import type { RegistryKeys } from '../registry/credentials.ts';
import { defined } from '../../lib/defined.ts';

/** As long as cf waits for a build. */
export const buildTimeoutSeconds = 15 * 60;
/** So long a build waits for a node that has room; only then the pod's time begins to count. */
export const roomPatienceSeconds = 5 * 60;
/** A build waits so long for a builder that nobody could look at yet. */
const builderPatienceMs = 60_000;

export interface BuildTools {
  keys: RegistryKeys;
  /** Text of the fetch program. */
  fetchProgram: string;
}

export const registrySecretName = (build: string): string => `${build}-registry`;

/** The app of a workload: its label, else what its build says; empty when neither does. */
export function appGuidOf(context: Context, workload: Stored<BuildWorkload>): string {
  const build = context.stores.of(kinds.build).get(workload.metadata.namespace, workload.spec.buildRef.name);
  return workload.metadata.labels?.[labels.appGuid] ?? build?.spec.appRef.name ?? '';
}

/** That there is no such image, or that it may not be pulled, does not pass by itself; what was said of another image does not count. */
function isHopeless(message: string, image: string): boolean {
  return (
    message.includes(`'${image}'`) &&
    /not found|manifest unknown|unauthorized|denied|forbidden|no match for platform|invalid reference/i.test(message)
  );
}

interface KnownBuilder {
  facts: BuilderFacts;
  offered: { id: string; version: string }[];
  stack: string | undefined;
}

/** What is known of the builder; a TerminalError when nothing is to be had. */
function knownBuilder(context: Context, workload: Stored<BuildWorkload>): KnownBuilder {
  const info = context.info();
  const live = context.stores.of(kinds.builderInfo).get(info.root, info.builder.name);
  if (live?.status?.builder !== undefined && isCurrent(live, info))
    return {
      facts: live.status.builder,
      offered: live.status.buildpacks.map(({ name, version }) => ({ id: name, version })),
      stack: live.status.stacks[0]?.name,
    };
  const problem = live === undefined ? undefined : findCondition(live, conditionTypes.ready);
  const age = context.now() - Date.parse(workload.metadata.creationTimestamp ?? '');
  const isLost = problem?.status === 'False' && (age > builderPatienceMs || isHopeless(problem.message, info.builder.image));
  if (isLost) throw new TerminalError(reasons.builderNotFound, problem.message);
  throw new WaitingError('BuilderNotReady', problem?.message ?? 'The builder image is being looked at for the first time.', 1_000);
}

/** Makes everything and the Job last, so that a Job always finds what it mounts. Each step may have been done before. */
export async function startBuild(context: Context, live: Stored<BuildWorkload>, tools: BuildTools): Promise<Stored<Job>> {
  const workload = await wholeOf(context, kinds.buildWorkload, live);
  const { facts, offered, stack } = knownBuilder(context, workload);
  const order = orderFor(workload, offered);
  const info = context.info();
  const { name, namespace: space } = workload.metadata;
  const owner = ownerReference(kinds.buildWorkload, workload);
  const app = appGuidOf(context, workload);
  if (app === '') throw new TerminalError(reasons.buildFailed, 'The workload names no app, neither by its label nor by its build.');
  // A little longer than the pod may wait and live: the last upload must not fail for the clock.
  const until = Math.floor(context.now() / 1000) + roomPatienceSeconds + buildTimeoutSeconds + 120;
  const credential = await buildCredential(context, tools.keys, space, buildUser(space, app, until));
  const env = lastOfEach([...(workload.spec.env ?? []), ...(stack === undefined ? [] : [{ name: 'CF_STACK', value: stack }])]);
  const registrySecret = buildRegistrySecret({ ns: space, name: registrySecretName(name), owner }, info.registry.pushHost, credential);
  const [fetchConfigMap, literalEnvSecret] = await Promise.all([
    ensureFetchProgram(context, space, tools.fetchProgram),
    ensureLiterals(context, workload, env),
    ensureSecret(context, registrySecret),
  ]);
  const previousImage = previousDroplet(context, space, app);
  const job = buildJob({
    name,
    namespace: space,
    appGuid: app,
    owner,
    builderImage: info.builder.image,
    nodeImage: info.programImage ?? info.builder.image,
    uid: facts.uid ?? 1000,
    gid: facts.gid ?? 1000,
    source: workload.spec.source?.registry.image ?? '',
    registryHost: hostOf(info.registry.pushHost),
    lifecycle: {
      target: `${pushRepository(info.registry, space, app, 'droplets')}:${name}`,
      ...defined({ runImage: info.builder.runImage, previousImage }),
      insecureRegistries: insecureRegistries(info),
    },
    ...defined({ order }),
    registrySecret: registrySecretName(name),
    fetchConfigMap,
    env,
    ...defined({ literalEnvSecret }),
    bindings: (workload.spec.services ?? []).map((service) => service.name ?? '').filter((service) => service !== ''),
    pullSecrets: [places.pullSecret],
    memoryMB: info.staging.memoryMB,
    diskMB: info.staging.diskMB,
    timeoutSeconds: buildTimeoutSeconds,
  });
  try {
    return await context.cluster.create(jobType, job, { signal: context.signal });
  } catch (error) {
    const present = isAlreadyExists(error) ? await context.cluster.get(jobType, space, name, context.signal) : undefined;
    if (present === undefined) throw error;
    return present;
  }
}

function orderFor(workload: Stored<BuildWorkload>, offered: { id: string; version: string }[]): string | undefined {
  const wanted = workload.spec.buildpacks ?? [];
  if (wanted.length === 0) return undefined;
  const result = explicitOrder(wanted, offered);
  if (!result.ok) throw new TerminalError('InvalidBuildpacks', result.message);
  return result.order;
}

/** One immutable ConfigMap per space and version of the program, named by its content. */
async function ensureFetchProgram(context: Context, ns: string, program: string): Promise<string> {
  const name = `kf-fetch-${createHash('sha256').update(program).digest('hex').slice(0, 10)}`;
  const map: ConfigMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: ns, labels: { [labels.managedBy]: 'kf' } },
    immutable: true,
    data: { 'fetch.mjs': program },
  };
  if ((await context.cluster.get(configMapType, ns, name, context.signal)) !== undefined) return name;
  try {
    await context.cluster.create(configMapType, map, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  return name;
}

/** A Secret for variables that are no references; undefined when there is none. */
async function ensureLiterals(context: Context, workload: Stored<BuildWorkload>, env: readonly EnvVar[]): Promise<string | undefined> {
  const literals = env.filter((variable): variable is EnvVar & { value: string } => variable.value !== undefined);
  if (literals.length === 0) return undefined;
  const name = `${workload.metadata.name}-literals`;
  await ensureSecret(context, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: workload.metadata.namespace, ownerReferences: [ownerReference(kinds.buildWorkload, workload)] },
    type: 'Opaque',
    data: encoded(Object.fromEntries(literals.map(({ name: key, value }) => [key, value]))),
  });
  return name;
}

/** The newest droplet of the app: its layers that did not change are not uploaded again. */
function previousDroplet(context: Context, space: string, app: string): string | undefined {
  const { registry } = context.info();
  const images = context.stores
    .of(kinds.build)
    .list(space)
    .filter((build) => build.spec.appRef.name === app && build.status?.state === 'STAGED')
    .toSorted((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''))
    .flatMap((build) => pushReference(registry, build.status?.droplet?.registry.image ?? '') ?? []);
  return images[0];
}
