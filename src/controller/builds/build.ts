// Reconciles CFBuild: asks a builder for a droplet, or checks a ready image, and keeps the result. A build with the condition Succeeded does not
// change any more.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { secretType } from '../../lib/api/core.ts';
import { annotations, conditionTypes, contractVersion, kinds, labels, reasons } from '../../lib/api/group.ts';
import { insecureRegistries } from '../../lib/api/repositories.ts';
import type { BuildFailure, BuildWorkload, CFApp, CFBuild, CFBuildStatus, CFPackage } from '../../lib/api/types.generated.ts';
import { KubeError, isAlreadyExists } from '../../lib/kube/errors.ts';
import { ownerReference } from '../../templates/metadata.ts';
import { index, watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler, Stores } from '../runtime/reconciler.ts';
import { TerminalError, WaitingError } from '../runtime/result.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeStatus } from '../runtime/status.ts';
import type { MetadataChange, Statement } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { measureBuild } from '../durations.ts';
import { bindingsByApp, buildsByApp } from '../relations.ts';
import { assertBindingsListed, buildEnvironment, buildServices } from './env.ts';
import { classifyReadError, pinned, readImage, unreadReference, userProblem } from './docker-image.ts';
import type { ImageFacts, NamedConfig } from './docker-image.ts';
import { foreignImageProblem } from '../registry/own-images.ts';
import { ensureOwner, isOwnedBy } from '../runtime/owner.ts';
import { wholeIfThere } from '../runtime/whole.ts';
import { withCause } from './last-lines.ts';
import { buildRefusal } from './refusal.ts';
import { defined } from '../../lib/defined.ts';

const byPackage = 'build-by-package';
const imageReadTimeoutMs = 15_000;
/** A package may be created after its build. If it is missing for this long, it was deleted. */
const packagePatienceMs = 10 * 60_000;
const packageLookMs = 60_000;

const openBuilds = (builds: readonly Stored<CFBuild>[]): string[] => builds.filter((build) => !isFinal(build)).map(keyOf);
const related = (indexName: string) => (object: Stored<CFApp> | Stored<CFPackage>, stores: Stores) =>
  openBuilds(stores.of(kinds.build).by(indexName, keyOf(object)));

export const buildReconciler: Reconciler = {
  name: 'build',
  watches: [
    watch(kinds.build),
    watch<BuildWorkload>(kinds.buildWorkload, (workload) => [`${workload.metadata.namespace}/${workload.spec.buildRef.name}`]),
    watch<CFApp>(kinds.app, related(buildsByApp.name)),
    watch<CFPackage>(kinds.package, related(byPackage)),
  ],
  indexes: [
    bindingsByApp,
    buildsByApp,
    index(kinds.build, byPackage, (build) => [`${build.metadata.namespace}/${build.spec.packageRef.name}`]),
  ],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.build).get(ns, name);
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return undefined;
    if (isFinal(live)) {
      // Restores index labels that somebody removed, also when the status does not change.
      await writeStatus(context, kinds.build, live, { ...live.status });
      return undefined;
    }
    return stage(context, live);
  },
};

/** True once the build has a result; the controller does no more work for it. */
export function isFinal(build: Stored<CFBuild>): boolean {
  const succeeded = findCondition(build, conditionTypes.succeeded);
  return succeeded !== undefined && succeeded.status !== 'Unknown';
}

async function stage(context: Context, live: Stored<CFBuild>): Promise<Result | undefined> {
  try {
    const { app, source } = inputsOf(context, live);
    const build = await ensureOwner(context, kinds.build, live, app);
    const types = [build.spec.lifecycle.type, app.spec.lifecycle.type, source.spec.type === 'docker' ? 'docker' : 'buildpack'];
    if (new Set(types).size > 1)
      return await fail(context, build, reasons.buildFailed, `Build, app and package disagree about the lifecycle: ${types.join(', ')}.`);
    const foreign = foreignImageProblem(context.info().registry, build.metadata.namespace, source.spec.source?.registry.image ?? '');
    if (foreign !== undefined) return await fail(context, build, reasons.stagingFailed, foreign);
    return await (build.spec.lifecycle.type === 'docker' ? stageImage(context, build, source) : stageSource(context, build, app, source));
  } catch (error) {
    const current = context.stores.of(kinds.build).get(live.metadata.namespace, live.metadata.name) ?? live;
    if (error instanceof TerminalError) return fail(context, current, reasons.buildFailed, error.message);
    if (error instanceof WaitingError) await write(context, current, { state: 'STAGING' }, [notReady(error)]);
    const refusal = buildRefusal(context, current, error);
    if (refusal === undefined) throw error;
    if (refusal.isFinal) return fail(context, current, refusal.failure.reason, refusal.message);
    await write(context, current, { state: 'STAGING' }, [staging(refusal.message), readyStatement]);
    return { requeueAfterMs: refusal.retryAfterMs };
  }
}

function inputsOf(context: Context, live: Stored<CFBuild>): { app: Stored<CFApp>; source: Stored<CFPackage> } {
  const ns = live.metadata.namespace;
  const { appRef, packageRef } = live.spec;
  const app = context.stores.of(kinds.app).get(ns, appRef.name);
  if (app === undefined) throw new WaitingError('AppNotFound', `The app '${appRef.name}' of the build does not exist.`);
  if (findCondition(app, conditionTypes.claimed)?.status !== 'True')
    throw new WaitingError(reasons.duplicateName, "The app's name is not claimed.");
  const source = context.stores.of(kinds.package).get(ns, packageRef.name);
  if (source === undefined) {
    const message = `The package '${packageRef.name}' of the build does not exist.`;
    const since = Math.max(Date.parse(live.metadata.creationTimestamp ?? ''), context.stores.of(kinds.package).steadySince);
    if (context.now() - since > packagePatienceMs) throw new TerminalError('PackageNotFound', message);
    throw new WaitingError('PackageNotFound', message, packageLookMs);
  }
  if ((source.spec.source?.registry.image ?? '') === '')
    throw new WaitingError('PackageNotReady', 'The source of the package is not uploaded yet.');
  return { app, source };
}

async function stageSource(context: Context, build: Stored<CFBuild>, app: Stored<CFApp>, source: Stored<CFPackage>): Promise<undefined> {
  const { namespace, name } = build.metadata;
  const workload = context.stores.of(kinds.buildWorkload).get(namespace, name) ?? (await createWorkload(context, build, app, source));
  if (!isOwnedBy(workload, build))
    throw new WaitingError('BuildWorkloadLeft', `The BuildWorkload '${name}' is not of this build but of an earlier one with its GUID.`);
  const succeeded = findCondition(workload, conditionTypes.succeeded);
  if (succeeded?.status === 'True' && workload.status?.droplet !== undefined) {
    const stack = build.spec.lifecycle.data.stack;
    const droplet = { ...(stack === '' ? {} : { stack }), ...workload.status.droplet };
    await write(context, build, { state: 'STAGED', droplet }, ended('True', reasons.buildSucceeded, ''));
  } else if (succeeded?.status === 'False') {
    const { status } = await wholeIfThere(context, kinds.buildWorkload, workload);
    const failure = status?.failure ?? { reason: succeeded.reason };
    await write(context, build, { state: 'FAILED', failure }, ended('False', reasons.buildFailed, succeeded.message));
  } else {
    await write(context, build, { state: 'STAGING' }, [staging(succeeded?.message ?? ''), readyStatement]);
  }
  return undefined;
}

const staging = (message: string): Statement => ({ type: conditionTypes.staging, status: 'True', reason: reasons.buildRunning, message });

function ended(status: 'True' | 'False', reason: string, message: string): Statement[] {
  return [
    { type: conditionTypes.staging, status: 'False', reason: reasons.buildNotRunning, message: '' },
    { type: conditionTypes.succeeded, status, reason, message },
    readyStatement,
  ];
}

async function createWorkload(
  context: Context,
  build: Stored<CFBuild>,
  app: Stored<CFApp>,
  source: Stored<CFPackage>,
): Promise<Stored<BuildWorkload>> {
  assertBindingsListed(context, build, app);
  const { name, namespace } = build.metadata;
  const buildpacks = build.spec.lifecycle.data.buildpacks ?? [];
  const registry = source.spec.source?.registry;
  const workload: BuildWorkload = {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'BuildWorkload',
    metadata: {
      name,
      namespace,
      labels: { [labels.buildGuid]: name, [labels.appGuid]: app.metadata.name },
      annotations: { [annotations.creationVersion]: contractVersion },
      ownerReferences: [ownerReference(kinds.build, build)],
    },
    spec: {
      buildRef: { name },
      builderName: context.info().builder.name,
      ...defined({ source: registry && { registry } }),
      ...(buildpacks.length === 0 ? {} : { buildpacks }),
      env: await buildEnvironment(context, build, app),
      services: buildServices(app),
    },
  };
  try {
    return await context.cluster.create(kinds.buildWorkload, workload, { signal: context.signal });
  } catch (error) {
    const present = isAlreadyExists(error) ? await context.cluster.get(kinds.buildWorkload, namespace, name, context.signal) : undefined;
    if (present === undefined) throw error;
    return present;
  }
}

async function stageImage(context: Context, build: Stored<CFBuild>, source: Stored<CFPackage>): Promise<undefined> {
  const image = source.spec.source?.registry.image ?? '';
  const pullSecrets = source.spec.source?.registry.imagePullSecrets ?? [];
  const outcome = context.outside(`image ${build.metadata.uid} ${image}`, imageReadTimeoutMs, async (signal) => {
    // Only now: hundreds of builds may wait for their turn, and the outcome of one that is deleted meanwhile is kept for a while.
    const { buildMetadata: _, ...facts } = await readImage(image, {
      dockerConfigs: await dockerConfigsOf(context, build, pullSecrets, signal),
      insecureRegistries: insecureRegistries(context.info()),
      architecture: architectureOf(context),
      signal,
    });
    return facts;
  });
  if (outcome === undefined) {
    await write(context, build, { state: 'STAGING' }, [
      staging(`Waiting for the registry's answer about image '${image}'.`),
      readyStatement,
    ]);
    return undefined;
  }
  const registry = source.spec.source?.registry ?? { image };
  if (outcome.ok) return succeedWithImage(context, build, registry, outcome.value);
  // Of the API server, about a pull secret: nothing is known of the image yet.
  if (outcome.error instanceof KubeError || outcome.error instanceof TerminalError) throw outcome.error;
  const failure = classifyReadError(image, outcome.error, pullSecrets.length > 0);
  if (failure.kind === 'refused') return fail(context, build, reasons.stagingFailed, failure.message);
  const note = `The image '${image}' was not looked at: ${failure.message}`;
  const statements = ended('True', reasons.buildSucceeded, note);
  const droplet = { registry: { ...registry, image: unreadReference(image) }, ports: [8080] };
  const change = { annotations: { [annotations.imageNotRead]: failure.message.slice(0, 500) } };
  await write(context, build, { state: 'STAGED', droplet }, statements, change);
  return undefined;
}

async function succeedWithImage(
  context: Context,
  build: Stored<CFBuild>,
  registry: CFBuildRegistry,
  read: Omit<ImageFacts, 'buildMetadata'>,
): Promise<undefined> {
  const problem = userProblem(registry.image, read.user);
  if (problem !== undefined) return fail(context, build, reasons.stagingFailed, problem);
  const { ports, architecture, digest } = read;
  const droplet = {
    registry: { ...registry, image: pinned(registry.image, digest) },
    ports: ports.length === 0 ? [8080] : ports,
    ...defined({ architecture }),
  };
  await write(context, build, { state: 'STAGED', droplet }, ended('True', reasons.buildSucceeded, ''));
  return undefined;
}

type CFBuildRegistry = NonNullable<CFBuildStatus['droplet']>['registry'];

/** The architecture that the builder reported for its node, otherwise the controller's own. */
function architectureOf(context: Context): string {
  const info = context.info();
  const known = context.stores.of(kinds.builderInfo).get(info.root, info.builder.name)?.status?.builder?.architecture;
  return known ?? (process.arch === 'x64' ? 'amd64' : process.arch);
}

/** Limit for the docker configs of one package together: they are read while many others are. */
const mostConfigBytes = 256 * 1024;

/** @throws TerminalError when they are too large; KubeError of the API server */
async function dockerConfigsOf(
  { cluster, stores }: Context,
  { metadata }: Stored<CFBuild>,
  secrets: readonly { name?: string }[],
  signal: AbortSignal,
): Promise<NamedConfig[]> {
  const { namespace } = metadata;
  if (stores.of(kinds.build).get(namespace, metadata.name) === undefined) throw new TerminalError('BuildDeleted', 'The build was deleted.');
  const configs: NamedConfig[] = [];
  let left = mostConfigBytes;
  for (const { name = '' } of secrets) {
    const text = name === '' ? undefined : (await cluster.get(secretType, namespace, name, signal))?.data?.['.dockerconfigjson'];
    if (text === undefined) continue;
    left -= Buffer.byteLength(text, 'base64');
    if (left < 0) throw new TerminalError('PullSecretsTooLarge', 'The pull secrets of the package have more than 256 KiB together.');
    configs.push({ text: Buffer.from(text, 'base64').toString('utf8'), from: `Secret '${name}'` });
  }
  return configs;
}

async function fail(context: Context, build: Stored<CFBuild>, reason: BuildFailure['reason'], message: string): Promise<undefined> {
  const failure = withCause({ failure: { reason }, message });
  await write(context, build, { state: 'FAILED', failure }, ended('False', reasons.buildFailed, message));
  return undefined;
}

async function write(
  context: Context,
  build: Stored<CFBuild>,
  status: Partial<CFBuildStatus>,
  statements: Statement[],
  change: MetadataChange = {},
): Promise<void> {
  const conditions = conditionsWith(build, ...statements);
  await writeStatus(context, kinds.build, build, { ...build.status, ...status, conditions }, change);
  if (status.state === 'STAGED' || status.state === 'FAILED')
    measureBuild(context, build, status.state === 'STAGED' ? 'succeeded' : 'failed');
}
