// One log line with its source, and how the labels of a pod give the source.

import { annotations, labels } from '../api/group.ts';
import { sidecarOf } from '../api/names.ts';
import type { Pod } from '../api/pod-kind.ts';
import type { Stored } from '../api/object.ts';
import { defined } from '../defined.ts';

export interface LogSource {
  /** STG: a build; KF: a note of kf about the stream. */
  type: 'APP' | 'STG' | 'TASK' | 'KF';
  /** Process type, or the task's name. */
  process?: string;
  index?: number;
  pod: string;
  container: string;
  generation?: string;
}

/** A place of the log where lines may be missing. */
export interface LogGap {
  /** Time of the last line before it, or when its run began if none of that was read; left out when that is not known. RFC 3339 in UTC with nine decimals. */
  from?: string;
  /** Time of the first line after it. */
  to?: string;
  reason: string;
}

export interface LogEntry {
  /** RFC 3339 in UTC with nine decimals. */
  time: string;
  source: LogSource;
  stream: 'OUT' | 'ERR';
  text: string;
  /** The entry is no line, but says that lines may be missing here. */
  gap?: LogGap;
}

const generationLabel = 'kf.cloudfoundry.org/generation';

/** The name of the app's own container in the contract's pods; other containers were injected. */
const ownContainer = 'application';

function isOwnContainer(pod: Pod, container: string): boolean {
  const containers = pod.spec?.containers ?? [];
  const own = containers.find(({ name }) => name === ownContainer) ?? containers[0];
  return own?.name === container;
}

/** The source of a container's lines; undefined for containers that are not the app's (injected sidecars, foreign pods). */
export function sourceOf(pod: Stored<Pod>, container: string): LogSource | undefined {
  const own = pod.metadata.labels ?? {};
  const place = { pod: pod.metadata.name, container };
  if (own[labels.buildWorkloadName] !== undefined || own[labels.buildGuid] !== undefined) return { type: 'STG', index: 0, ...place };
  const sidecar = sidecarOf(container);
  if (sidecar === undefined && !isOwnContainer(pod, container)) return undefined;
  const task = own[labels.taskGuid];
  if (task !== undefined) return { type: 'TASK', process: pod.metadata.annotations?.[annotations.taskName] ?? task, index: 0, ...place };
  const process = own[labels.processType];
  if (process === undefined) return undefined;
  const index = Number(own[labels.podIndex] ?? Number.NaN);
  const generation = own[generationLabel];
  return {
    type: 'APP',
    process: sidecar === undefined ? process : `${process}/SIDECAR/${sidecar}`,
    ...(Number.isInteger(index) ? { index } : {}),
    ...place,
    ...defined({ generation }),
  };
}

/** A time as lines have it: RFC 3339 in UTC with nine decimals. */
export const timeOf = (at: Date): string => at.toISOString().replace('Z', '000000Z');

/** A note of kf in the stream. */
export function noteEntry(text: string, place: { pod: string; container: string }, now: Date = new Date()): LogEntry {
  return { time: timeOf(now), source: { type: 'KF', ...place }, stream: 'ERR', text };
}

/** A gap in the log of a source, before the line at `to`. */
export function gapEntry(source: LogSource, gap: LogGap, now: Date = new Date()): LogEntry {
  return { time: gap.to ?? gap.from ?? timeOf(now), source, stream: 'ERR', text: gap.reason, gap };
}
