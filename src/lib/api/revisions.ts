// The revisions of an app (docs/decisions/0064): a ConfigMap of the app has a record of each, and a Secret the settings of the newest ones.

import type { ConfigMap, Secret } from './core.ts';
import type { CFProcess } from './types.generated.ts';
import { defined } from '../defined.ts';

/** Records that are kept. */
const mostRevisions = 100;
/** The newest revisions whose droplet and settings are kept too: a rollback can return to them, and to the one that served last. */
const mostDeployable = 10;

/** What the ConfigMap says of one revision. */
export interface RevisionRecord {
  /** Counts from 1. */
  version: number;
  guid: string;
  description: string;
  droplet: string;
  created: string;
  /** Who changed the app. */
  by?: string;
  /** The image of the droplet, by digest. */
  image?: string;
  /** Of the source: see `kf/content-hash`. */
  contentHash?: string;
  /** The git commit and the run of a CI system that the source was pushed from. */
  commit?: string;
  ciRun?: string;
  /** The revision under whose number the Secret has the settings of this one; left out when they are not kept any more. */
  settings?: number;
  /**
   * Known since the next revision came: whether it came before the whole app served by this one, because that was canceled, had failed, or a later push was
   * faster.
   */
  neverServed?: boolean;
  /** True beside `neverServed: false` when the app's last change by this revision has failed, after it had served. */
  failedLast?: boolean;
}

/** The settings of a revision: what the user set, as far as a rollback restores it. */
export interface RevisionSettings {
  /** The app's variables; base64. */
  env: Record<string, string>;
  /** The user's start command by process type; empty: the detected one. */
  commands: Record<string, string>;
  /** The sidecars of processes that have some, as JSON by process type. */
  sidecars: Record<string, string>;
}

/** Name of the ConfigMap with the records, and of the Secret with the settings. */
export const revisionsName = (app: string): string => `${app}-revisions`;

const isText = (value: unknown): value is string => typeof value === 'string';

const optionalTexts = ['by', 'image', 'contentHash', 'commit', 'ciRun'] as const;
type OptionalText = (typeof optionalTexts)[number];

function recordIn(key: string, text: string): RevisionRecord | undefined {
  const version = /^[1-9]\d{0,8}$/.test(key) ? Number(key) : 0;
  let value: Partial<Record<keyof RevisionRecord, unknown>> | null;
  try {
    value = JSON.parse(text) as Partial<Record<keyof RevisionRecord, unknown>> | null;
  } catch {
    return undefined;
  }
  const { guid, description, droplet, created, settings, neverServed, failedLast } = value ?? {};
  if (version === 0 || !isText(guid) || !isText(description) || !isText(droplet) || !isText(created)) return undefined;
  const texts = optionalTexts
    .map((name) => [name, value?.[name]] as const)
    .filter((entry): entry is [OptionalText, string] => isText(entry[1]));
  const optional: Partial<Record<OptionalText, string>> = Object.fromEntries(texts);
  return {
    ...{ version, guid, description, droplet, created, ...optional },
    ...defined({ settings: Number.isInteger(settings) ? (settings as number) : undefined }),
    ...defined({ neverServed: typeof neverServed === 'boolean' ? neverServed : undefined }),
    ...(failedLast === true ? { failedLast } : {}),
  };
}

/** The records, newest first. An entry that is none is left out. */
export function readRecords(map: ConfigMap | undefined): RevisionRecord[] {
  return Object.entries(map?.data ?? {})
    .flatMap(([key, text]) => recordIn(key, text) ?? [])
    .toSorted((a, b) => b.version - a.version)
    .slice(0, mostRevisions);
}

/** The records that stay, of all, newest first: the one that served last is among them, however many came after it. */
export function limitRecords(records: readonly RevisionRecord[], deployed: number | undefined): RevisionRecord[] {
  const newest = records.slice(0, mostRevisions);
  const serving = records.slice(mostRevisions).find(({ version }) => version === deployed);
  return serving === undefined ? newest : [...newest.slice(0, -1), serving];
}

/** The records, newest first, whose droplet and settings are kept: a rollback can return to them. The one that served last is among them. */
export function deployableOf(records: readonly RevisionRecord[], deployed: number | undefined): RevisionRecord[] {
  return records.filter(({ version }, index) => index < mostDeployable || version === deployed);
}

/** The entry of a record in the ConfigMap. */
export function printRecord({ version: _, ...record }: RevisionRecord): string {
  return JSON.stringify(record);
}

const isTexts = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isText);

const sorted = (record: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The entry of settings in the Secret, in base64. */
export function printSettings({ env, commands, sidecars }: RevisionSettings): string {
  const settings = { env: sorted(env), commands: sorted(commands), sidecars: sorted(sidecars) };
  return Buffer.from(JSON.stringify(settings), 'utf8').toString('base64');
}

/** The settings under a number in the Secret; undefined when they are missing or something else. */
export function settingsIn(secret: Secret | undefined, version: number | undefined): RevisionSettings | undefined {
  const data = version === undefined ? undefined : secret?.data?.[String(version)];
  try {
    const { env, commands, sidecars } = JSON.parse(Buffer.from(data ?? '', 'base64').toString('utf8')) as Partial<Record<string, unknown>>;
    return isTexts(env) && isTexts(commands) && isTexts(sidecars) ? { env, commands, sidecars } : undefined;
  } catch {
    return undefined;
  }
}

const isSame = (a: Record<string, string>, b: Record<string, string>): boolean =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => a[key] === b[key]);

export const isSameEnv = (a: RevisionSettings, b: RevisionSettings): boolean => isSame(a.env, b.env);

export const isSameSidecars = (a: RevisionSettings, b: RevisionSettings): boolean => isSame(a.sidecars, b.sidecars);

export const isSameSettings = (a: RevisionSettings, b: RevisionSettings): boolean =>
  isSameEnv(a, b) && isSame(a.commands, b.commands) && isSameSidecars(a, b);

/** The entry of a process's sidecars in {@link RevisionSettings}; undefined when it has none. */
export function printSidecars({ spec: { sidecars = [] } }: CFProcess): string | undefined {
  return sidecars.length === 0 ? undefined : JSON.stringify(sidecars);
}

/** The sentences of cf about the commands that differ. */
export function commandChanges(before: Record<string, string>, after: Record<string, string>): string[] {
  const types = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return types.flatMap((type) => {
    const [from, to] = [before[type], after[type]];
    if (from === to) return [];
    if (from === undefined) return [`New process type '${type}' added.`];
    if (to === undefined) return [`Process type '${type}' removed.`];
    const what = from === '' ? 'added' : to === '' ? 'removed' : 'updated';
    return [`Custom start command ${what} for '${type}' process.`];
  });
}
