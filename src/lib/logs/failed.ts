// The kept log of a failed version: its pods are gone, but its first and last lines are in the app's status.

import type { CFApp, DeploymentStatus } from '../api/types.generated.ts';
import { noteEntry, type LogEntry, type LogSource } from './entry.ts';
import { defined } from '../defined.ts';

function sourceOf({ process = 'web', pod = '', container = 'application', generations = [] }: DeploymentStatus): LogSource {
  const index = Number(/-(\d+)$/.exec(pod)?.[1] ?? '0');
  const generation = generations.find((candidate) => candidate.process === process && candidate.state === 'Failed')?.hash;
  return { type: 'APP', process, index, pod, container, ...defined({ generation }) };
}

/** Where an entry is from, and whether it is a line. */
export type ReadEntry = Pick<LogEntry, 'source' | 'gap'>;

/**
 * The lines of the failed version, between two notes of kf. Empty while lines of its instances can be read.
 * @param read entries of the existing pods
 */
export function failedVersionEntries(app: CFApp, read: readonly ReadEntry[]): LogEntry[] {
  const deployment = app.status?.deployment;
  const { phase, reason, pod = '', since = '', logHead = [], logOmitted = 0, logTail = [] } = deployment ?? {};
  // A stopped app keeps the log of the failed version.
  const mayHave = phase === 'Failed' || phase === 'Stopped';
  if (deployment === undefined || !mayHave || logTail.length === 0) return [];
  const source = sourceOf(deployment);
  const isOfVersion = (other: LogSource): boolean =>
    other.pod === pod || (source.generation !== undefined && other.generation === source.generation);
  if (read.some((entry) => entry.gap === undefined && isOfVersion(entry.source))) return [];
  const place = { pod, container: source.container };
  const at = new Date(since);
  const { time } = noteEntry('', place, at);
  const lines = (texts: readonly string[]): LogEntry[] => texts.map((text) => ({ time, source, stream: 'OUT', text }));
  const note = (text: string): LogEntry => noteEntry(text, place, at);
  const left = logOmitted === 0 ? [] : [note(`... ${String(logOmitted)} ${logOmitted === 1 ? 'line' : 'lines'} left out ...`)];
  return [
    note(`The version that failed${reason === undefined ? '' : ` (${reason})`} is gone; it said:`),
    ...lines(logHead),
    ...left,
    ...lines(logTail),
    note('End of the version that failed.'),
  ];
}
