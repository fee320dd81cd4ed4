// Starts a build: makes its Secrets, the ConfigMap with the fetch program, and the Job.

import { createHash } from 'node:crypto';
import type { Stored } from '../../lib/api/object.ts';
import { configMapType, jobType } from '../../lib/api/core.ts';
import type { ConfigMap } from '../../lib/api/core.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { conditionTypes, kinds, labels, places, reasons } from '../../lib/api/group.ts';
import { buildUser } from '../../lib/api/registry-credentials.ts';
import { insecureRegistries, pushReference, pushRepository } from '../../lib/api/repositories.ts';
import type { BuilderFacts, BuildWorkload, EnvVar } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildJob } from '../../templates/build-job.ts';
import { encoded, ownerReference } from '../../templates/metadata.ts';
import { buildRegistrySecret, hostOf } from '../../templates/registry-secret.ts';
import { buildsByApp, byAge } from '../relations.ts';
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
/** How long a build waits for a node that has room. The time limit of the pod begins only after that. */
export const roomPatienceSeconds = 5 * 60;
/** How long a build waits while the builder image cannot be read. */
const builderPatienceMs = 60_000;

export interface BuildTools {
  keys: RegistryKeys;
  /** Text of the fetch program. */
  fetchProgram: string;
}

export const registrySecretName = (build: string): string => `${build}-registry`;

/** The app of a workload, by its label or else by its build; empty when neither names one. */
export function appGuidOf(context: Context, workload: Stored<BuildWorkload>): string {
  const build = context.stores.of(kinds.build).get(workload.metadata.namespace, workload.spec.buildRef.name);
  return workload.metadata.labels?.[labels.appGuid] ?? build?.spec.appRef.name ?? '';
}

/** True when the message says that this very image does not exist or may not be pulled: that does not pass by itself. */
function isPermanent(message: string, image: string): boolean {
  return (
    message.includes(`'${image}'`) &&
    /not found|manifest unknown|unauthorized|denied|forbidden|no match for platform|invalid reference/i.test(message)
  );
}

interface KnownBuilder {
  facts: BuilderFacts;
  /** The builder's buildpacks. */
  offered: { id: string; version: string }[];
  stack: string | undefined;
}

/** @throws WaitingError while the builder image is read, TerminalError when it cannot be read */
function knownBuilder(context: Context, workload: Stored<BuildWorkload>): KnownBuilder {
  const info = context.info();
  const builder = context.stores.of(kinds.builderInfo).get(info.root, info.builder.name);
  if (builder?.status?.builder !== undefined && isCurrent(builder, info))
    return {
      facts: builder.status.builder,
      offered: builder.status.buildpacks.map(({ name, version }) => ({ id: name, version })),
      stack: builder.status.stacks[0]?.name,
    };
  const problem = builder === undefined ? undefined : findCondition(builder, conditionTypes.ready);
  const age = context.now() - Date.parse(workload.metadata.creationTimestamp ?? '');
  const isLost = problem?.status === 'False' && (age > builderPatienceMs || isPermanent(problem.message, info.builder.image));
  if (isLost) throw new TerminalError(reasons.builderNotFound, problem.message);
  throw new WaitingError('BuilderNotReady', problem?.message ?? 'The builder image is being looked at for the first time.', 1_000);
}

/** Makes the Job last, so that it finds everything that it mounts. Can be repeated: each step accepts what an earlier try has made. */
export async function startBuild(context: Context, live: Stored<BuildWorkload>, tools: BuildTools): Promise<void> {
  const workload = await wholeOf(context, kinds.buildWorkload, live);
  const { facts, offered, stack } = knownBuilder(context, workload);
  const order = orderFor(workload, offered);
  const info = context.info();
  const { name, namespace: space } = workload.metadata;
  const owner = ownerReference(kinds.buildWorkload, workload);
  const app = appGuidOf(context, workload);
  if (app === '') throw new TerminalError(reasons.buildFailed, 'The workload names no app, neither by its label nor by its build.');
  // Two minutes longer than the pod may wait and run: its last upload must not fail because of the clock.
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
    await context.cluster.create(jobType, job, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
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

/** Makes a Secret with the variables that have a value of their own, and returns its name; undefined when there is none. */
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

/** The image of the app's newest droplet: layers that have not changed since are not uploaded again. */
function previousDroplet(context: Context, space: string, app: string): string | undefined {
  const { registry } = context.info();
  const images = context.stores
    .of(kinds.build)
    .by(buildsByApp.name, `${space}/${app}`)
    .filter((build) => build.status?.state === 'STAGED')
    .toSorted((a, b) => byAge(b, a))
    .flatMap((build) => pushReference(registry, build.status?.droplet?.registry.image ?? '') ?? []);
  return images[0];
}
