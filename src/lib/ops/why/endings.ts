// Instances that have ended and run again: nothing but the record of events says so.

import { causeOfExit, causeOfPodEnd, type CauseCode } from '../../api/causes.ts';
import { configMapType } from '../../api/core.ts';
import { eventsName, readEvents } from '../../api/event-log.ts';
import type { Stored } from '../../api/object.ts';
import { nodeLostReason } from '../../api/instance-ends.ts';
import type { AppEvent, WhyEvent } from '../../api/results.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { warningsAbout } from './evidence.ts';

/** As the instance ended last. It failed if it ends again and again, and is well after a single end, which is named all the same. */
export interface RecordedEnd {
  state: 'failed' | 'well';
  cause: CauseCode;
  message: string;
  since: string;
  instance: number;
  exitCode?: number;
}

/** So many ends within this time are not a single mishap. */
const manyEnds = 2;
const lookBackMs = 10 * 60_000;

const types: readonly string[] = ['app.crash', 'audit.app.process.rescheduling'];

interface End {
  time: string;
  index: string;
  text: string;
  reason: string | undefined;
  exitCode: number | undefined;
}

/** Reads the description of an event of cf: `index: 0, reason: CRASHED, instance: …, exit_description: …, exit_status: 1`. */
function endIn({ type, time, description }: AppEvent): End[] {
  const [, index, reason] = /^index: (\d+)(?:, reason: (\w+))?,/.exec(description) ?? [];
  const [, said] = description.split(', exit_description: ');
  if (!types.includes(type) || index === undefined || said === undefined) return [];
  const [text = '', status] = said.split(', exit_status: ');
  return [{ time, index, text, reason, exitCode: status === undefined ? undefined : Number(status) }];
}

function causeOfEnd({ text, exitCode, reason }: End): CauseCode {
  if (reason === nodeLostReason) return 'node-lost';
  if (exitCode === undefined) return causeOfPodEnd('Evicted', text);
  return text.endsWith('(out of memory)') ? 'oom' : causeOfExit(exitCode);
}

/** Ends count since the last change of the app, in RFC 3339, and for ten minutes before `now`, in milliseconds. */
interface Lately {
  since?: string | undefined;
  now: number;
}

/** What is said of the last one. @param ends in the order of their time */
function summary(ends: readonly End[], { since = '', now }: Lately): RecordedEnd | undefined {
  const begun = Math.max(now - lookBackMs, Date.parse(since) || 0);
  const lately = ends.filter(({ time }) => Date.parse(time) >= begun);
  const last = lately.at(-1);
  if (last === undefined) return undefined;
  const { index, text, time, exitCode } = last;
  const own = lately.filter((end) => end.index === index);
  const isRepeated = own.length >= manyEnds;
  const times = isRepeated ? `${String(own.length)} times since ${own[0]?.time ?? ''}. The last time: ` : `once, at ${time}: `;
  const said = text.trim();
  const message = `Instance ${index} runs, and ended ${times}${said}${said.endsWith('.') ? '' : '.'}`;
  const state = isRepeated ? 'failed' : 'well';
  return { state, cause: causeOfEnd(last), message, since: time, instance: Number(index), ...defined({ exitCode }) };
}

/** The last end of an instance that ended lately. @param events in the order of their time */
export const lastEnd = (events: readonly AppEvent[], lately: Lately): RecordedEnd | undefined => summary(events.flatMap(endIn), lately);

/** The same by Events of evictions, which a kubelet writes before the pod is gone. @param warnings the newest first */
export function lastEviction(warnings: readonly WhyEvent[], lately: Lately): RecordedEnd | undefined {
  const ends = warnings.flatMap(({ time, object, reason, message: text }) => {
    const index = /^Pod .*-(\d+)$/.exec(object)?.[1];
    return reason !== 'Evicted' || index === undefined ? [] : [{ time, index, text, reason: undefined, exitCode: undefined }];
  });
  return summary(ends.toReversed(), lately);
}

/** The last end by what the controller has recorded of the app. It writes that every ten seconds; before, Events tell of evictions. */
export async function recordedEnd(session: SpaceSession, app: Stored<CFApp>): Promise<RecordedEnd | undefined> {
  const { cluster, space, signal } = session;
  const lately = { since: app.status?.deployment?.since, now: Date.now() };
  try {
    const map = await cluster.get(configMapType, space.guid, eventsName(app.metadata.name), signal);
    const recorded = lastEnd(readEvents(map), lately);
    if (recorded !== undefined) return recorded;
    const instances = { has: (name: string) => name.startsWith(`${app.metadata.name}-`) };
    return lastEviction(await warningsAbout(session, instances), lately);
  } catch (error) {
    // Roles that an earlier kf made have no right to read it.
    if (isForbidden(error)) return undefined;
    throw error;
  }
}
