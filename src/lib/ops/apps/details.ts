// Reads one app with its processes and instances.

import { addressesOf, desiredInstances, effectiveCommand, instanceCountsOf, instancesOf, processesOf } from '../../api/app.ts';
import type { Pod } from '../../api/core.ts';
import { kinds, labels } from '../../api/group.ts';
import { computedResource, type KubeObject } from '../../api/object.ts';
import type { ContainerStatus } from '../../api/pod.ts';
import type { AppDetails, AppState, DeploymentDetails, InstanceDetails, LastEnd, ProcessDetails } from '../../api/results.ts';
import { parseQuantity } from '../../api/sizes.ts';
import type { CFApp, CFBuild, CFProcess, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { present } from '../../../templates/metadata.ts';
import type { SpaceSession } from '../../session/session.ts';
import { readPods, withPods } from './live-instances.ts';

interface PodMetrics extends KubeObject {
  containers?: { name: string; usage?: { cpu?: string; memory?: string } }[];
}

const appContainer = 'application';
const podMetrics = computedResource<PodMetrics>('metrics.k8s.io', 'v1beta1', 'PodMetrics', 'pods');

const stateOf = (app: CFApp): AppState => (app.spec.desiredState === 'STARTED' ? 'started' : 'stopped');

/** Usage by pod; empty where the cluster measures nothing or the user may not see it. */
async function readUsage({ cluster, space, signal }: SpaceSession, appGuid: string): Promise<Map<string, PodMetrics>> {
  try {
    const { items } = await cluster.list(podMetrics, { ns: space.guid, labelSelector: `${labels.appGuid}=${appGuid}`, signal });
    return new Map(items.map((item) => [item.metadata.name ?? '', item]));
  } catch (error) {
    if (error instanceof KfError && error.code !== 'interrupted') return new Map();
    throw error;
  }
}

const instanceStates = { RUNNING: 'running', STARTING: 'starting', CRASHED: 'crashed', DOWN: 'down' } as const;

/** What is known of running instances from elsewhere than the process' status. */
interface Live {
  usage: Map<string, PodMetrics>;
  pods?: Pod[] | undefined;
}

function appStatusOf(pod: Pod | undefined): ContainerStatus | undefined {
  return pod?.status?.containerStatuses?.find(({ name }) => name === appContainer);
}

/** The limits that a pod was made with; they stay as they are until another takes its place. */
function sizesOf(pod: Pod | undefined): Pick<InstanceDetails, 'memoryMB' | 'diskMB'> {
  const limits = pod?.spec?.containers.find(({ name }) => name === appContainer)?.resources?.limits ?? {};
  const megabytes = (quantity: string | undefined): number | undefined => {
    const bytes = parseQuantity(quantity);
    return bytes === undefined ? undefined : Math.round(bytes / 1024 ** 2);
  };
  return present({ memoryMB: megabytes(limits['memory']), diskMB: megabytes(limits['ephemeral-storage']) });
}

/** How the app's container ended last; undefined when it never did. */
function lastEndOf(status: ContainerStatus | undefined): LastEnd | undefined {
  const ended = status?.state?.terminated ?? status?.lastState?.terminated;
  if (ended === undefined) return undefined;
  const { exitCode, reason, finishedAt: at } = ended;
  return { exitCode, ...(reason === undefined ? {} : { reason }), ...(at === undefined ? {} : { at }) };
}

/** Instances of a stopped app that are about to end are not listed. */
function instanceDetails(app: CFApp, process: CFProcess, { usage, pods }: Live): InstanceDetails[] {
  if (app.spec.desiredState !== 'STARTED') return [];
  const wanted = desiredInstances(process);
  const instances = instancesOf(app, process);
  const byName = new Map((pods ?? []).map((pod) => [pod.metadata.name ?? '', pod]));
  return (pods === undefined ? instances : withPods(instances, process, pods, wanted)).map((instance) => {
    const container = usage.get(instance.pod ?? '')?.containers?.find((one) => one.name === appContainer);
    const pod = byName.get(instance.pod ?? '');
    const status = appStatusOf(pod);
    const lastEnd = lastEndOf(status);
    // The pod knows first.
    const restarts = status?.restartCount ?? instance.restarts;
    return {
      index: instance.index,
      state: instanceStates[instance.state],
      ...sizesOf(pod),
      ...present({
        since: instance.timestamp,
        cpu: parseQuantity(container?.usage?.cpu),
        memoryBytes: parseQuantity(container?.usage?.memory),
        ready: instance.ready ?? (instance.state === 'RUNNING' ? true : undefined),
        restarts,
        lastEnd,
        details: instance.details,
        pod: instance.pod,
      }),
    };
  });
}

/** Pods are complete; a status lists the first instances only, and counts them all. */
function runningOf(process: CFProcess, instances: readonly InstanceDetails[], { pods }: Live): number {
  return pods === undefined ? instanceCountsOf(process).running : instances.filter(({ state }) => state === 'running').length;
}

function processDetails(app: CFApp, process: CFProcess, live: Live, build: CFBuild | undefined): ProcessDetails {
  const { processType } = process.spec;
  // What the build found, before the controller has written it to a process that was just made.
  const found = build?.status?.droplet?.processTypes?.find(({ type }) => type === processType)?.command;
  const command = effectiveCommand(process) ?? found;
  const { logRateLimitBPS } = process.spec;
  const instances = instanceDetails(app, process, live);
  return {
    type: processType,
    running: app.spec.desiredState === 'STARTED' ? runningOf(process, instances, live) : 0,
    instances: desiredInstances(process),
    guid: process.metadata.name ?? '',
    memoryMB: process.spec.memoryMB,
    diskMB: process.spec.diskQuotaMB,
    healthCheck: process.spec.healthCheck.type,
    instanceDetails: instances,
    ...(command === undefined ? {} : { command }),
    ...(logRateLimitBPS === undefined || logRateLimitBPS < 0 ? {} : { logRateLimit: logRateLimitBPS }),
  };
}

function deploymentDetails(app: CFApp): DeploymentDetails | undefined {
  const deployment = app.status?.deployment;
  if (deployment === undefined) return undefined;
  const { id, phase, reason, message, since } = deployment;
  return {
    id,
    phase,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(since === undefined ? {} : { since }),
  };
}

/** What a caller of {@link describeApp} has read already, or knows to be of no use. */
export interface KnownOfApp {
  processes?: readonly CFProcess[];
  routes?: readonly CFRoute[];
  /** The current droplet's build. */
  build?: CFBuild;
  /** The image as it was typed. */
  image?: string;
  /** What instances use and which pods are there is not asked for: they are too young, or it is not worth two requests. */
  withoutUsage?: boolean;
}

/** The current droplet and, for docker apps, the image as it was typed. */
export async function readDroplet(
  { cluster, space, signal }: SpaceSession,
  app: CFApp,
  known: KnownOfApp,
): Promise<{ build?: CFBuild; image?: string }> {
  const name = app.spec.currentDropletRef?.name;
  if (name === undefined || name === '') return {};
  const build = known.build?.metadata.name === name ? known.build : await cluster.get(kinds.build, space.guid, name, signal);
  if (build === undefined) return {};
  if (app.spec.lifecycle.type !== 'docker') return { build };
  if (known.image !== undefined) return { build, image: known.image };
  const source = await cluster.get(kinds.package, space.guid, build.spec.packageRef.name, signal);
  const image = source?.spec.source?.registry.image ?? build.status?.droplet?.registry.image;
  return { build, ...(image === undefined ? {} : { image }) };
}

/** What runs of an app, from elsewhere than its processes' status. */
async function readLive(session: SpaceSession, app: CFApp, known: KnownOfApp): Promise<Live> {
  if (known.withoutUsage === true) return { usage: new Map() };
  const [usage, pods] = await Promise.all([
    readUsage(session, app.metadata.name ?? ''),
    // Whoever has just waited for the controller knows that it is there.
    known.processes === undefined ? readPods(session, app) : undefined,
  ]);
  return { usage, pods };
}

/** One app with everything that `kf app` shows. @param known is not read again */
export async function describeApp(session: SpaceSession, app: CFApp, known: KnownOfApp = {}): Promise<AppDetails> {
  const { cluster, space, signal } = session;
  const guid = app.metadata.name ?? '';
  const options = { ns: space.guid, signal };
  const [processes, routes, { build, image }, live] = await Promise.all([
    known.processes ?? cluster.list(kinds.process, { ...options, labelSelector: `${labels.appGuid}=${guid}` }).then(({ items }) => items),
    known.routes ?? cluster.list(kinds.route, options).then(({ items }) => items),
    readDroplet(session, app, known),
    readLive(session, app, known),
  ]);
  const stack = build?.status?.droplet?.stack ?? app.spec.lifecycle.data.stack;
  const deployment = deploymentDetails(app);
  return {
    name: app.spec.displayName,
    guid,
    state: stateOf(app),
    routes: addressesOf(app, routes),
    lifecycle: app.spec.lifecycle.type,
    ...(build?.metadata.creationTimestamp === undefined ? {} : { lastUploaded: build.metadata.creationTimestamp }),
    ...(stack === '' ? {} : { stack }),
    buildpacks: build?.status?.droplet?.buildpacks ?? [],
    ...(image === undefined ? {} : { dockerImage: image }),
    processes: processesOf(app, processes).map((process) => processDetails(app, process, live, build)),
    ...(deployment === undefined ? {} : { deployment }),
  };
}
