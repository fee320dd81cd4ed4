// One request for one container's log: the lines from a position on, and how the request ended.

import { defined } from '../defined.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isForbidden, isUnreachable, KubeError } from '../kube/errors.ts';
import { isKubeletNote, linesFrom } from '../kube/lines.ts';
import type { LogGap } from './entry.ts';
import { parseStamped } from './position.ts';
import type { LogPosition, StampedLine } from './position.ts';
import { isAfterFullFile, rotated, type Rotations } from './rotation.ts';

/** An app that moves its cursor back instead of ending its lines would fill the memory. */
const longestLine = 256 * 1024;
const cutMark = ` [cut by kf: the line is longer than ${String(longestLine / 1024)} KiB]`;

export interface ReadRequest {
  cluster: Cluster;
  ns: string;
  pod: string;
  container: string;
  previous: boolean;
  follow: boolean;
  /** The start for a new position: a time as lines have it, of which whole seconds count, or a number of last lines. */
  since?: string | undefined;
  tailLines?: number | undefined;
  signal: AbortSignal;
  /** False: a hole ends the reading before the first line after it, because that line may belong to another run of the container. */
  acceptHole: boolean;
  /** The kubelet has accepted the request. */
  onAccept?(): void;
  /** Before the first line of a new position; `waitedMs` after the kubelet had accepted the request. */
  onBegin?(time: string, waitedMs: number): Promise<void> | void;
  /** Waits when the reader is slower than the log. */
  onLine(line: StampedLine): Promise<void> | void;
  /** Lines may be missing before the next line, or at an earlier place that became known now. */
  onHole(gap: LogGap): Promise<void> | void;
  /** Finds new files in a log that is followed. */
  rotations?: Rotations | undefined;
}

/**
 * How a request ended:
 *
 * - `end`: the server ended the log normally (which does not prove that the log is complete: a lost kubelet looks the same).
 * - `cut`: the connection broke, or there was no answer.
 * - `refused`: the API server or the kubelet cannot serve the log; `message` is theirs.
 * - `gone`: the pod does not exist.
 * - `hole`: the last known line is no longer served, and newer ones are.
 */
export interface ReadOutcome {
  how: 'end' | 'cut' | 'refused' | 'gone' | 'hole';
  message?: string;
  /** With `cut`: the API server answered, and got no log from the kubelet. */
  isNodeAway?: boolean;
  lines: number;
  /** The last known line is still served. */
  caughtUp: boolean;
  /** A text without a newline came last and was not taken. It is a line when the container has ended. */
  leftRest?: boolean;
}

function refusal(error: unknown): ReadOutcome {
  // Without the right no later try can succeed, so the caller gets the error.
  if (!(error instanceof KubeError) || isForbidden(error) || error.status === 401) throw error;
  const none = { lines: 0, caughtUp: false };
  const message = error.body?.message ?? error.message;
  if (error.status === 404) return { how: 'gone', message, ...none };
  if (error.status === 400) return { how: 'refused', message, ...none };
  // The API server gives this status to whatever fails between it and a kubelet.
  return { how: 'cut', message: isUnreachable(error) ? error.message : message, isNodeAway: error.status === 500, ...none };
}

/** Reads until the log ends, the connection breaks or the signal aborts. Throws KubeError when the user has no right to read logs. */
export async function readLog(request: ReadRequest, position: LogPosition): Promise<ReadOutcome> {
  const { cluster, ns, pod, container, previous, follow, signal } = request;
  const start = position.isFresh
    ? {
        ...defined({ sinceTime: request.since?.replace(/\.\d+/, ''), tailLines: request.tailLines }),
      }
    : { sinceTime: position.sinceTime ?? '' };
  let stream;
  try {
    stream = await cluster.logs(ns, pod, { container, follow, timestamps: true, ...(previous ? { previous } : {}), ...start, signal });
  } catch (error) {
    if (signal.aborted) return { how: 'cut', lines: 0, caughtUp: false };
    return refusal(error);
  }
  const accepted = performance.now();
  position.connect();
  request.onAccept?.();
  const outcome: ReadOutcome = { how: 'end', lines: 0, caughtUp: true };
  let isFirst = true;
  try {
    // A rest without a newline is a line only when the container has ended; until then it is read again.
    const onRest = (rest: string): void => void (outcome.leftRest = !isKubeletNote(rest));
    for await (const raw of linesFrom(stream as AsyncIterable<Buffer>, { keepRest: !follow, onRest, longest: longestLine, cutMark })) {
      if (signal.aborted) {
        // Lines that had arrived already are left unread.
        outcome.how = 'cut';
        break;
      }
      if (isFirst) request.rotations?.began(parseStamped(raw)?.time ?? '');
      isFirst = false;
      if (position.isFresh) await begin(raw, request, performance.now() - accepted);
      await takeLine(raw, request, position, outcome);
      if (outcome.how === 'hole') break;
    }
  } catch (error) {
    if (!signal.aborted && error instanceof KubeError) throw error;
    outcome.how = 'cut';
  } finally {
    stream.destroy();
  }
  return { ...outcome, caughtUp: position.caughtUp };
}

async function begin(raw: string, { onBegin }: ReadRequest, waitedMs: number): Promise<void> {
  const line = parseStamped(raw);
  if (line !== undefined) await onBegin?.(line.time, waitedMs);
}

/**
 * True for a line that this reader has had. The kubelet sends the newest file again from its first line on. Where it begins with another line, an old
 * time shows that the clock of the node was set back; without an answer, lines may be left out.
 */
async function isSentAgain(time: string, request: ReadRequest, { last }: LogPosition): Promise<boolean> {
  const { rotations } = request;
  if (rotations?.isUnclear(time) === true) {
    const start = await firstTime(request);
    if (start !== undefined && start !== time) rotations.setBack(start);
    else if (!request.signal.aborted) await request.onHole({ ...defined({ from: last }), reason: rotated });
  }
  return rotations?.isRepeated(time) === true;
}

async function takeLine(raw: string, request: ReadRequest, position: LogPosition, outcome: ReadOutcome): Promise<void> {
  const line = parseStamped(raw);
  if (line === undefined) {
    // The kubelet writes its own errors into the body, without a timestamp and with status 200.
    if (raw.trim() !== '') Object.assign(outcome, { how: 'refused', message: raw.trim() });
    return;
  }
  const { rotations } = request;
  if (position.caughtUp && (await isSentAgain(line.time, request, position))) return;
  const before = position.last;
  const verdict = position.take(line.time, request.acceptHole);
  if (verdict === 'seen') return;
  if (verdict === 'hole' && !request.acceptHole) {
    outcome.how = 'hole';
    return;
  }
  outcome.lines++;
  const gap = rotations?.pass(line.time, verdict === 'hole');
  if (verdict === 'hole') await request.onHole({ ...defined({ from: before }), to: line.time, reason: rotated });
  else if (gap !== undefined) await request.onHole(gap);
  await request.onLine(line);
}

/** Enough for a timestamp. */
const firstBytes = 64;

type LogFile = Pick<ReadRequest, 'cluster' | 'ns' | 'pod' | 'container' | 'previous' | 'signal'>;

/** The time of the first line of the file that the kubelet serves now; undefined when there is none, or no answer. */
export async function firstTime({ cluster, ns, pod, container, previous, signal }: LogFile): Promise<string | undefined> {
  try {
    const which = previous ? { container, previous } : { container };
    const stream = await cluster.logs(ns, pod, { ...which, timestamps: true, limitBytes: firstBytes, signal });
    for await (const raw of linesFrom(stream as AsyncIterable<Buffer>, { keepRest: true })) return parseStamped(raw)?.time;
  } catch {
    // The next question is soon, and the followed connection tells of lasting errors.
  }
  return undefined;
}

/**
 * The gap between a time at which a run was already there and the first line that is served from then on. When this is the first line of its file,
 * a file before it may have held lines.
 *
 * @param startedAt when the run began
 */
export async function gapSince(file: LogFile, since: string, startedAt: string, time: string): Promise<LogGap | undefined> {
  if (time < since || !isAfterFullFile(startedAt, time)) return undefined;
  const start = await firstTime(file);
  return start === time ? { from: since, to: time, reason: rotated } : undefined;
}
