// Reconciles CFApp: name, processes, their common environment, and the progress of the last change.

import type { Stored } from '../../lib/api/object.ts';
import { isUnnamedFirstPush } from '../../lib/api/app.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { namespaceType } from '../../lib/api/core.ts';
import { annotations, kinds, labels, reasons } from '../../lib/api/group.ts';
import { changeOf } from '../../lib/api/held.ts';
import { defaultStrategyOf, isCanceled, servingText } from '../../lib/api/rollout.ts';
import type {
  AppRevision, BoundService, CFApp, CFBuild, CFProcess, CFRoute, CFServiceBinding, CFSpace, DeploymentStatus, Droplet,
} from '../../lib/api/types.generated.ts'; // prettier-ignore
import { defined } from '../../lib/defined.ts';
import { recordRevision } from './revision.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { TerminalError, WaitingError, type Result } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeMetadata, writeStatus, type Statement, type StatusOf } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { deploymentOf } from './deployment.ts';
import { measureDeployment, noteChanges } from '../durations.ts';
import {
  appIndexes,
  appsByDroplet,
  appsBySpace,
  bindingsByApp,
  bindingsOf,
  dropletOf,
  foreignBuild,
  inNamespace,
  spaceOf,
  wantedInstances,
} from '../relations.ts';
import { ensureProcesses, liveProcesses } from './processes.ts';
import { boundServices, ensureVcapSecrets, forgetVcap, vcapApplicationSecretName, vcapPaceMs, vcapServicesSecretName } from './vcap.ts';
import { claimName } from '../names/leases.ts';

export const appReconciler: Reconciler = {
  name: 'app',
  workers: 8,
  watches: [
    watch(kinds.app),
    watch<CFProcess>(kinds.process, (process) => inNamespace(process, process.spec.appRef.name)),
    watch<CFServiceBinding>(kinds.serviceBinding, (binding) => inNamespace(binding, binding.spec.appRef.name)),
    watch<CFRoute>(kinds.route, (route) => (route.spec.destinations ?? []).flatMap(({ appRef }) => inNamespace(route, appRef.name))),
    watch<CFSpace>(kinds.space, ({ metadata }, stores) => stores.of(kinds.app).by(appsBySpace.name, metadata.name).map(keyOf)),
    watch<CFBuild>(kinds.build, (build, stores) => stores.of(kinds.app).by(appsByDroplet.name, keyOf(build)).map(keyOf)),
  ],
  reads: [kinds.serviceInstance, kinds.org, kinds.domain, kinds.appWorkload, namespaceType],
  indexes: appIndexes,
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.app).get(ns, name);
    if (live === undefined) {
      await removeBindings(context, ns, name);
      return undefined;
    }
    const app = await writeMetadata(context, kinds.app, live, {});
    return app.metadata.deletionTimestamp === undefined ? reconcileApp(context, app) : undefined;
  },
};

/** Deletes the service bindings of an app that is gone. (Each route removes its destinations in its own reconcile.) */
async function removeBindings(context: Context, ns: string, name: string): Promise<void> {
  const bindings = context.stores.of(kinds.serviceBinding).by(bindingsByApp.name, `${ns}/${name}`);
  if (bindings.length === 0 || (await context.cluster.get(kinds.app, ns, name, context.signal)) !== undefined) return;
  for (const { metadata } of bindings) {
    if (metadata.deletionTimestamp !== undefined) continue;
    await context.cluster.delete(kinds.serviceBinding, ns, metadata.name, { uid: metadata.uid, signal: context.signal });
  }
}

/** Longer than a push needs to notice that it did not get the name. */
const abandonedMs = 30_000;

const deployIdOf = (app: Stored<CFApp>): string => app.metadata.annotations?.[annotations.deployId] ?? '';

/**
 * True for an app that a first push left without its name. Such a push deletes the app, but if it was killed before, the app would get the name at
 * some time later.
 */
function isAbandoned(app: Stored<CFApp>, now: number): boolean {
  return isUnnamedFirstPush(app) && now - Date.parse(app.metadata.creationTimestamp ?? '') > abandonedMs;
}

async function reconcileApp(context: Context, live: Stored<CFApp>): Promise<Result | undefined> {
  noteChanges(context, live);
  const claim = await claimName(context, { entity: 'app', object: live });
  if (claim.notReady !== undefined) {
    if (isAbandoned(live, context.now())) {
      const { uid, resourceVersion, namespace, name } = live.metadata;
      await context.cluster.delete(kinds.app, namespace, name, { uid, resourceVersion, signal: context.signal });
      return undefined;
    }
    await writeStatus(context, kinds.app, live, { ...live.status, conditions: conditionsWith(live, claim.claimed, claim.notReady) });
    return claim;
  }
  const seen = live.status?.deployment?.id ?? '';
  const app = await withRevision(context, deployIdOf(live) === seen ? live : await readFresh(context, live));
  const findings = await ensureParts(context, app);
  await write(context, app, findings, claim.claimed);
  if (findings.error !== undefined && !(findings.error instanceof TerminalError)) throw findings.error;
  return { requeueAfterMs: vcapPaceMs(context) };
}

/** After a user's command, everything that it may have written is read from the API server, because the caches may be behind. */
async function readFresh(context: Context, app: Stored<CFApp>): Promise<Stored<CFApp>> {
  const { namespace, name } = app.metadata;
  const { signal } = context;
  const droplet = app.spec.currentDropletRef?.name ?? '';
  const [fresh] = await Promise.all([
    context.cluster.get(kinds.app, namespace, name, signal),
    context.cluster.list(kinds.process, { ns: namespace, labelSelector: `${labels.appGuid}=${name}`, signal }),
    context.cluster.list(kinds.serviceBinding, { ns: namespace, labelSelector: `${labels.appGuid}=${name}`, signal }),
    context.cluster.list(kinds.route, { ns: namespace, signal }),
    droplet === '' ? undefined : context.cluster.get(kinds.build, namespace, droplet, signal),
  ]);
  forgetVcap(context, app, bindingsOf(context.stores, app));
  return fresh ?? app;
}

/** Maintains app-rev and last-stop-app-rev, which the contract sets by admission: a stop changes both, so that the next start is a new generation. */
async function withRevision(context: Context, app: Stored<CFApp>): Promise<Stored<CFApp>> {
  const marks = app.metadata.annotations ?? {};
  const given = Number(marks[annotations.appRev] ?? '0');
  const isNumber = Number.isInteger(given) && given >= 0;
  const hasStopped = app.spec.desiredState === 'STOPPED' && app.status?.observedDesiredState === 'STARTED';
  const rev = String(isNumber ? given + (hasStopped ? 1 : 0) : 0);
  const lastStop = hasStopped ? rev : (marks[annotations.lastStopAppRev] ?? rev);
  const written = await writeMetadata(context, kinds.app, app, {
    annotations: { [annotations.appRev]: rev, [annotations.lastStopAppRev]: lastStop },
  });
  // Written at once, so that the next reconcile does not count the same stop again.
  if (!hasStopped) return written;
  return writeStatus(context, kinds.app, written, { ...written.status, observedDesiredState: 'STOPPED' });
}

interface Findings {
  serviceBindings: BoundService[];
  revision: AppRevision | undefined;
  error?: Error;
}

/** @throws KubeError when another controller has recorded a revision meanwhile: nothing may say then that this change was read */
async function ensureParts(context: Context, app: Stored<CFApp>): Promise<Findings> {
  const findings: Findings = { serviceBindings: app.status?.serviceBindings ?? [], revision: app.status?.revision };
  try {
    const bindings = bindingsOf(context.stores, app);
    findings.serviceBindings = boundServices(context, bindings);
    await ensureVcapSecrets(context, app, bindings);
    await ensureProcesses(context, app, presentDroplet(context, app));
  } catch (error) {
    findings.error = error instanceof Error ? error : new Error(String(error));
  }
  // Whatever hinders the change, and before the status says that the change was read: until then no process starts a generation.
  const droplet = dropletOf(app, app.spec.currentDropletRef?.name, context.stores);
  if (droplet !== undefined) findings.revision = await recordRevision(context, app, liveProcesses(context, app), droplet);
  return findings;
}

function presentDroplet(context: Context, app: Stored<CFApp>): Droplet {
  const name = app.spec.currentDropletRef?.name ?? '';
  if (name === '') throw new TerminalError(reasons.dropletNotAssigned, 'The app has no droplet yet.');
  const droplet = dropletOf(app, name, context.stores);
  if (droplet !== undefined) return droplet;
  const missing = `The build '${name}', which is the app's droplet, does not exist or has none.`;
  throw new WaitingError(reasons.cannotResolveDroplet, foreignBuild(app, name, context.stores) ?? missing);
}

function readiness(app: Stored<CFApp>, processes: readonly Stored<CFProcess>[], actualState: string, error: Error | undefined): Statement {
  if (error !== undefined) return notReady(error);
  const unready = (reason: string, message: string): Statement => ({ type: 'Ready', status: 'False', reason, message });
  if (actualState !== app.spec.desiredState) {
    const isStarted = app.spec.desiredState === 'STARTED';
    return unready(reasons.desiredStateNotReached, isStarted ? 'No instance of the app runs.' : 'Instances of the app still run.');
  }
  const waiting = processes.find((process) => findCondition(process, 'Ready')?.status !== 'True');
  if (waiting !== undefined) return unready(reasons.processesNotReady, `The process '${waiting.spec.processType}' is not ready.`);
  return readyStatement;
}

/** The app was scaled to 0 before any instance of its version served. Status of kf 0.1.0, in which versions have no `uid`, does not say so. */
function hasNotServed({ generations = [] }: DeploymentStatus): boolean {
  const current = generations.filter(({ state }) => state === 'Current');
  return current.length > 0 && current.every(({ served, uid }) => served !== true && uid !== undefined);
}

/**
 * With the newest revision as the deployed one when all of it serves; a failed or canceled one, and one that never served, leaves the former. So does one that
 * fails after that, while the one before has not been let go.
 */
function revisionStatus(app: Stored<CFApp>, revision: AppRevision | undefined, deployment: DeploymentStatus): AppRevision | undefined {
  if (revision === undefined || revision.change !== changeOf(app) || revision.version === 0 || isCanceled(app)) return revision;
  const { replaced, ...now } = revision;
  const { phase, generations = [] } = deployment;
  const isDeployed = now.deployed === now.version;
  // Another process of the version can fail with its first instances, and this one serves on.
  const hasFailedLate = phase === 'Failed' && generations.some(({ state, served }) => state === 'Failed' && served === true);
  if (isDeployed && hasFailedLate && replaced !== undefined) return { ...now, deployed: replaced };
  const isLetGo = !generations.some(({ state, instances }) => state === 'Old' && instances > 0);
  if (isDeployed && phase === 'Serving' && isLetGo) return now;
  if (phase !== 'Serving' || isDeployed || hasNotServed(deployment)) return revision;
  return { ...now, deployed: now.version, ...defined({ replaced: now.deployed }) };
}

async function write(
  context: Context,
  app: Stored<CFApp>,
  { serviceBindings, revision, error }: Findings,
  claimed: Statement,
): Promise<void> {
  const processes = liveProcesses(context, app);
  const actual = processes.reduce((sum, { status }) => sum + (status?.actualInstances ?? 0), 0);
  const wanted = processes.reduce((sum, process) => sum + wantedInstances(app, process), 0);
  const isIdle = app.spec.desiredState === 'STARTED' && processes.length > 0 && wanted === 0;
  const actualState = actual > 0 || isIdle ? 'STARTED' : 'STOPPED';
  const deployment = deploymentOf(app, processes, deployIdOf(app), context.now());
  const { spaceStrategy: _, ...before } = app.status ?? {};
  const space = spaceOf(context.stores, app.metadata.namespace);
  const status: StatusOf<CFApp> = {
    ...before,
    ...defined({ spaceStrategy: space && defaultStrategyOf(space) }),
    actualState,
    observedDesiredState: app.spec.desiredState,
    serviceBindings,
    vcapApplicationSecretName: vcapApplicationSecretName(app),
    vcapServicesSecretName: vcapServicesSecretName(app),
    deployment,
    ...defined({ revision: revisionStatus(app, revision, deployment) }),
    conditions: conditionsWith(app, claimed, readiness(app, processes, actualState, error)),
  };
  await writeStatus(context, kinds.app, app, status);
  measureDeployment(context, app, deployment);
  const { phase } = deployment;
  const isNews = app.status?.deployment?.phase !== phase && (phase === 'Serving' || phase === 'Stopped');
  if (isNews)
    context.event(kinds.app, app, {
      type: 'Normal',
      reason: phase,
      message: phase === 'Serving' ? servingText(deployment) : 'All instances have ended.',
    });
}
