// Instances that have ended and run again: nothing but the record of events says so.

import { webProcess } from '../../api/app.ts';
import { causeOfExit, causeOfPodEnd, type CauseCode } from '../../api/causes.ts';
import { configMapType } from '../../api/core.ts';
import { eventsName, readEvents } from '../../api/event-log.ts';
import type { Stored } from '../../api/object.ts';
import { evictedReason, nodeLostReason, unknownEnd } from '../../api/instance-ends.ts';
import { statefulSetName } from '../../api/names.ts';
import type { AppEvent, WhyEvent } from '../../api/results.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { allWarningsAbout } from './evidence.ts';

/** As the instance ended last. It failed if it ends again and again, and is well after a single end, which is named all the same. */
export interface RecordedEnd {
  state: 'failed' | 'well';
  cause: CauseCode;
  message: string;
  since: string;
  /** Left out when it is not known. */
  process?: string;
  instance: number;
  exitCode?: number;
  /** Left out for one on a node that does not answer: its kubelet would be waited for. */
  pod?: string;
  /** Its lines are those of this run. */
  run: 'ended';
}

/** So many ends within this time are not a single mishap. */
const manyEnds = 2;
const lookBackMs = 10 * 60_000;
/** An instance ends at the latest so long after its kubelet has told of its eviction. */
const slowEndMs = 60_000;

const types: readonly string[] = ['app.crash', 'audit.app.process.rescheduling'];

interface End {
  time: string;
  /** Its type; undefined when only its StatefulSet is known. */
  process: string | undefined;
  pod: string;
  index: string;
  text: string;
  reason: string | undefined;
  exitCode: number | undefined;
}

/** Reads the description of an event of cf: `index: 0, reason: CRASHED, instance: …, exit_description: …, exit_status: 1`. */
function endIn({ type, time, actor, description }: AppEvent): End[] {
  const [, index, reason, pod = ''] = /^index: (\d+)(?:, reason: (\w+))?(?:, instance: ([^,]*))?,/.exec(description) ?? [];
  const [, said] = description.split(', exit_description: ');
  if (!types.includes(type) || index === undefined || said === undefined) return [];
  const [text = '', status] = said.split(', exit_status: ');
  const process = actor === '' ? undefined : actor;
  return [{ time, process, pod, index, text, reason, exitCode: status === undefined ? undefined : Number(status) }];
}

function causeOfEnd({ text, exitCode, reason }: End): CauseCode {
  if (reason === nodeLostReason) return 'node-lost';
  if (exitCode === undefined) return causeOfPodEnd('Evicted', text);
  if (text.endsWith(unknownEnd)) return 'unknown';
  return text.endsWith('(out of memory)') ? 'oom' : causeOfExit(exitCode);
}

/** The process by its type, or by its StatefulSet: a pod's name is that of its set, with the index. */
const ownerOf = ({ process, pod }: End): string => process ?? setOf(pod);
const setOf = (pod: string): string => pod.replace(/-\d+$/, '');

/** Ends count since the last change of the app, in RFC 3339, and for ten minutes before `now`, in milliseconds. */
interface Lately {
  since?: string | undefined;
  now: number;
}

/** What is said of the last one. @param ends in the order of their time */
function summary(ends: readonly End[]): RecordedEnd | undefined {
  const last = ends.at(-1);
  if (last === undefined) return undefined;
  const { process, index, text, time, exitCode } = last;
  const cause = causeOfEnd(last);
  const own = ends.filter((end) => end.index === index && ownerOf(end) === ownerOf(last));
  const isRepeated = own.length >= manyEnds;
  const times = isRepeated ? `${String(own.length)} times since ${own[0]?.time ?? ''}. The last time: ` : `once, at ${time}: `;
  const said = text.trim();
  const place = process === undefined || process === webProcess ? '' : ` of '${process}'`;
  const message = `Instance ${index}${place} runs, and ended ${times}${said}${said.endsWith('.') ? '' : '.'}`;
  const state = isRepeated ? 'failed' : 'well';
  const pod = cause === 'node-lost' || last.pod === '' ? undefined : last.pod;
  return { state, cause, message, since: time, instance: Number(index), run: 'ended', ...defined({ process, exitCode, pod }) };
}

/** Reads the Events of evictions, which a kubelet writes before the pod is gone. */
function evictionIn({ time, object, reason, message: text }: WhyEvent, sets: Told['sets']): End[] {
  const [, pod = '', set = '', index] = /^Pod ((.*)-(\d+))$/.exec(object) ?? [];
  if (reason !== 'Evicted' || index === undefined) return [];
  return [{ time, process: sets.get(set), pod, index, text, reason: evictedReason, exitCode: undefined }];
}

/** Those that are not recorded yet. Both lists are in the order of their time, and tell of an eviction of a pod once. */
function unrecorded(evictions: readonly End[], recorded: readonly End[]): End[] {
  const left = recorded.filter(({ reason }) => reason === evictedReason);
  return evictions.filter(({ pod, time }) => {
    const at = left.findIndex((end) => end.pod === pod && Date.parse(end.time) <= Date.parse(time) + slowEndMs);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

/** What tells of ends. */
interface Told {
  /** As recorded, in the order of their time. */
  events: readonly AppEvent[];
  /** The newest first. */
  warnings: readonly WhyEvent[];
  /** The type of a process by its StatefulSet. */
  sets: ReadonlyMap<string, string>;
  /** StatefulSets whose ends do not count. */
  failedSets?: ReadonlySet<string>;
}

/** The last end of an instance that ended lately. */
export function lastEnd({ events, warnings, sets, failedSets }: Told, { since = '', now }: Lately): RecordedEnd | undefined {
  const begun = Math.max(now - lookBackMs, Date.parse(since) || 0);
  const isLate = ({ time, pod }: End): boolean => Date.parse(time) >= begun && failedSets?.has(setOf(pod)) !== true;
  const recorded = events.flatMap(endIn).filter(isLate);
  const evictions = warnings
    .toReversed()
    .flatMap((warning) => evictionIn(warning, sets))
    .filter(isLate);
  const ends = [...recorded, ...unrecorded(evictions, recorded)];
  return summary(ends.toSorted((a, b) => Date.parse(a.time) - Date.parse(b.time)));
}

/** The types of the processes by their StatefulSets, and those of versions that failed. */
function setsOf({ metadata }: Stored<CFApp>, processes: readonly Stored<CFProcess>[]): Required<Pick<Told, 'sets' | 'failedSets'>> {
  const all = processes.flatMap(({ metadata: { name, namespace }, spec, status }) =>
    (status?.rollout?.generations ?? []).map(({ hash, state }) => {
      return { set: statefulSetName(metadata.name, namespace, name, hash), type: spec.processType, state };
    }),
  );
  const failed = all.filter(({ state }) => state === 'Failed');
  return { sets: new Map(all.map(({ set, type }) => [set, type])), failedSets: new Set(failed.map(({ set }) => set)) };
}

/** The last end by what the controller has recorded of the app. It writes that every ten seconds; before, Events tell of evictions. */
export async function recordedEnd(
  session: SpaceSession,
  app: Stored<CFApp>,
  processes: readonly Stored<CFProcess>[],
): Promise<RecordedEnd | undefined> {
  const { cluster, space, signal } = session;
  const lately = { since: app.status?.deployment?.since, now: session.now() };
  try {
    const instances = { has: (name: string) => name.startsWith(`${app.metadata.name}-`) };
    const [map, warnings] = await Promise.all([
      cluster.get(configMapType, space.guid, eventsName(app.metadata.name), signal),
      allWarningsAbout(session, instances),
    ]);
    return lastEnd({ events: readEvents(map), warnings, ...setsOf(app, processes) }, lately);
  } catch (error) {
    // Roles that an earlier kf made have no right to read it.
    if (isForbidden(error)) return undefined;
    throw error;
  }
}
