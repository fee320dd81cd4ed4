// Reads one app with its processes and instances.

import { addressesOf, desiredInstances, effectiveCommand, processesOf } from '../../api/app.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { canaryOf, deploymentStateOf, isActive, maxInFlightOf, rolloutOf, strategyOf } from '../../api/rollout.ts';
import type { DeploymentDetails } from '../../api/deployment-details.ts';
import type { AppDetails, AppState, ProcessDetails } from '../../api/results.ts';
import type { CFApp, CFBuild, CFProcess, CFRoute } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { SpaceSession } from '../../session/session.ts';
import { LiveInstances } from '../instances/live.ts';
import { isControllerSilent } from '../controller-wait.ts';

const stateOf = (app: Stored<CFApp>): AppState => (app.spec.desiredState === 'STARTED' ? 'started' : 'stopped');

const isBeingDeployed = (app: Stored<CFApp>): boolean => isActive(deploymentStateOf(app));

function processDetails(
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  live: LiveInstances,
  build: Stored<CFBuild> | undefined,
): ProcessDetails {
  const { processType } = process.spec;
  // The command that the build found, until the controller has written it to a new process.
  const found = build?.status?.droplet?.processTypes?.find(({ type }) => type === processType)?.command;
  const command = effectiveCommand(process) ?? found;
  const { logRateLimitBPS } = process.spec;
  const instances = live.of(process);
  const versions = isBeingDeployed(app) ? live.versions(process) : [];
  return {
    type: processType,
    running: app.spec.desiredState === 'STARTED' ? live.running(process) : 0,
    instances: desiredInstances(process),
    guid: process.metadata.name,
    memoryMB: process.spec.memoryMB,
    diskMB: process.spec.diskQuotaMB,
    healthCheck: process.spec.healthCheck.type,
    sidecars: (process.spec.sidecars ?? []).map(({ name }) => name),
    instanceDetails: instances,
    ...(versions.length === 0 ? {} : { versions }),
    ...defined({ command }),
    ...(logRateLimitBPS === undefined || logRateLimitBPS < 0 ? {} : { logRateLimit: logRateLimitBPS }),
  };
}

async function deploymentDetails(session: SpaceSession, app: Stored<CFApp>): Promise<DeploymentDetails | undefined> {
  const known = app.status?.deployment;
  if (known === undefined) return undefined;
  const status = deploymentStateOf(app) ?? 'STOPPED';
  const isActiveNow = isActive(status);
  const id = app.metadata.annotations?.[annotations.deployId] ?? known.id;
  // What the status says of the change before is not true of this one.
  const { phase, reason, message, since } = isActiveNow && known.id !== id ? { phase: 'Accepted' } : known;
  const { displayName } = app.spec;
  const { bin } = session;
  const next = { continue: `${bin} continue-deployment ${displayName}`, cancel: `${bin} cancel-deployment ${displayName}` };
  const { instanceSteps } = rolloutOf(app) ?? {};
  const canary = instanceSteps === undefined ? undefined : canaryOf(app);
  return {
    id: isActiveNow ? id : known.id,
    phase,
    status,
    strategy: strategyOf(app),
    maxInFlight: maxInFlightOf(app),
    ...(status === 'PAUSED' ? { next } : {}),
    ...defined({ canary: canary && { step: canary.step, steps: canary.steps } }),
    ...defined({ reason, message, since }),
    ...(isActiveNow && (await isControllerSilent(session)) ? { standsStill: true } : {}),
  };
}

/** Data that a caller of {@link describeApp} has read already, or does not need. */
export interface KnownOfApp {
  processes?: readonly Stored<CFProcess>[];
  routes?: readonly Stored<CFRoute>[];
  /** The current droplet's build. */
  build?: Stored<CFBuild>;
  /** The image as the user typed it. */
  image?: string;
  /** Do not read the pods and the usage of instances: the instances are too young, or it is not worth two requests. */
  withoutUsage?: boolean;
}

/**
 * After a wait for the controller, the controller is known to run, so the pods themselves are not read. Only they tell the versions of a deployment
 * apart.
 */
function readInstances(session: SpaceSession, app: Stored<CFApp>, known: KnownOfApp): LiveInstances | Promise<LiveInstances> {
  if (isBeingDeployed(app)) return LiveInstances.read(session, app, { withPods: true });
  if (known.withoutUsage === true) return LiveInstances.told(app);
  return LiveInstances.read(session, app, { withPods: known.processes === undefined });
}

/** The current droplet and, for docker apps, the image as the user typed it. */
export async function readDroplet(
  { cluster, space, signal }: SpaceSession,
  app: Stored<CFApp>,
  known: KnownOfApp,
): Promise<{ build?: Stored<CFBuild>; image?: string }> {
  const name = app.spec.currentDropletRef?.name;
  if (name === undefined || name === '') return {};
  const build = known.build?.metadata.name === name ? known.build : await cluster.get(kinds.build, space.guid, name, signal);
  if (build === undefined) return {};
  if (app.spec.lifecycle.type !== 'docker') return { build };
  if (known.image !== undefined) return { build, image: known.image };
  const source = await cluster.get(kinds.package, space.guid, build.spec.packageRef.name, signal);
  const image = source?.spec.source?.registry.image ?? build.status?.droplet?.registry.image;
  return { build, ...defined({ image }) };
}

/** One app with everything that `kf app` shows. @param known data that is not read again */
export async function describeApp(session: SpaceSession, app: Stored<CFApp>, known: KnownOfApp = {}): Promise<AppDetails> {
  const { cluster, space, signal } = session;
  const guid = app.metadata.name;
  const options = { ns: space.guid, signal };
  const [processes, routes, { build, image }, live, deployment] = await Promise.all([
    known.processes ?? cluster.list(kinds.process, { ...options, labelSelector: `${labels.appGuid}=${guid}` }).then(({ items }) => items),
    known.routes ?? cluster.list(kinds.route, options).then(({ items }) => items),
    readDroplet(session, app, known),
    readInstances(session, app, known),
    deploymentDetails(session, app),
  ]);
  const stack = build?.status?.droplet?.stack ?? app.spec.lifecycle.data.stack;
  return {
    name: app.spec.displayName,
    guid,
    state: stateOf(app),
    routes: addressesOf(app, routes),
    lifecycle: app.spec.lifecycle.type,
    ...defined({ lastUploaded: build?.metadata.creationTimestamp }),
    ...(stack === '' ? {} : { stack }),
    buildpacks: build?.status?.droplet?.buildpacks ?? [],
    ...defined({ dockerImage: image }),
    processes: processesOf(app, processes).map((process) => processDetails(app, process, live, build)),
    ...defined({ deployment }),
  };
}
