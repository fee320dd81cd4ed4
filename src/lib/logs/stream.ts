// The live log of many containers as one stream.

import { defined } from '../defined.ts';
import type { Cluster } from '../kube/cluster.ts';
import { gapEntry, timeOf } from './entry.ts';
import type { LogEntry, LogSource } from './entry.ts';
import { unreadRest } from './life.ts';
import { LineQueue } from './queue.ts';
import { tailContainer, type ContainerTail } from './tail.ts';
import { followPods, goneReason, isFinished, PodBoard, targetsOf } from './targets.ts';
import type { LogTarget, PodScope, SourceRule } from './targets.ts';

export interface FollowOptions extends PodScope {
  signal?: AbortSignal;
  /** The containers to read; default: all of an app's own ones. */
  sources?: SourceRule;
  /** Older lines of containers that already run are left out; a time as lines have it. Later pods are read from their first line. */
  since?: string | undefined;
  /** A container that was silent since then is read from after its last line, whatever the clock of its node says. */
  isNewest?: boolean;
  /** Live containers that are followed at a time; default 500. Others wait until one has ended, or its node does not answer. */
  maxStreams?: number;
  /** Called once, with the live containers that wait when the first one has to. */
  onWait?: (sources: readonly LogSource[], maxStreams: number) => void;
  /** The stream ends when there was at least one pod and all have ended and are read; otherwise it waits for more. */
  endWithPods?: boolean;
  /** First pause after a lost connection; for tests. */
  pauseMs?: number;
}

export interface LogStream extends AsyncIterable<LogEntry> {
  /** Number of places where lines may be missing; each is also an entry with `gap`. */
  readonly holes: number;
  /**
   * Ends the stream when all known containers have ended and are read, after `graceMs` at the latest. One that has ended and is not read by then has a gap.
   * Resolves at the end of the stream.
   */
  finish(graceMs: number): Promise<void>;
}

/** The watch of the pods may be this far behind another watch. */
const settleMs = 300;

/** Each is one connection. The API server does not limit those of a client. */
const mostFollowed = 500;
/** The containers of finished pods that are read at a time; the kubelet reads each log from disk. */
const mostReadOnce = 8;

interface WaitingTarget extends LogTarget {
  /** It was live, and there was no free place. */
  waited?: boolean;
}

class Follower implements LogStream {
  holes = 0;
  readonly #cluster: Cluster;
  readonly #options: FollowOptions;
  readonly #queue = new LineQueue<LogEntry>();
  readonly #board = new PodBoard();
  readonly #stop = new AbortController();
  /** Every target so far, those that are not read yet, and those that have a place. */
  readonly #known = new Set<string>();
  readonly #waiting = new Map<string, WaitingTarget>();
  readonly #live = new Set<string>();
  readonly #finished = new Set<string>();
  /** Targets that are read, also those that try again without a place. */
  readonly #tails = new Map<string, ContainerTail>();
  #toldOfWaiting = false;
  #isFinishing = false;
  #isSettled = false;
  /** The first list has arrived: later pods are new. */
  #listed = false;
  #begun = false;

  constructor(cluster: Cluster, options: FollowOptions) {
    this.#cluster = cluster;
    this.#options = options;
    if (options.signal?.aborted === true) this.#end();
    else options.signal?.addEventListener('abort', () => this.#end(), { once: true });
  }

  async *[Symbol.asyncIterator](): AsyncIterator<LogEntry> {
    this.#begin();
    try {
      yield* this.#queue.read();
    } finally {
      this.#end();
    }
  }

  async finish(graceMs: number): Promise<void> {
    this.#begin();
    this.#isFinishing = true;
    // The caller may know the awaited event before this watch has seen its pod.
    const settled = setTimeout(
      () => {
        this.#isSettled = true;
        this.#endIfOver();
      },
      Math.min(settleMs, graceMs),
    );
    const late = setTimeout(() => this.#giveUp(), graceMs);
    await new Promise<void>((resolve) => {
      if (this.#stop.signal.aborted) resolve();
      else this.#stop.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    clearTimeout(settled);
    clearTimeout(late);
  }

  #begin(): void {
    if (this.#begun || this.#stop.signal.aborted) return;
    this.#begun = true;
    this.#listed = this.#options.withoutList === true;
    followPods(this.#cluster, this.#options, this.#board, this.#stop.signal, () => this.#takeTargets()).catch((error: unknown) =>
      this.#end(error),
    );
  }

  /** Ends, with a gap for each container that has ended and was not read to its end. */
  #giveUp(): void {
    const waiting = [...this.#waiting.values()].map(({ uid, container, source }) => {
      return { source, rest: () => unreadRest(this.#board.lastLife(uid, container)) };
    });
    for (const { source, rest } of [...waiting, ...this.#tails.values()]) {
      const gap = rest();
      if (gap !== undefined) void this.#emit(gapEntry(source, gap));
    }
    this.#end();
  }

  #end(error?: unknown): void {
    this.#stop.abort();
    this.#queue.end(error);
  }

  #takeTargets(): void {
    const early = !this.#listed;
    this.#listed = true;
    for (const target of targetsOf(this.#board.all(), this.#options.sources)) {
      const key = keyOf(target);
      if (!this.#known.has(key)) this.#waiting.set(key, { ...target, early });
      this.#known.add(key);
    }
    this.#startWaiting();
    this.#endIfOver();
  }

  /** Starts to read what waits, in the order in which it came, as far as there is a free place. */
  #startWaiting(): void {
    if (this.#stop.signal.aborted) return;
    const { maxStreams = mostFollowed, onWait } = this.#options;
    const stillWait: LogSource[] = [];
    for (const [key, target] of this.#waiting) {
      const pod = this.#board.get(target.uid);
      const [active, most] = pod !== undefined && isFinished(pod) ? [this.#finished, mostReadOnce] : [this.#live, maxStreams];
      if (pod === undefined) {
        this.#waiting.delete(key);
        this.#tellOfUnread(target);
      } else if (active.size < most) {
        this.#waiting.delete(key);
        this.#read(target, active);
      } else if (active === this.#live) {
        target.waited = true;
        stillWait.push(target.source);
      }
    }
    if (stillWait.length === 0 || this.#toldOfWaiting) return;
    this.#toldOfWaiting = true;
    onWait?.(stillWait, maxStreams);
  }

  /** The pod of a target went before its turn: a gap, unless it never started. */
  #tellOfUnread({ uid, container, source }: WaitingTarget): void {
    const life = this.#board.lastLife(uid, container);
    if (life === undefined) return;
    const startedAt = life === 'unknown' ? undefined : life.startedAt;
    const from = startedAt === undefined ? undefined : timeOf(new Date(startedAt));
    void this.#emit(gapEntry(source, { reason: goneReason, ...defined({ from }) }));
  }

  #read(target: WaitingTarget, active: Set<string>): void {
    const key = keyOf(target);
    active.add(key);
    const tail = tailContainer(target, {
      cluster: this.#cluster,
      ns: this.#options.ns,
      board: this.#board,
      signal: this.#stop.signal,
      since: this.#options.since,
      // Of one that waited, more than the newest lines are wanted.
      isNewest: this.#options.isNewest === true && target.waited !== true,
      emit: (entry) => this.#emit(entry),
      // Its node answers again: it counts, even if its place has been given to another one.
      onAccept: () => void active.add(key),
      // It tries again without a place, which others would wait for until its node answers. A restart of the API server breaks all
      // connections at once, and live ones soon follow again.
      onCut: (isNodeAway) => {
        if (active === this.#live && !isNodeAway) return;
        active.delete(key);
        this.#startWaiting();
      },
      ...defined({ pauseMs: this.#options.pauseMs }),
    });
    this.#tails.set(key, tail);
    void tail.done
      .catch((error: unknown) => this.#end(error))
      .finally(() => {
        active.delete(key);
        this.#tails.delete(key);
        this.#startWaiting();
        this.#endIfOver();
      });
  }

  #emit(entry: LogEntry): Promise<void> {
    if (entry.gap !== undefined) this.holes++;
    return this.#queue.push(entry);
  }

  #endIfOver(): void {
    if (this.#tails.size > 0 || !this.#listed) return;
    const podsAreOver = this.#known.size > 0 && this.#board.all().every(isFinished);
    if ((this.#isFinishing && this.#isSettled) || (this.#options.endWithPods === true && podsAreOver)) this.#end();
  }
}

function keyOf({ uid, container }: { uid: string; container: string }): string {
  return `${uid}/${container}`;
}

/**
 * Streams the lines of all containers of a selector's pods, including later pods, until the signal aborts, the reader leaves the loop or `finish`
 * is called. Lines of one container keep their order. No request is sent before the first read. The iteration throws KubeError when the user may
 * not read pods or logs.
 */
export function followLogs(cluster: Cluster, options: FollowOptions): LogStream {
  return new Follower(cluster, options);
}
