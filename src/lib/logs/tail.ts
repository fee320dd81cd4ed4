// Follows one container through dropped connections and restarts until its pod has ended or is gone.

import { podType, statusOf, type Pod } from '../api/pod-kind.ts';
import type { ContainerStateTerminated } from '../api/pod.ts';
import type { Cluster } from '../kube/cluster.ts';
import { defined } from '../defined.ts';
import { backoffMs, sleep } from '../wait.ts';
import { gapEntry, noteEntry, timeOf } from './entry.ts';
import type { LogEntry, LogGap } from './entry.ts';
import { LogPosition } from './position.ts';
import { firstTime, gapSince, readLog } from './read.ts';
import type { ReadOutcome } from './read.ts';
import { gapAtStart, Rotations, Traffic, wasPresent } from './rotation.ts';
import { containerLifeOf, goneReason, hasOneLife, isFinished, lostRuns } from './targets.ts';
import type { ContainerLife, LogTarget, PodBoard } from './targets.ts';

export interface TailOptions {
  cluster: Cluster;
  ns: string;
  board: PodBoard;
  signal: AbortSignal;
  /** Lines of a container that ran before the stream began, from that time on; default: all. A time as lines have it. */
  since?: string | undefined;
  /** A container that was silent since then is read from after its last line: the clocks of nodes differ. */
  isNewest?: boolean | undefined;
  /** Resolves when the consumer can take more. */
  emit(entry: LogEntry): Promise<void>;
  /** The kubelet has accepted a request for the log. */
  onAccept?(): void;
  /** A request got no answer, or its connection broke; it is repeated. `isNodeAway`: the API server got no log from the kubelet. */
  onCut?(isNodeAway: boolean): void;
  /** First pause after a lost connection; doubles up to 25 times that. */
  pauseMs?: number;
}

interface Life extends ContainerLife {
  position: LogPosition;
  rotations: Rotations;
  /** The position before the last ended connection. */
  before: LogPosition;
  /** Read to its end after the container had ended. */
  isComplete: boolean;
  /** The last connection found nothing more and ended normally: the kubelet does that only when the container has ended. */
  endedQuietly: boolean;
  /** How the last connection that the kubelet accepted ended; undefined before the first. */
  lastEnd?: ReadOutcome['how'];
  /** That connection left a text without a newline: it is read without `follow` when the container has ended. */
  hasRest: boolean;
}

const maxPreviousTries = 5;

interface ReadHow {
  previous: boolean;
  follow: boolean;
  acceptHole: boolean;
  /** When the run began. */
  startedAt?: string | undefined;
  /** Read only to find the position. */
  silent?: boolean;
  stop?: AbortSignal;
  rotations?: Rotations;
}

/** A time of Kubernetes as lines have it; an unknown one is after all others. */
const nanoseconds = (time: string | null | undefined): string => (typeof time === 'string' ? timeOf(new Date(time)) : '~');

class Tail {
  readonly #target: LogTarget;
  readonly #options: TailOptions;
  #life: Life | undefined;
  #failures = 0;
  /** The life whose last known line was not served at the last try. */
  #suspected: string | undefined;
  readonly #noted = new Set<string>();
  readonly #traffic = new Traffic();
  /** Older lines are left out. */
  #since: string | undefined;

  constructor(target: LogTarget, options: TailOptions) {
    this.#target = target;
    this.#options = options;
    this.#since = target.early ? options.since : undefined;
  }

  async run(): Promise<void> {
    const { board, signal } = this.#options;
    while (!signal.aborted) {
      const pod = board.get(this.#target.uid);
      if (pod === undefined) return this.#leave();
      const seen = containerLifeOf(statusOf(pod, this.#target.container));
      if (seen !== undefined && seen.id !== this.#life?.id) await this.#adopt(seen, pod);
      if (this.#life === undefined || this.#life.isComplete) {
        if (isFinished(pod)) return;
        await board.news(signal);
      } else if (await this.#follow(pod, seen?.isOver === true)) return;
    }
  }

  /**
   * The pod is gone. The kubelet ends a followed log normally when it has read one file to its end after the container ended, even if newer files
   * were there: then lines may be missing after the last one. A life that only the pod's last state has was not read at all.
   */
  async #leave(): Promise<void> {
    const { board, signal } = this.#options;
    const life = this.#life;
    const last = board.lastLife(this.#target.uid, this.#target.container);
    const isUnread = last === 'unknown' ? life === undefined : last !== undefined && last.id !== life?.id;
    if (signal.aborted || (!isUnread && (life === undefined || this.#isWhole(life)))) return;
    const startedAt = last === 'unknown' ? undefined : last?.startedAt;
    await this.#hole(life?.position.last ?? (startedAt && nanoseconds(startedAt)), undefined, goneReason);
  }

  /** Nothing of a life whose pod is gone can be missing. */
  #isWhole({ isComplete, endedQuietly, lastEnd, hasRest, rotations }: Life): boolean {
    return isComplete || endedQuietly || (lastEnd === 'end' && !hasRest && !rotations.isBehind && !this.#traffic.isMuch);
  }

  /** Reads the current life. True when the target has ended. */
  async #follow(pod: Pod, isOver: boolean): Promise<boolean> {
    const { board, signal, pauseMs = 200 } = this.#options;
    const life = this.#life;
    if (life === undefined) return true;
    if (isOver && life.endedQuietly) {
      life.isComplete = true;
      return false;
    }
    if (pod.metadata.deletionTimestamp !== undefined && this.#failures > 0 && (await this.#isGone())) {
      await this.#leave();
      return true;
    }
    life.before = life.position.copy();
    const outcome = await this.#readCurrent(life, isOver);
    if (signal.aborted) return true;
    if (outcome.how !== 'gone') {
      await this.#noteOnce(outcome.message);
      life.lastEnd = outcome.how;
      life.hasRest = outcome.leftRest === true;
    }
    // With one life, one normal end is enough.
    life.endedQuietly = outcome.how === 'end' && outcome.caughtUp && !life.hasRest && (outcome.lines === 0 || hasOneLife(pod));
    life.isComplete = isOver && (await this.#isAllThereIs(outcome, life));
    if (life.isComplete) return false;
    this.#failures = outcome.lines > 0 ? 0 : this.#failures + 1;
    // After a normal end the container has most likely ended: its status follows within about a second and ends the pause.
    const backoff = backoffMs(Math.max(0, this.#failures - 1), { baseMs: pauseMs, maxMs: pauseMs * 25 });
    await board.news(signal, outcome.how === 'end' ? pauseMs * (life.endedQuietly ? 10 : 5) : backoff);
    return false;
  }

  /** One connection to the current log; closed when the container has begun another life and the connection stays open. */
  async #readCurrent(life: Life, isOver: boolean): Promise<ReadOutcome> {
    const { board, pauseMs = 200 } = this.#options;
    const left = new AbortController();
    const ended = new AbortController();
    const watch = async (): Promise<void> => {
      const isOther = (): boolean => {
        const pod = board.get(this.#target.uid);
        return pod !== undefined && containerLifeOf(statusOf(pod, this.#target.container))?.id !== life.id;
      };
      while (!isOther() && !ended.signal.aborted) await board.news(ended.signal);
      // A connection to the old life ends by itself about now. A connection that stays open had reached the new life before its status did.
      await sleep(pauseMs * 5, ended.signal).catch(() => undefined);
      left.abort();
    };
    const watching = Promise.all([watch(), isOver ? undefined : this.#lookForRotations(life, ended.signal)]);
    const acceptHole = this.#suspected === life.id;
    const { position, rotations, startedAt } = life;
    const how = { previous: false, follow: !isOver, acceptHole, startedAt, stop: left.signal, rotations };
    const outcome = await this.#read(position, how);
    ended.abort();
    await watching;
    this.#suspected = outcome.how === 'hole' ? life.id : undefined;
    // Perhaps another life is already served and the pod's status is late: it arrives within about a second.
    if (outcome.how === 'hole' && !acceptHole) await board.news(this.#options.signal, pauseMs * 8);
    return outcome;
  }

  /** While a life is followed: asks for the first line of the newest file, when there was enough traffic for a new one. */
  async #lookForRotations({ rotations }: Life, ended: AbortSignal): Promise<void> {
    const { cluster, ns, pauseMs = 200 } = this.#options;
    const { pod, container } = this.#target;
    while (!ended.aborted) {
      await sleep(pauseMs * 12, ended).catch(() => undefined);
      if (ended.aborted || !this.#traffic.isDue(pauseMs * 150)) continue;
      const { bytes } = this.#traffic;
      const start = await firstTime({ cluster, ns, pod, container, previous: false, signal: ended });
      if (start === undefined) continue;
      this.#traffic.answered(bytes);
      const gap = rotations.found(start);
      if (gap !== undefined) await this.#gap(gap);
    }
  }

  /** For a life that has ended: true when nothing more will come of it. */
  async #isAllThereIs({ how, caughtUp }: ReadOutcome, life: Life): Promise<boolean> {
    if (how === 'cut' || how === 'gone' || how === 'hole') return false;
    if (how === 'end' && caughtUp) return true;
    if (this.#failures < 3) return false;
    // The kubelet cannot serve the rest: the log was removed or rotated.
    await this.#hole(life.position.last, undefined, 'the rest cannot be read');
    return true;
  }

  /** Changes to a new life of the container, after the rest of the previous one. */
  async #adopt(seen: ContainerLife, pod: Pod): Promise<void> {
    const old = this.#life;
    let position = new LogPosition();
    const terminated = statusOf(pod, this.#target.container)?.lastState?.terminated;
    const previousIs = (id: string): boolean => terminated?.containerID === id;
    if (old === undefined) {
      // It died before it was seen, so its lines come first.
      if (seen.restarts > 0) await this.#earlierRuns(seen, terminated);
    } else {
      if (!old.isComplete && previousIs(old.id)) position = await this.#finishPrevious(old);
      else if (!old.isComplete && !old.endedQuietly) await this.#hole(old.position.last, undefined, 'the container restarted');
      if (!previousIs(old.id)) await this.#missedLives(seen.restarts - old.restarts - 1, old.position.last);
    }
    this.#failures = 0;
    this.#life = {
      ...seen,
      position,
      rotations: new Rotations(),
      before: new LogPosition(),
      isComplete: false,
      endedQuietly: false,
      hasRest: false,
    };
    if (old === undefined) await this.#skipOldLines(position);
  }

  /** The newest lines: finds the present last line, and begins after it when it is older than those. */
  async #skipOldLines(position: LogPosition): Promise<void> {
    if (this.#since === undefined || this.#options.isNewest !== true) return;
    const last = new LogPosition();
    await this.#read(last, { previous: false, follow: false, acceptHole: true, silent: true });
    if (last.last === undefined || last.last >= this.#since) return;
    this.#since = undefined;
    position.beginAfter(last);
  }

  /**
   * Reads the rest of a life that has ended. If the last known line is not in it, the connection had reached the new life before its status did;
   * then the rest is read from the start of that connection, and the position continues in the new life.
   */
  async #finishPrevious(old: Life): Promise<LogPosition> {
    const first = old.position.copy();
    const outcome = await this.#readPrevious(first, old.endedQuietly);
    if (outcome.caughtUp || old.position.isFresh) return new LogPosition();
    await this.#readPrevious(old.before.copy());
    return old.position;
  }

  /** Repeated, because a kubelet that is busy with the restart refuses for a moment. */
  async #readPrevious(position: LogPosition, isProbablyRead = false): Promise<ReadOutcome> {
    const { board, signal, pauseMs = 200 } = this.#options;
    for (let tries = 1; ; tries++) {
      const outcome = await this.#read(position, { previous: true, follow: false, acceptHole: true, startedAt: this.#startOfPrevious() });
      if (outcome.how === 'end' || signal.aborted) return outcome;
      if (outcome.how === 'gone' || tries === maxPreviousTries || isProbablyRead) {
        if (!isProbablyRead) await this.#noteOnce(outcome.message);
        if (!isProbablyRead) await this.#hole(position.last, undefined, 'the run before the restart cannot be read');
        return { ...outcome, caughtUp: true };
      }
      await board.news(signal, backoffMs(tries - 1, { baseMs: pauseMs }));
    }
  }

  #startOfPrevious(): string | undefined {
    const pod = this.#options.board.get(this.#target.uid);
    const status = pod === undefined ? undefined : statusOf(pod, this.#target.container);
    return status?.lastState?.terminated?.startedAt ?? undefined;
  }

  /** The runs of a container before the first one that is followed: only the last of them can still be read. */
  async #earlierRuns({ id, restarts }: ContainerLife, last: ContainerStateTerminated | undefined): Promise<void> {
    const since = this.#since ?? '';
    const isCurrent = last?.containerID === id;
    const lost = isCurrent ? restarts : restarts - 1;
    const to = typeof last?.startedAt === 'string' ? nanoseconds(last.startedAt) : undefined;
    if (lost > 0 && (to ?? '~') > since) await this.#hole(undefined, to, lostRuns(lost));
    if (!isCurrent && nanoseconds(last?.finishedAt) >= since) await this.#readPrevious(new LogPosition());
  }

  /** Lives that began and ended unseen: only the last of them can still be read. */
  async #missedLives(count: number, after: string | undefined): Promise<void> {
    if (count < 1) return;
    if (count > 1) await this.#hole(after, undefined, lostRuns(count - 1));
    await this.#readPrevious(new LogPosition());
  }

  async #read(position: LogPosition, how: ReadHow): Promise<ReadOutcome> {
    const { cluster, ns, onAccept, onCut } = this.#options;
    const { pod, container, source } = this.#target;
    const since = this.#since;
    const signal = how.stop === undefined ? this.#options.signal : AbortSignal.any([this.#options.signal, how.stop]);
    const outcome = await readLog(
      {
        cluster,
        ns,
        pod,
        container,
        previous: how.previous,
        follow: how.follow,
        ...(how.silent === true ? { tailLines: 1 } : { since }),
        acceptHole: how.acceptHole,
        signal,
        ...defined({ onAccept }),
        onBegin: async (time, waitedMs) => {
          if (how.silent === true || source.type !== 'APP') return;
          const gap = await this.#gapBefore(time, waitedMs, how);
          if (gap !== undefined) await this.#gap(gap);
        },
        onLine: ({ time, text }) => {
          if (how.silent === true || (since !== undefined && time < since)) return;
          this.#traffic.add(text.length + time.length);
          return this.#traffic.hold(this.#options.emit({ time, source, stream: 'OUT', text }));
        },
        onHole: (gap) => this.#gap(gap),
        rotations: how.rotations,
      },
      position,
    );
    if (outcome.how === 'cut' && !signal.aborted) onCut?.(outcome.isNodeAway === true);
    return outcome;
  }

  /** The gap before the first line of a run that is read. */
  async #gapBefore(time: string, waitedMs: number, { startedAt, previous }: ReadHow): Promise<LogGap | undefined> {
    const since = this.#since;
    if (since === undefined || startedAt === undefined || nanoseconds(startedAt) >= since) return gapAtStart(startedAt, time, waitedMs);
    // It ran before: older lines are left out on purpose, and of the newest ones it is enough that they are the newest.
    if (this.#options.isNewest === true || !wasPresent(waitedMs)) return undefined;
    const { cluster, ns, signal } = this.#options;
    const { pod, container } = this.#target;
    return gapSince({ cluster, ns, pod, container, previous, signal }, since, startedAt, time);
  }

  /** A pod of a StatefulSet comes back under the same name, so the served log may be another pod's. While the API server cannot say, it is there. */
  async #isGone(): Promise<boolean> {
    const { cluster, ns, signal } = this.#options;
    try {
      const now = await cluster.get(podType, ns, this.#target.pod, signal);
      return now?.metadata.uid !== this.#target.uid;
    } catch {
      return false;
    }
  }

  #hole(from: string | undefined, to: string | undefined, reason: string): Promise<void> {
    return this.#gap({ ...defined({ from, to }), reason });
  }

  #gap(gap: LogGap): Promise<void> {
    return this.#options.emit(gapEntry(this.#target.source, gap));
  }

  async #noteOnce(message: string | undefined): Promise<void> {
    if (message === undefined || this.#noted.has(message)) return;
    this.#noted.add(message);
    await this.#note(message);
  }

  #note(text: string): Promise<void> {
    return this.#options.emit(noteEntry(text, { pod: this.#target.pod, container: this.#target.container }));
  }
}

/**
 * Emits every line of one container, in order, until its pod has ended or is gone, or the signal aborts. Throws KubeError when the user may not
 * read logs.
 */
export function tailContainer(target: LogTarget, options: TailOptions): Promise<void> {
  return new Tail(target, options).run();
}
