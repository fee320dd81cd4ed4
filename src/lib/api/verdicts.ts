// Why a revision failed, as the controller keeps it (docs/decisions/0067): an entry of the ConfigMap with the records of the app's revisions.

import type { ConfigMap } from './core.ts';
import { readCause, type CauseCode } from './causes.ts';
import { leaveOut, type Lines } from './kept-lines.ts';
import { cutText } from './text.ts';
import { defined } from '../defined.ts';

/** Of one app; with 8 KiB each, and the records, the ConfigMap stays far below the 1 MiB of an object. */
export const mostVerdicts = 20;
/** Of one entry, as JSON in UTF-8: an escaped control character takes six bytes. */
export const mostVerdictBytes = 8 * 1024;
const longestMessage = 1_000;
const longestName = 253;

/** With the first and last lines of the container. */
export interface Verdict extends Lines {
  /** Of the revision. */
  version: number;
  /** `kf/deploy-id` of the change that failed. */
  change: string;
  cause: CauseCode;
  /** One sentence. */
  message: string;
  at: string;
  process?: string;
  pod?: string;
  container?: string;
  exitCode?: number;
}

const keyOf = (version: number): string => `verdict-${String(version)}`;

/** The revision whose verdict an entry is; undefined for other entries. */
function versionOf(key: string): number | undefined {
  const digits = /^verdict-([1-9]\d{0,8})$/.exec(key)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The entry of a verdict: lines are left out, the first ones of the middle first, until it has no more bytes than it may. */
export function printVerdict({ version: _, ...verdict }: Verdict): string {
  const { process, pod, container } = verdict;
  const cut = (text: string | undefined): string | undefined => (text === undefined ? undefined : cutText(text, longestName));
  const names = defined({ process: cut(process), pod: cut(pod), container: cut(container) });
  const kept = { ...verdict, ...names, change: cutText(verdict.change, longestName), message: cutText(verdict.message, longestMessage) };
  const print = (lines: Lines): string => JSON.stringify({ ...kept, ...lines });
  return print(leaveOut(verdict, (lines) => Buffer.byteLength(print(lines)) <= mostVerdictBytes));
}

const isText = (value: unknown): value is string => typeof value === 'string';
const text = (value: unknown): string | undefined => (isText(value) ? value : undefined);
const count = (value: unknown): number | undefined => (Number.isSafeInteger(value) ? (value as number) : undefined);
const lines = (value: unknown): string[] => (Array.isArray(value) ? value.filter(isText) : []);

function verdictIn(key: string, entry: string): Verdict | undefined {
  const version = versionOf(key);
  if (version === undefined) return undefined;
  let read: Partial<Record<keyof Verdict, unknown>> | null;
  try {
    read = JSON.parse(entry) as Partial<Record<keyof Verdict, unknown>> | null;
  } catch {
    return undefined;
  }
  const { change, cause, message, at, process, pod, container, exitCode, head, omitted, tail } = read ?? {};
  if (!isText(change) || !isText(message) || !isText(at)) return undefined;
  return {
    ...{ version, change, cause: readCause(text(cause)), message, at },
    ...defined({ process: text(process), pod: text(pod), container: text(container), exitCode: count(exitCode) }),
    ...{ head: lines(head), omitted: count(omitted) ?? 0, tail: lines(tail) },
  };
}

/** All verdicts, of the newest revision first. An entry that is none is left out. */
export function readVerdicts(map: ConfigMap | undefined): Verdict[] {
  return Object.entries(map?.data ?? {})
    .flatMap(([key, entry]) => verdictIn(key, entry) ?? [])
    .toSorted((a, b) => b.version - a.version);
}

/** The entries of verdicts on these revisions, as they are. */
export function verdictEntries(map: ConfigMap | undefined, versions: ReadonlySet<number>): Record<string, string> {
  return Object.fromEntries(Object.entries(map?.data ?? {}).filter(([key]) => versions.has(versionOf(key) ?? 0)));
}

/** The change of the entries that adds a verdict, and drops the oldest ones of too many. */
export function withVerdict(map: ConfigMap, verdict: Verdict): Record<string, string | null> {
  const present = Object.keys(map.data ?? {}).flatMap((key) => versionOf(key) ?? []);
  const others = present.filter((version) => version !== verdict.version).toSorted((a, b) => b - a);
  const dropped = others.slice(mostVerdicts - 1).map((version) => [keyOf(version), null] as const);
  return { ...Object.fromEntries(dropped), [keyOf(verdict.version)]: printVerdict(verdict) };
}
