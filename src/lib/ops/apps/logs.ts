// logs: lines of an app's instances, tasks and builds, live or the last ones.

import { desiredInstances, webProcess } from '../../api/app.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { timeSince, type Since } from '../../cf/values.ts';
import { KfError } from '../../errors.ts';
import { formatLogLines, formatSource } from '../../logs/format.ts';
import { sourceOf, timeOf, type LogEntry, type LogSource } from '../../logs/entry.ts';
import { failedVersionEntries, type ReadEntry } from '../../logs/failed.ts';
import { recentLogs } from '../../logs/recent.ts';
import { followLogs } from '../../logs/stream.ts';
import { targetsOf, type SourceRule } from '../../logs/targets.ts';
import type { SpaceSession } from '../../session/session.ts';
import { readPods } from '../instances/pods.ts';
import { findProcess } from './scale.ts';

/** The number that cf's log system keeps. */
const recentLines = 1000;

/** cf begins to follow a second before the newest line. */
const newestMs = 1000;

/** Which lines are shown. */
export interface LogChoice {
  /** Nothing older. */
  since?: Since | undefined;
  /** Only the instances of this index. */
  instance?: number | undefined;
  /** Only this process type, with its sidecars. */
  process?: string | undefined;
  /** Only lines that match. Gaps and notes stay. */
  grep?: RegExp | undefined;
}

/** One entry as cf prints it, and its parts. */
export interface PrintedEntry {
  entry: LogEntry;
  /** `APP/PROC/WEB/0` */
  source: string;
  lines: string[];
}

function isChosen(source: LogSource, { instance, process }: LogChoice): boolean {
  if (instance === undefined && process === undefined) return true;
  const type = source.process ?? '';
  const isOfProcess = process === undefined || type === process || type.startsWith(`${process}/SIDECAR/`);
  return source.type === 'APP' && isOfProcess && (instance === undefined || source.index === instance);
}

function scopeOf(session: SpaceSession, app: Stored<CFApp>, choice: LogChoice) {
  const sources: SourceRule = (pod, container) => {
    const source = sourceOf(pod, container);
    return source !== undefined && isChosen(source, choice) ? source : undefined;
  };
  return { ns: session.space.guid, selector: `${labels.appGuid}=${app.metadata.name}`, sources, signal: session.signal };
}

const sinceOf = ({ now }: SpaceSession, { since }: LogChoice): string | undefined =>
  since === undefined ? undefined : timeOf(timeSince(since, now()));

const isShown = (entry: LogEntry, { grep }: LogChoice): boolean =>
  grep === undefined || entry.gap !== undefined || entry.source.type === 'KF' || grep.test(entry.text);

const printed = (entry: LogEntry): PrintedEntry => ({ entry, source: formatSource(entry.source), lines: formatLogLines(entry) });

/** The lines of a version that failed and is gone, when some of them are chosen and shown: without any, the notes around them would mislead. */
function failedEntries(app: Stored<CFApp>, read: readonly ReadEntry[], choice: LogChoice, since = ''): LogEntry[] {
  const failed = failedVersionEntries(app, read);
  const isWanted = (entry: LogEntry): boolean => isChosen(entry.source, choice) && entry.time >= since && isShown(entry, choice);
  return failed.some((entry) => entry.source.type !== 'KF' && isWanted(entry)) ? failed : [];
}

/**
 * The refusal of a chosen instance that is neither wanted nor known; undefined when there is nothing to refuse.
 * @throws KfError `not-found`: cf's text for an unknown process
 */
export async function missingInstance(session: SpaceSession, app: Stored<CFApp>, choice: LogChoice): Promise<KfError | undefined> {
  const { cluster, bin } = session;
  const { instance, process } = choice;
  if (instance === undefined && process === undefined) return undefined;
  const { ns, selector: labelSelector, signal, sources } = scopeOf(session, app, choice);
  const own = { ns, labelSelector, signal };
  const processes = process === undefined ? (await cluster.list(kinds.process, own)).items : [await findProcess(session, app, process)];
  if (instance === undefined || processes.some((candidate) => instance < desiredInstances(candidate))) return undefined;
  // An instance that ends, and one of a failed version, have lines too.
  const pods = (await readPods(session, app)) ?? [];
  if (targetsOf(pods, sources).length > 0 || failedEntries(app, [], { instance, process }).length > 0) return undefined;
  const types = processes.map(({ spec }) => spec.processType).join(' or ') || webProcess;
  return new KfError('not-found', `Instance ${instance} of process ${types} not found`, { hints: [`${bin} app ${app.spec.displayName}`] });
}

/**
 * The last lines of all instances, tasks and builds, oldest first, including the run before a crash and a version that failed. With a pattern, whole logs
 * are searched for the last lines that match.
 * @param onlyPrevious only the run before the last restart of each container
 * @returns unread: the number of logs of containers that have run which were not read to their end; of each there is a note
 */
export async function readRecentLogs(
  session: SpaceSession,
  app: Stored<CFApp>,
  choice: LogChoice = {},
  onlyPrevious = false,
): Promise<{ entries: PrintedEntry[]; notes: string[]; unread: number }> {
  const since = sinceOf(session, choice);
  const lines = since === undefined ? recentLines : undefined;
  const { grep } = choice;
  const isWanted = grep && ((text: string): boolean => grep.test(text));
  const options = { ...scopeOf(session, app, choice), lines, since, isWanted, onlyPrevious };
  const { entries, notes, withLines, isWithoutLogs, unread } = await recentLogs(session.cluster, options);
  const read = withLines?.map((source) => ({ source })) ?? entries;
  const all = [...entries, ...(onlyPrevious ? [] : failedEntries(app, read, choice, since))].filter((entry) => isShown(entry, choice));
  // A stable sort: lines of one time keep their order.
  all.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  const texts = notes.map(({ source, text }) => `${source.pod}/${source.container}: ${text}`);
  return {
    entries: all.map(printed),
    notes: onlyPrevious && isWithoutLogs ? ['No instance has a previous run.'] : texts,
    unread,
  };
}

/** At most so many are named. */
const mostNamed = 5;

/** Which instances wait, and how to choose others. */
function waitingText(waiting: readonly LogSource[], most: number): string {
  const names = [...new Set(waiting.map(formatSource))];
  const more = names.length - mostNamed;
  const named = `${names.slice(0, mostNamed).join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}`;
  return `${String(most)} logs are followed at a time. These wait until another one ends: ${named}. --process and --instance choose others.`;
}

/**
 * The newest lines, or those from a time on, and every later one, until the command is interrupted.
 * @param note takes a text for the user about the stream
 */
export async function* followAppLogs(
  session: SpaceSession,
  app: Stored<CFApp>,
  choice: LogChoice,
  note: (text: string) => void,
): AsyncGenerator<PrintedEntry> {
  const { cluster, signal } = session;
  const scope = scopeOf(session, app, choice);
  try {
    const since = sinceOf(session, choice) ?? (await newestOf(session, scope));
    const onWait = (sources: readonly LogSource[], most: number): void => note(waitingText(sources, most));
    const stream = followLogs(cluster, { ...scope, since, isNewest: choice.since === undefined, onWait });
    for await (const entry of stream) if (isShown(entry, choice)) yield printed(entry);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** What is followed does not wait for a node that does not answer, unless no other has a line. */
const newestPatienceMs = 3000;

/** With a node that does not answer in time, no older lines than these are shown: its own may be much newer than those of others. */
const oldestMs = 60_000;

/** A second before the newest line; undefined when there is no line. */
async function newestOf({ cluster, now }: SpaceSession, scope: ReturnType<typeof scopeOf>): Promise<string | undefined> {
  const soon = await recentLogs(cluster, { ...scope, lines: 1, patienceMs: newestPatienceMs });
  const isEnough = soon.entries.length > 0 || soon.isIncomplete !== true;
  const { entries, isIncomplete } = isEnough ? soon : await recentLogs(cluster, { ...scope, lines: 1 });
  const newest = entries.at(-1);
  if (newest === undefined) return undefined;
  return timeOf(new Date(Math.max(Date.parse(newest.time) - newestMs, isIncomplete === true ? now() - oldestMs : 0)));
}
