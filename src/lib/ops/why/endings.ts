// Instances that have ended and run again: nothing but the record of events says so.

import { causeOfExit, causeOfPodEnd, type CauseCode } from '../../api/causes.ts';
import { configMapType } from '../../api/core.ts';
import { eventsName, readEvents } from '../../api/event-log.ts';
import type { Stored } from '../../api/object.ts';
import { nodeLostReason } from '../../api/instance-ends.ts';
import type { AppEvent } from '../../api/results.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';

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

/** The last end of an instance that ended lately, since the last change of the app. @param events in the order of their time */
export function lastEnd(
  events: readonly AppEvent[],
  { since = '', now }: { since?: string | undefined; now: number },
): RecordedEnd | undefined {
  const begun = Math.max(now - lookBackMs, Date.parse(since) || 0);
  const ends = events.filter(({ time }) => Date.parse(time) >= begun).flatMap(endIn);
  const last = ends.at(-1);
  if (last === undefined) return undefined;
  const { index, text, time, exitCode } = last;
  const own = ends.filter((end) => end.index === index);
  const isRepeated = own.length >= manyEnds;
  const times = isRepeated ? `${String(own.length)} times since ${own[0]?.time ?? ''}. The last time: ` : `once, at ${time}: `;
  const said = text.trim();
  const message = `Instance ${index} runs, and ended ${times}${said}${said.endsWith('.') ? '' : '.'}`;
  const state = isRepeated ? 'failed' : 'well';
  return { state, cause: causeOfEnd(last), message, since: time, instance: Number(index), ...defined({ exitCode }) };
}

/** The same, by what the controller has recorded of the app; it writes that every ten seconds. */
export async function recordedEnd({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<RecordedEnd | undefined> {
  try {
    const map = await cluster.get(configMapType, space.guid, eventsName(app.metadata.name), signal);
    return lastEnd(readEvents(map), { since: app.status?.deployment?.since, now: Date.now() });
  } catch (error) {
    // Roles that an earlier kf made have no right to read it.
    if (isForbidden(error)) return undefined;
    throw error;
  }
}
