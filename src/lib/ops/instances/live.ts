// The present instances of an app: the controller's status, extended with data of their pods and measurements.

import { desiredInstances, instanceCountsOf, instancesOf, type IndexedInstance } from '../../api/app.ts';
import { labels } from '../../api/group.ts';
import { sidecarOf } from '../../api/names.ts';
import { computedResource, type KubeObject } from '../../api/object.ts';
import type { Pod } from '../../api/pod-kind.ts';
import type { ContainerStatus } from '../../api/pod.ts';
import type { Stored } from '../../api/object.ts';
import type { InstanceDetails, LastEnd, VersionInstances } from '../../api/results.ts';
import { parseQuantity } from '../../api/sizes.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { podsByVersion, readPods, withPods } from './pods.ts';
import { defined } from '../../defined.ts';

interface PodMetrics extends KubeObject {
  containers?: { name: string; usage?: { cpu?: string; memory?: string } }[];
}

const appContainer = 'application';
const podMetrics = computedResource<PodMetrics>('metrics.k8s.io', 'v1beta1', 'PodMetrics', 'pods');
const states = { RUNNING: 'running', STARTING: 'starting', CRASHED: 'crashed', DOWN: 'down' } as const;

/** Usage by pod; empty when the cluster measures nothing or the user may not read it. */
async function readUsage({ cluster, space, signal }: SpaceSession, appGuid: string): Promise<Map<string, PodMetrics>> {
  try {
    const { items } = await cluster.list(podMetrics, { ns: space.guid, labelSelector: `${labels.appGuid}=${appGuid}`, signal });
    return new Map(items.map((item) => [item.metadata.name, item]));
  } catch (error) {
    if (error instanceof KfError && error.code !== 'interrupted') return new Map();
    throw error;
  }
}

/** What the app and its sidecars use together; undefined when nothing of it is measured. */
function usageOf(metrics: PodMetrics | undefined): Pick<InstanceDetails, 'cpu' | 'memoryBytes'> {
  const own = (metrics?.containers ?? []).filter(({ name }) => name === appContainer || sidecarOf(name) !== undefined);
  const sum = (what: 'cpu' | 'memory'): number | undefined => {
    const measured = own.flatMap(({ usage }) => parseQuantity(usage?.[what]) ?? []);
    return measured.length === 0 ? undefined : measured.reduce((total, one) => total + one, 0);
  };
  return defined({ cpu: sum('cpu'), memoryBytes: sum('memory') });
}

function appStatusOf(pod: Stored<Pod> | undefined): ContainerStatus | undefined {
  return pod?.status?.containerStatuses?.find(({ name }) => name === appContainer);
}

function megabytes(quantity: string | undefined): number | undefined {
  const bytes = parseQuantity(quantity);
  return bytes === undefined ? undefined : Math.round(bytes / 1024 ** 2);
}

/** The limits of a pod; they do not change during its life. Its memory is that of the app and its sidecars, as the memory of a process is. */
function sizesOf(pod: Stored<Pod> | undefined): Pick<InstanceDetails, 'memoryMB' | 'diskMB'> {
  const limits = pod?.spec?.containers.find(({ name }) => name === appContainer)?.resources?.limits ?? {};
  const own = megabytes(limits['memory']);
  const sidecars = (pod?.spec?.initContainers ?? []).filter(({ name }) => sidecarOf(name) !== undefined);
  const beside = sidecars.reduce((sum, { resources }) => sum + (megabytes(resources?.limits?.['memory']) ?? 0), 0);
  return defined({ memoryMB: own === undefined ? undefined : own + beside, diskMB: megabytes(limits['ephemeral-storage']) });
}

/** How the app's container last ended; undefined when it never did. */
function lastEndOf(status: ContainerStatus | undefined): LastEnd | undefined {
  const ended = status?.state?.terminated ?? status?.lastState?.terminated;
  if (ended === undefined) return undefined;
  const { exitCode, reason, finishedAt: at } = ended;
  return { exitCode, ...defined({ reason, at: at ?? undefined }) };
}

export class LiveInstances {
  readonly #app: Stored<CFApp>;
  readonly #usage: ReadonlyMap<string, PodMetrics>;
  /** Undefined when the pods were not requested, or when this user may not read them. */
  readonly #pods: readonly Stored<Pod>[] | undefined;

  private constructor(app: Stored<CFApp>, usage: ReadonlyMap<string, PodMetrics>, pods: readonly Stored<Pod>[] | undefined) {
    this.#app = app;
    this.#usage = usage;
    this.#pods = pods;
  }

  /** Only the instances in the controller's status: needs no request. */
  static told(app: Stored<CFApp>): LiveInstances {
    return new LiveInstances(app, new Map(), undefined);
  }

  /** Adds the usage and, with `withPods`, the existing pods, so that the result is right even while no controller runs. */
  static async read(session: SpaceSession, app: Stored<CFApp>, { withPods: asksPods }: { withPods: boolean }): Promise<LiveInstances> {
    const [usage, pods] = await Promise.all([readUsage(session, app.metadata.name), asksPods ? readPods(session, app) : undefined]);
    return new LiveInstances(app, usage, pods);
  }

  /** The instances of a process, by index. Ending instances of a stopped app are not listed. */
  of(process: Stored<CFProcess>): InstanceDetails[] {
    if (this.#app.spec.desiredState !== 'STARTED') return [];
    const told = instancesOf(this.#app, process);
    const byName = new Map((this.#pods ?? []).map((pod) => [pod.metadata.name, pod]));
    const there = this.#pods === undefined ? told : withPods(told, process, this.#pods, desiredInstances(process));
    return there.map((instance) => this.#describe(instance, byName.get(instance.pod ?? '')));
  }

  /** The instances of each version, the oldest version first; empty if there are not several, or if the pods are not known. */
  versions(process: Stored<CFProcess>): VersionInstances[] {
    const versions = podsByVersion(process, this.#pods ?? []);
    if (versions.length < 2 || this.#app.spec.desiredState !== 'STARTED') return [];
    const told = instancesOf(this.#app, process);
    return versions.map((pods) => {
      const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
      const there = withPods(
        told.filter(({ pod }) => byName.has(pod ?? '')),
        process,
        pods,
        0,
      );
      const instanceDetails = there.map((instance) => this.#describe(instance, byName.get(instance.pod ?? '')));
      const running = instanceDetails.filter(({ state }) => state === 'running').length;
      return { running, instances: instanceDetails.length, instanceDetails };
    });
  }

  /** Number of running instances of a process. The list of pods is complete; a status lists only the first instances, but counts all. */
  running(process: Stored<CFProcess>): number {
    if (this.#pods === undefined) return instanceCountsOf(process).running;
    return this.of(process).filter(({ state }) => state === 'running').length;
  }

  #describe(instance: IndexedInstance, pod: Stored<Pod> | undefined): InstanceDetails {
    const status = appStatusOf(pod);
    return {
      index: instance.index,
      state: states[instance.state],
      ...sizesOf(pod),
      ...usageOf(this.#usage.get(instance.pod ?? '')),
      ...defined({
        since: instance.timestamp,
        ready: instance.ready ?? (instance.state === 'RUNNING' ? true : undefined),
        // The pod is more up to date than the status.
        restarts: status?.restartCount ?? instance.restarts,
        lastEnd: lastEndOf(status),
        details: instance.details,
        pod: instance.pod,
      }),
    };
  }
}
