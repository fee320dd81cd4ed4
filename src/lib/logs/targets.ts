// The pods and containers of a stream: a label selector's pods, followed live.

import type { Pod } from '../api/pod-kind.ts';
import type { Stored } from '../api/object.ts';
import type { ContainerStateTerminated, ContainerStatus } from '../api/pod.ts';
import { podType, statusOf } from '../api/pod-kind.ts';
import { defined } from '../defined.ts';
import type { Cluster } from '../kube/cluster.ts';
import { watchUntil } from '../kube/watch-list.ts';
import { sourceOf } from './entry.ts';
import type { LogSource } from './entry.ts';

/** Selects containers and gives the source of their lines; undefined leaves one out. */
export type SourceRule = (pod: Stored<Pod>, container: string) => LogSource | undefined;

export interface LogTarget {
  uid: string;
  pod: string;
  container: string;
  source: LogSource;
  /** Seen when the stream began: its log may be older than the stream. */
  early: boolean;
}

/** One life (run) of a container: it gets a new id at every restart. */
export interface ContainerLife {
  id: string;
  restarts: number;
  isOver: boolean;
  /** When it began, in whole seconds of the node's clock. */
  startedAt?: string;
}

export function containersOf(pod: Pod): string[] {
  return [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].map(({ name }) => name);
}

/** When a run that has ended began. */
function startOf(status: ContainerStatus | undefined, id: string): string | undefined {
  const ended = [status?.state?.terminated, status?.lastState?.terminated];
  return ended.find((run) => run?.containerID === id)?.startedAt ?? undefined;
}

/** The life whose log the kubelet serves as the current one; undefined before the first start. */
export function containerLifeOf(status: ContainerStatus | undefined): ContainerLife | undefined {
  // During the back-off before a restart, the last life is in lastState, and the kubelet still serves it as the current log.
  const id = [status?.containerID, status?.state?.terminated?.containerID, status?.lastState?.terminated?.containerID].find(
    (text) => (text ?? '') !== '',
  );
  if (status === undefined || id === undefined) return undefined;
  const { running } = status.state ?? {};
  const startedAt = running?.startedAt ?? startOf(status, id);
  return { id, restarts: status.restartCount, isOver: running === undefined, ...defined({ startedAt }) };
}

/** By the pod's status, the run before the present one is no longer `run`. False while one of the two is not known. */
export function isPastPrevious(pod: Pod | undefined, container: string, run: ContainerStateTerminated | undefined): boolean {
  const now = (pod && statusOf(pod, container))?.lastState?.terminated?.containerID ?? '';
  const { containerID = '' } = run ?? {};
  return now !== '' && containerID !== '' && now !== containerID;
}

/** Why the lines of these runs are missing: the kubelet keeps the log of the present run and of the one before. */
export const lostRuns = (count: number): string => `${String(count)} earlier ${count === 1 ? 'run is' : 'runs are'} no longer kept`;

/** Why lines of a pod that was deleted may be missing. */
export const goneReason = 'the instance is gone';

/** A pod without restarts has only one life (run) of each container. */
export const hasOneLife = (pod: Pod): boolean => pod.spec?.restartPolicy === 'Never';

/** No container of the pod will run again. */
export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** The pods of a selector as the API server last reported them, for any number of readers. */
export class PodBoard {
  #pods = new Map<string, Stored<Pod>>();
  /** The last life of each container of a deleted pod, by uid and name. */
  readonly #lastLives = new Map<string, ContainerLife | undefined>();
  #waiting = new Set<() => void>();

  /** @param deleted a pod that is not there any more, as it was last */
  set(pods: readonly Stored<Pod>[], deleted?: Stored<Pod>): void {
    this.#pods = new Map(pods.map((pod) => [pod.metadata.uid, pod]));
    if (deleted !== undefined)
      for (const name of containersOf(deleted))
        this.#lastLives.set(`${deleted.metadata.uid}/${name}`, containerLifeOf(statusOf(deleted, name)));
    this.wake();
  }

  /** The last life of a container, also of a pod that is gone; undefined when it never started. */
  lastLife(uid: string, container: string): ContainerLife | undefined | 'unknown' {
    const pod = this.#pods.get(uid);
    if (pod !== undefined) return containerLifeOf(statusOf(pod, container));
    const key = `${uid}/${container}`;
    return this.#lastLives.has(key) ? this.#lastLives.get(key) : 'unknown';
  }

  all(): Stored<Pod>[] {
    return [...this.#pods.values()];
  }

  get(uid: string): Stored<Pod> | undefined {
    return this.#pods.get(uid);
  }

  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resume of waiting) resume();
  }

  /** Resolves at the next change, after `ms` at the latest, and when the signal aborts. Never rejects. */
  news(signal: AbortSignal, ms = Infinity): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
        return;
      }
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = ms === Infinity ? undefined : setTimeout(done, ms);
      this.#waiting.add(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

export interface PodScope {
  ns: string;
  selector: string;
  /** None of the pods exists yet, so the first list is left out. */
  withoutList?: boolean;
}

/** Updates the board until the signal aborts (then resolves). Throws KubeError when the API server refuses. */
export async function followPods(
  cluster: Cluster,
  scope: PodScope,
  board: PodBoard,
  signal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  try {
    await watchUntil<Pod, never>(
      cluster,
      podType,
      { ns: scope.ns, selector: scope.selector, ...(scope.withoutList === true ? { withoutList: true } : {}) },
      (pods, deleted) => {
        board.set(pods, deleted);
        onChange();
        return undefined;
      },
      { signal, timeoutMs: Infinity, describe: 'pods' },
    );
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Every container of the board that has a source. */
export function targetsOf(pods: readonly Stored<Pod>[], rule: SourceRule = sourceOf): Omit<LogTarget, 'early'>[] {
  return pods.flatMap((pod) =>
    containersOf(pod).flatMap((container) => {
      const source = rule(pod, container);
      return source === undefined ? [] : [{ uid: pod.metadata.uid, pod: pod.metadata.name, container, source }];
    }),
  );
}
