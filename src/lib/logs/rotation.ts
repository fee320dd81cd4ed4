// Finds what a followed log lost when the kubelet began a new file.
//
// The kubelet follows one file. When it has read that file to its end, it continues with the file that is the newest by then: lines that were
// written to the old file last, and whole files in between, are never sent, without a sign in the stream. A request without `follow` begins with
// the first line of the newest file. So a reader asks for that line now and then; where its own lines go past such a first line, a new file
// began, and lines may be missing there.

import { defined } from '../defined.ts';
import type { LogGap } from './entry.ts';

/** The times of lines that are kept, one for each millisecond, to find the place of a file whose beginning becomes known later. */
const mostMarks = 8_192;

/** Lines whose times are kept, to know a line that is served again. */
const mostKnown = 4_096;

/** Beginnings of files and connections that are kept, for the same. */
const mostStarts = 64;

/** Why lines are missing. */
export const rotated = 'log rotated';

export class Rotations {
  #marks: string[] = [];
  /** Marks were dropped: older lines were there. */
  #isCut = false;
  /** The time of the first line that was read. */
  #first: string | undefined;
  #last: string | undefined;
  #start: string | undefined;
  /** The times of lines with which files and connections began. */
  readonly #starts = new Set<string>();
  /** The beginnings of files after the last line, in order. */
  #ahead: string[] = [];
  #gap: LogGap | undefined;
  /** The line before was one that is sent again. */
  #isRepeating = false;
  #known = new Set<string>();
  #older = new Set<string>();

  /** True for a line that this reader has had: the kubelet began a file again. */
  isRepeated(time: string): boolean {
    if (this.#last === undefined || time > this.#last) return false;
    // Two lines in a row may have one time; after older ones it is the last line again.
    if (time === this.#last) return this.#isRepeating;
    this.#isRepeating = this.#isLongAgo(time) || this.#known.has(time) || this.#older.has(time);
    return this.#isRepeating;
  }

  /** A file or a connection begins with this line: what is sent again begins there too. */
  began(time: string): void {
    this.#starts.add(time);
    const [oldest] = this.#starts;
    if (oldest !== undefined && this.#starts.size > mostStarts) this.#starts.delete(oldest);
  }

  /** A line that is as old as one that is sent again, and none with which the kubelet is known to begin: the clock of the node may have been set back. */
  isUnclear(time: string): boolean {
    return !this.#isRepeating && this.#isLongAgo(time) && !this.#starts.has(time);
  }

  /** The clock of the node was set back before the next line: older times are no reason to take a line for one that is sent again. */
  setBack(start: string): void {
    this.began(start);
    this.#start = start;
    this.#marks = [];
    this.#isCut = false;
    this.#first = this.#last = undefined;
  }

  /** Lines of stdout and stderr change places only with near ones. */
  #isLongAgo(time: string): boolean {
    return this.#isCut && time < (this.#marks[0] ?? '');
  }

  /** A newer file is known, and none of its lines was read yet. */
  get isBehind(): boolean {
    return this.#ahead.length > 0;
  }

  /** Before each line. Returns the gap before it. */
  pass(time: string, isAfterGap = false): LogGap | undefined {
    const from = this.#last;
    this.#isRepeating = false;
    this.#first ??= time;
    const crosses = this.#ahead.length > 0 && time >= (this.#ahead[0] ?? '');
    if (crosses) this.#ahead = this.#ahead.filter((start) => start > time);
    if (this.#last === undefined || time > this.#last) this.#last = time;
    this.#remember(time);
    if (from === undefined || !(crosses || isAfterGap)) return undefined;
    this.#gap = { from, to: time, reason: rotated };
    return isAfterGap ? undefined : this.#gap;
  }

  /** The time of the first line of the newest file. Returns the gap before it when lines after it were read already. */
  found(start: string): LogGap | undefined {
    if (start === this.#start) return undefined;
    this.#start = start;
    this.began(start);
    const { from, to } = this.#gap ?? {};
    if (from !== undefined && to !== undefined && start > from && start <= to) return undefined;
    if (this.#last === undefined || start > this.#last) {
      if (this.#last !== undefined) this.#ahead.push(start);
      return undefined;
    }
    // It is the file in which the reading began.
    if (this.#first === undefined || start <= this.#first) return undefined;
    const before = this.#marks.findLast((mark) => mark < start);
    const after = this.#marks.find((mark) => mark >= start) ?? this.#last;
    this.#gap = { ...defined({ from: before }), to: after, reason: rotated };
    return this.#gap;
  }

  #remember(time: string): void {
    const millisecond = 23;
    const last = this.#marks.at(-1);
    if (last === undefined || time.slice(0, millisecond) > last.slice(0, millisecond)) this.#marks.push(time);
    if (this.#marks.length > mostMarks) {
      this.#marks = this.#marks.slice(mostMarks / 2);
      this.#isCut = true;
    }
    this.#known.add(time);
    if (this.#known.size < mostKnown) return;
    this.#older = this.#known;
    this.#known = new Set();
  }
}

/** A file may be full so soon after the start of its container, which is known in whole seconds, rounded down. */
const soonestMs = 2_000 + 999;
/**
 * A line that comes later than that was written after the request. The kubelet accepts a request at once, and asks its runtime for the file before it
 * sends the first line; on a busy node this takes a while.
 */
const presentMs = 500;

/** @param waitedMs how long the reader waited for the line */
export const wasPresent = (waitedMs: number): boolean => waitedMs < presentMs;

/** A file may have been full before this line of a run. */
export const isAfterFullFile = (startedAt: string, time: string): boolean => Date.parse(time) - Date.parse(startedAt) > soonestMs;

/**
 * The gap before the first line that was read of a run. The first file of a run can be full before its reader is there, and nothing in the log says that a
 * file is not the first one. So lines may be missing when the first one that is served was already there, and is not one of the first moments.
 *
 * @param startedAt when the run began; undefined when not known
 * @param waitedMs how long the reader waited for the line
 */
export function gapAtStart(startedAt: string | undefined, time: string, waitedMs: number): LogGap | undefined {
  if (startedAt === undefined || !wasPresent(waitedMs)) return undefined;
  return isAfterFullFile(startedAt, time) ? { to: time, reason: rotated } : undefined;
}

/** Less than this is not a new file: the kubelet rotates by default at 10 MiB. */
const manyBytes = 512 * 1024;

/** Says when a question for the newest file is worth a request. */
export class Traffic {
  #bytes = 0;
  #held = 0;
  #asked = performance.now();

  /** Bytes of lines since the last answered question. */
  get bytes(): number {
    return this.#bytes;
  }

  /** So many lines came since the last answered question that a new file may have begun. */
  get isMuch(): boolean {
    return this.#bytes >= manyBytes;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** A line waits for a slow terminal: files may pass unseen meanwhile. */
  async hold(taken: Promise<void>): Promise<void> {
    this.#held++;
    await taken;
    this.#held--;
  }

  /** True after many lines, while a line waits, and at the latest after `restMs` with any line. */
  isDue(restMs: number): boolean {
    const isRested = this.#bytes > 0 && performance.now() - this.#asked >= restMs;
    return this.isMuch || this.#held > 0 || isRested;
  }

  /** The question that was asked after `bytes` is answered. */
  answered(bytes: number): void {
    this.#bytes -= bytes;
    this.#asked = performance.now();
  }
}
