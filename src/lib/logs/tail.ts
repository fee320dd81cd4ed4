// Follows one container through dropped connections and restarts until its pod has ended or is gone.

import { podType, statusOf, type Pod } from '../api/pod-kind.ts';
import type { ContainerStateTerminated } from '../api/pod.ts';
import type { Cluster } from '../kube/cluster.ts';
import { defined } from '../defined.ts';
import { backoffMs, sleep } from '../wait.ts';
import { gapEntry, noteEntry, timeOf } from './entry.ts';
import type { LogEntry, LogGap, LogSource } from './entry.ts';
import { lifeFrom, unreadRest, type Life } from './life.ts';
import { LogPosition } from './position.ts';
import { firstTime, gapSince, readLog } from './read.ts';
import type { ReadOutcome } from './read.ts';
import { gapAtStart, Traffic, wasPresent, type Rotations } from './rotation.ts';
import { containerLifeOf, goneReason, hasOneLife, isFinished, isPastPrevious, lostRuns } from './targets.ts';
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

/** A log that was served to its end does not have the last known line. */
const isWithoutLast = ({ how, caughtUp }: ReadOutcome): boolean => how === 'end' && !caughtUp;

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

  rest(): LogGap | undefined {
    return unreadRest(this.#options.board.lastLife(this.#target.uid, this.#target.container), this.#life);
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
      if (!old.isComplete && previousIs(old.id)) position = await this.#finishPrevious(old, terminated);
      else if (!old.isComplete && !old.endedQuietly) await this.#hole(old.position.last, undefined, 'the container restarted');
      if (!previousIs(old.id)) await this.#missedLives(seen, old, terminated);
    }
    this.#failures = 0;
    this.#life = lifeFrom(seen, position);
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
  async #finishPrevious(old: Life, run: ContainerStateTerminated | undefined): Promise<LogPosition> {
    const first = old.position.copy();
    const outcome = await this.#readPrevious(first, run, old.endedQuietly);
    if (outcome.caughtUp || old.position.isFresh) return new LogPosition();
    await this.#readPrevious(old.before.copy(), run);
    return old.position;
  }

  /**
   * Repeated, because a kubelet that is busy with the restart refuses for a moment.
   * @param run the one to read: the kubelet serves the log of the next one as soon as that has ended too
   */
  async #readPrevious(position: LogPosition, run: ContainerStateTerminated | undefined, isProbablyRead = false): Promise<ReadOutcome> {
    const { board, signal, pauseMs = 200 } = this.#options;
    const startedAt = run?.startedAt ?? undefined;
    let tries = 0;
    let hasRead = false;
    for (;;) {
      const isPast = !signal.aborted && isPastPrevious(board.get(this.#target.uid), this.#target.container, run);
      // The file of a run that has ended stays as it is: where lines of it were read, a later gap shows another run.
      const how = { previous: true, follow: false, acceptHole: !hasRead, startedAt };
      const outcome: ReadOutcome = isPast ? { how: 'gone', lines: 0, caughtUp: true } : await this.#read(position, how);
      const isOther = outcome.how === 'hole' || (hasRead && isWithoutLast(outcome));
      if (signal.aborted || (outcome.how === 'end' && !isOther)) return outcome;
      hasRead ||= outcome.lines > 0;
      tries = outcome.lines > 0 ? 1 : tries + 1;
      if (isOther || outcome.how === 'gone' || tries === maxPreviousTries || isProbablyRead) {
        if (!isProbablyRead) await this.#losePrevious(position.last, outcome.message);
        return { ...outcome, caughtUp: true };
      }
      await board.news(signal, backoffMs(tries - 1, { baseMs: pauseMs }));
    }
  }

  async #losePrevious(last: string | undefined, message: string | undefined): Promise<void> {
    await this.#noteOnce(message);
    await this.#hole(last, undefined, 'the run before the restart cannot be read');
  }

  /** The runs of a container before the first one that is followed: only the last of them can still be read. */
  async #earlierRuns({ id, restarts }: ContainerLife, last: ContainerStateTerminated | undefined): Promise<void> {
    const since = this.#since ?? '';
    const isCurrent = last?.containerID === id;
    const lost = isCurrent ? restarts : restarts - 1;
    const to = typeof last?.startedAt === 'string' ? nanoseconds(last.startedAt) : undefined;
    if (lost > 0 && (to ?? '~') > since) await this.#hole(undefined, to, lostRuns(lost));
    if (!isCurrent && nanoseconds(last?.finishedAt) >= since) await this.#readPrevious(new LogPosition(), last);
  }

  /** Lives that began and ended unseen before `seen`: only the last of them can still be read, and not in the back-off before a restart. */
  async #missedLives(seen: ContainerLife, old: Life, last: ContainerStateTerminated | undefined): Promise<void> {
    const count = seen.restarts - old.restarts - 1;
    if (count < 1) return;
    const lost = last?.containerID === seen.id ? count : count - 1;
    if (lost > 0) await this.#hole(old.position.last, undefined, lostRuns(lost));
    if (count > lost) await this.#readPrevious(new LogPosition(), last);
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

export interface ContainerTail {
  source: LogSource;
  /** Settles when the pod has ended or is gone, or the signal aborts. Rejects with a KubeError when the user may not read logs. */
  done: Promise<void>;
  /** The gap after the last line if the reading ends now: the container has ended, and was not read to its end. */
  rest(): LogGap | undefined;
}

/** Emits every line of one container, in order. */
export function tailContainer(target: LogTarget, options: TailOptions): ContainerTail {
  const tail = new Tail(target, options);
  return { source: target.source, done: tail.run(), rest: () => tail.rest() };
}
