// The live log of many containers as one stream.

import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import { gapEntry } from './entry.ts';
import type { LogEntry } from './entry.ts';
import { LineQueue } from './queue.ts';
import { tailContainer } from './tail.ts';
import { followPods, isFinished, PodBoard, targetsOf } from './targets.ts';
import type { LogTarget, PodScope, SourceRule } from './targets.ts';

export interface FollowOptions extends PodScope {
  signal?: AbortSignal;
  /** The containers to read; default: all of an app's own ones. */
  sources?: SourceRule;
  /** Older lines of containers that already run are left out; a time as lines have it. Later pods are read from their first line. */
  since?: string | undefined;
  /** A container that was silent since then is read from after its last line, whatever the clock of its node says. */
  isNewest?: boolean;
  /** Limit of open streams; default 50. */
  maxStreams?: number;
  /** The stream ends when there was at least one pod and all have ended and are read; otherwise it waits for more. */
  endWithPods?: boolean;
  /** First pause after a lost connection; for tests. */
  pauseMs?: number;
}

export interface LogStream extends AsyncIterable<LogEntry> {
  /** Number of places where lines may be missing; each is also an entry with `gap`. */
  readonly holes: number;
  /** Ends the stream when all known containers have ended and are read, after `graceMs` at the latest. Resolves at the end of the stream. */
  finish(graceMs: number): Promise<void>;
}

/** The watch of the pods may be this far behind another watch. */
const settleMs = 300;

class Follower implements LogStream {
  holes = 0;
  readonly #cluster: Cluster;
  readonly #options: FollowOptions;
  readonly #queue = new LineQueue<LogEntry>();
  readonly #board = new PodBoard();
  readonly #stop = new AbortController();
  /** Every target so far, and those that are still read. */
  readonly #known = new Set<string>();
  readonly #active = new Map<string, Promise<void>>();
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
    const late = setTimeout(() => this.#end(), graceMs);
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

  #end(error?: unknown): void {
    this.#stop.abort();
    this.#queue.end(error);
  }

  #takeTargets(): void {
    const early = !this.#listed;
    this.#listed = true;
    const targets = targetsOf(this.#board.all(), this.#options.sources).filter((target) => !this.#known.has(keyOf(target)));
    const max = this.#options.maxStreams ?? 50;
    const wanted = this.#active.size + targets.length;
    for (const target of targets) this.#take({ ...target, early }, max, wanted);
    this.#endIfOver();
  }

  #take(target: LogTarget, max: number, wanted: number): void {
    this.#known.add(keyOf(target));
    if (this.#active.size >= max) {
      const text = `${String(wanted)} log streams would be open, more than --max-streams ${String(max)} allows`;
      if (target.early) {
        this.#end(new KfError('usage', `${text}.`, { hints: [`--max-streams ${String(wanted)}`] }));
        return;
      }
      void this.#emit(gapEntry(target.source, { reason: `${text}; this container is not followed` }));
      return;
    }
    const tail = tailContainer(target, {
      cluster: this.#cluster,
      ns: this.#options.ns,
      board: this.#board,
      signal: this.#stop.signal,
      since: this.#options.since,
      isNewest: this.#options.isNewest,
      emit: (entry) => this.#emit(entry),
      ...defined({ pauseMs: this.#options.pauseMs }),
    });
    const done = tail.then(
      () => undefined,
      (error: unknown) => this.#end(error),
    );
    this.#active.set(
      keyOf(target),
      done.finally(() => {
        this.#active.delete(keyOf(target));
        this.#endIfOver();
      }),
    );
  }

  #emit(entry: LogEntry): Promise<void> {
    if (entry.gap !== undefined) this.holes++;
    return this.#queue.push(entry);
  }

  #endIfOver(): void {
    if (this.#active.size > 0 || !this.#listed) return;
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
 * not read pods or logs, KfError `usage` when too many streams would be open.
 */
export function followLogs(cluster: Cluster, options: FollowOptions): LogStream {
  return new Follower(cluster, options);
}
