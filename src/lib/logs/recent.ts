// The last lines of all pods of a selector, with the log of each crashed container's previous run, ordered by time.

import pLimit from 'p-limit';
import { podType, statusOf, type Pod } from '../api/pod-kind.ts';
import type { Stored } from '../api/object.ts';
import type { ContainerStatus } from '../api/pod.ts';
import { defined } from '../defined.ts';
import type { Cluster } from '../kube/cluster.ts';
import { throwIfAborted } from '../wait.ts';
import { gapEntry, noteEntry, timeOf } from './entry.ts';
import type { LogEntry, LogSource } from './entry.ts';
import { LogPosition, type StampedLine } from './position.ts';
import { gapSince, readLog } from './read.ts';
import { containerLifeOf, goneReason, hasOneLife, lostRuns, targetsOf } from './targets.ts';
import type { LogTarget, PodScope, SourceRule } from './targets.ts';

export interface RecentOptions extends PodScope {
  /** Number of lines in all; the newest are kept. Default: all. */
  lines?: number | undefined;
  /** Older lines are left out; a time as lines have it. */
  since?: string | undefined;
  /** Which lines are kept. Whole logs are read then, and `lines` is the number of those that are kept. */
  isWanted?: ((text: string) => boolean) | undefined;
  /** Only the run before the last restart of each container. */
  onlyPrevious?: boolean;
  sources?: SourceRule;
  signal?: AbortSignal;
  /** How long a log may take until it begins, in milliseconds; default 15,000. Others of the same node are not asked for then. */
  patienceMs?: number;
}

interface PartLogs {
  /** Oldest first. */
  entries: LogEntry[];
  /** Logs that could not be read, with the API server's message and the container. */
  notes: LogEntry[];
  /** A log did not begin in time. */
  isIncomplete?: boolean;
  /** The log has lines from the asked time on, wanted or not. */
  hasLines?: boolean;
  /** The container has run, and its log was not read to its end; there is a note about it. */
  isUnread?: boolean;
}

export interface RecentLogs extends Omit<PartLogs, 'hasLines' | 'isUnread'> {
  /** With `isWanted`: those that have lines from the asked time on, wanted or not. */
  withLines?: LogSource[];
  /** No container has a log that was asked for. */
  isWithoutLogs: boolean;
  /** The number of logs of containers that have run which were not read to their end. */
  unread: number;
}

/** Concurrent requests; the kubelet reads each log from disk. */
const concurrency = 8;

const defaultPatienceMs = 15_000;

interface Part {
  /** Where the pod runs. */
  node: string;
  target: Omit<LogTarget, 'early'>;
  previous: boolean;
  /** When the run began. */
  startedAt?: string | undefined;
  /** The number of runs before it that can no longer be read. */
  earlier: number;
  /** When the run after it began. */
  next?: string | undefined;
}

/** The container has ended, and runs again. */
function isBetweenRuns(pod: Pod, status: ContainerStatus | undefined): boolean {
  const { running, terminated = status?.lastState?.terminated } = status?.state ?? {};
  return running === undefined && terminated !== undefined && !hasOneLife(pod);
}

const nodeOf = ({ spec }: Pod): string => spec?.nodeName ?? '';

/** The logs that exist: a container that never started has none, one that restarted has two. */
function partsOf(pod: Stored<Pod>, { sources, onlyPrevious = false }: RecentOptions): Part[] {
  return targetsOf([pod], sources).flatMap((target) => {
    const status = statusOf(pod, target.container);
    const life = containerLifeOf(status);
    const last = status?.lastState?.terminated;
    const restarts = status?.restartCount ?? 0;
    // During the back-off before a restart, the last run is served as the current log.
    const hasPrevious = restarts > 0 && last?.containerID !== undefined && last.containerID !== life?.id;
    const node = nodeOf(pod);
    const previous = {
      node,
      target,
      previous: true,
      startedAt: last?.startedAt ?? undefined,
      earlier: restarts - 1,
      next: life?.startedAt,
    };
    const present = { node, target, previous: false, startedAt: life?.startedAt, earlier: hasPrevious ? 0 : restarts };
    if (!onlyPrevious) return hasPrevious ? [previous, present] : [present];
    if (hasPrevious) return [previous];
    // The run that ended is the previous one as soon as the next one begins. In the back-off, the kubelet serves it as such already.
    return isBetweenRuns(pod, status) ? [{ ...present, previous: status?.state?.terminated === undefined }] : [];
  });
}

/** The gap before the lines of a run, when they are all there and lost runs before it belong to the asked time. */
function gapBefore({ target, startedAt, earlier }: Part, count: number, { since = '', lines = Infinity }: RecentOptions): LogEntry[] {
  if (startedAt === undefined || earlier === 0 || count >= lines) return [];
  const to = timeOf(new Date(startedAt));
  return to <= since ? [] : [gapEntry(target.source, { to, reason: lostRuns(earlier) })];
}

/** A run whose log is gone is a lost one, before the run after it. */
function lostWith({ next, ...part }: Part): Part {
  return next === undefined ? part : { ...part, earlier: part.earlier + 1, startedAt: next };
}

/** The gap between the asked time, at which the run was already there, and its first line from then on. */
async function gapAtBegin(
  { target: { pod, container, source }, previous, startedAt }: Part,
  time: string,
  { cluster, ns, since, signal }: Pick<RecentOptions, 'ns' | 'since'> & { cluster: Cluster; signal: AbortSignal },
): Promise<LogEntry[]> {
  // Others than apps may be silent for long after their start, and their logs are short.
  if (source.type !== 'APP' || since === undefined || startedAt === undefined || timeOf(new Date(startedAt)) >= since) return [];
  const gap = await gapSince({ cluster, ns, pod, container, previous, signal }, since, startedAt, time);
  return gap === undefined ? [] : [gapEntry(source, gap)];
}

/** Nodes that have answered once, and those that have not in time. */
interface KnownNodes {
  answered: Set<string>;
  silent: Set<string>;
}

/** Reads what has a log to give. The API server itself waits for 30 s for a node that does not answer. */
async function readPart(cluster: Cluster, part: Part, options: RecentOptions, nodes: KnownNodes, signal: AbortSignal): Promise<PartLogs> {
  const { node, target, startedAt } = part;
  const { patienceMs = defaultPatienceMs } = options;
  const notes = [noteEntry(`Node '${node}' does not answer.`, target)];
  const noAnswer = { entries: [], notes, isIncomplete: true, isUnread: startedAt !== undefined };
  if (nodes.silent.has(node)) return noAnswer;
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), patienceMs);
  try {
    const within = AbortSignal.any([signal, limit.signal]);
    const onAccept = (): void => {
      clearTimeout(timer);
      nodes.answered.add(node);
    };
    const read = await readBegun(cluster, part, options, within, onAccept);
    throwIfAborted(signal);
    if (!limit.signal.aborted) return read;
    if (!nodes.answered.has(node)) nodes.silent.add(node);
    return noAnswer;
  } finally {
    clearTimeout(timer);
  }
}

async function readBegun(
  cluster: Cluster,
  part: Part,
  options: RecentOptions,
  signal: AbortSignal,
  onAccept: () => void,
): Promise<PartLogs> {
  const entries: LogEntry[] = [];
  const { target, previous, startedAt } = part;
  const { pod, container, source } = target;
  const { since = '', lines, isWanted } = options;
  let hasLines = false;
  let wanted = 0;
  const take = ({ time, text }: StampedLine): void => {
    if (time < since) return;
    hasLines = true;
    if (isWanted?.(text) === false) return;
    wanted += 1;
    entries.push({ time, source, stream: 'OUT', text });
    // A long log must not fill the memory; one removal for many lines costs less.
    if (lines !== undefined && entries.length >= 2 * lines) entries.splice(0, entries.length - lines);
  };
  const outcome = await readLog(
    {
      cluster,
      ns: options.ns,
      pod,
      container,
      previous,
      follow: false,
      tailLines: isWanted === undefined ? lines : undefined,
      since: options.since,
      signal,
      acceptHole: true,
      onAccept,
      onBegin: async (time) => void entries.push(...(await gapAtBegin(part, time, { ...options, cluster, signal }))),
      onLine: take,
      onHole: () => undefined,
    },
    new LogPosition(),
  );
  // A previous log that is no longer kept is not worth a note, unless it is what was asked for.
  const isWorthANote = outcome.how !== 'end' && (!previous || options.onlyPrevious === true || outcome.how === 'cut');
  const isLost = previous && outcome.lines === 0 && (outcome.how === 'refused' || outcome.how === 'gone');
  entries.unshift(...gapBefore(isLost ? lostWith(part) : part, wanted, options));
  // The pod was deleted after it was listed.
  if (!isLost && isWorthANote && outcome.how === 'gone' && startedAt !== undefined)
    return { entries: [...entries, gapEntry(source, { from: timeOf(new Date(startedAt)), reason: goneReason })], notes: [], hasLines };
  if (!isWorthANote) return { entries, notes: [], hasLines };
  const note = noteEntry(outcome.message ?? 'The log could not be read to its end.', target);
  return { entries, notes: [note], hasLines, isUnread: startedAt !== undefined };
}

/**
 * If a container ended between the list and the reading, the same run is served as the previous and as the present one. Runs follow each other, so
 * a previous one with lines as new as the present one's first line is the same run. A gap is no line.
 */
function isServedAgain(parts: readonly Part[], read: readonly PartLogs[], index: number): boolean {
  // With previous runs only, the next part is of another container.
  if (parts[index]?.target !== parts[index + 1]?.target) return false;
  const [last, first] = [read[index]?.entries.at(-1), read[index + 1]?.entries.find(({ gap }) => gap === undefined)];
  return last !== undefined && last.gap === undefined && first !== undefined && last.time >= first.time;
}

/**
 * What is shown of a part. The gap of a pod that is gone comes after the run before, whose last line may be newer than the start of the run that
 * is missing: Kubernetes has whole seconds.
 */
function shownOf(parts: readonly Part[], read: readonly PartLogs[], index: number): LogEntry[] {
  if (isServedAgain(parts, read, index)) return [];
  const before = parts[index]?.target === parts[index - 1]?.target ? read[index - 1]?.entries.at(-1)?.time : undefined;
  return (read[index]?.entries ?? []).map((entry) =>
    entry.gap?.reason === goneReason && before !== undefined && entry.time < before
      ? gapEntry(entry.source, { ...entry.gap, from: before })
      : entry,
  );
}

/** The newest entries. The gap of an instance that went while it was read stays, because it may stand for the newest lines of all. */
function newest(entries: readonly LogEntry[], lines = Infinity): LogEntry[] {
  const left = Math.max(0, entries.length - lines);
  return entries.filter(({ gap }, index) => index >= left || gap?.reason === goneReason);
}

/** One request for the pods and one per log. Throws KubeError when the user may not read pods or logs. */
export async function recentLogs(cluster: Cluster, options: RecentOptions): Promise<RecentLogs> {
  const signal = options.signal ?? new AbortController().signal;
  const { items } = await cluster.list(podType, { ns: options.ns, labelSelector: options.selector, signal });
  const parts = items.flatMap((pod) => partsOf(pod, options));
  const nodes = { answered: new Set<string>(), silent: new Set<string>() };
  const read = await pLimit(concurrency).map(parts, (part) => readPart(cluster, part, options, nodes, signal));
  const entries = parts.flatMap((_part, index) => shownOf(parts, read, index));
  const withLines = parts.filter((_part, index) => read[index]?.hasLines).map(({ target }) => target.source);
  // A stable sort: lines of one container with the same time keep their order.
  entries.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  return {
    entries: newest(entries, options.lines),
    notes: read.flatMap((part) => part.notes),
    isWithoutLogs: parts.length === 0,
    unread: read.filter(({ isUnread }) => isUnread === true).length,
    ...(read.some(({ isIncomplete }) => isIncomplete) ? { isIncomplete: true } : {}),
    ...defined({ withLines: options.isWanted && withLines }),
  };
}
