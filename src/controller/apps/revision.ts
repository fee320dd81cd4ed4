// Records a revision of an app when it is started with another droplet, other variables or other commands than the last one (docs/decisions/0064).

import { randomUUID } from 'node:crypto';
import { configMapType, secretType, type ConfigMap, type Secret } from '../../lib/api/core.ts';
import { annotations, kinds, labels } from '../../lib/api/group.ts';
import { changeOf, isHeld } from '../../lib/api/held.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import {
  commandChanges, deployableOf, isSameEnv, isSameSettings, isSameSidecars, limitRecords, printRecord, printSettings, printSidecars, readRecords, revisionsName, settingsIn,
  type RevisionRecord, type RevisionSettings,
} from '../../lib/api/revisions.ts'; // prettier-ignore
import { rolledBackTo } from '../../lib/api/rollout.ts';
import { cutText } from '../../lib/api/text.ts';
import { verdictEntries } from '../../lib/api/verdicts.ts';
import type { AppRevision, CFApp, CFProcess, Droplet } from '../../lib/api/types.generated.ts';
import { defined } from '../../lib/defined.ts';
import { messageOf } from '../../lib/errors.ts';
import { isConflict } from '../../lib/kube/errors.ts';
import { ownerReference } from '../../templates/metadata.ts';
import { haveVariables, secretData, type SecretData } from '../app-variables.ts';
import { timestamp } from '../runtime/clock.ts';
import { isOwnedBy } from '../runtime/owner.ts';
import type { Context } from '../runtime/reconciler.ts';

const longestDescription = 500;

/** The app as it is started now. */
interface Present {
  droplet: string;
  /** Undefined when the variables of the change are missing. */
  settings: RevisionSettings | undefined;
}

/**
 * True when nothing is to record for the app's last change. A revision without the variables of its change is followed by one that has them, unless other
 * settings wait for the next start by now.
 */
function isRecorded(app: Stored<CFApp>, processes: readonly Stored<CFProcess>[]): boolean {
  const { revision } = app.status ?? {};
  if (revision?.change !== changeOf(app)) return false;
  return revision.lacksSettings !== true || processes.some((process) => isHeld(app, process));
}

/**
 * The app's `status.revision` for its last change: of an app that was started since with something new, a revision that is recorded now. A failure to
 * record never stops the start; the next reconcile tries again.
 */
export async function recordRevision(
  context: Context,
  app: Stored<CFApp>,
  processes: readonly Stored<CFProcess>[],
  droplet: Droplet,
): Promise<AppRevision | undefined> {
  const before = app.status?.revision;
  if (app.spec.desiredState !== 'STARTED' || isRecorded(app, processes)) return before;
  try {
    return await record(context, app, processes, droplet);
  } catch (error) {
    if (isConflict(error) || context.signal.aborted) throw error;
    context.log.warn('a revision could not be recorded yet', { app: app.metadata.name, error: messageOf(error) });
    return before;
  }
}

async function record(
  context: Context,
  app: Stored<CFApp>,
  processes: readonly Stored<CFProcess>[],
  droplet: Droplet,
): Promise<AppRevision | undefined> {
  const { namespace } = app.metadata;
  const [map, kept, env] = await Promise.all([
    ownObject(context, app, configMapType),
    ownObject(context, app, secretType),
    secretData(context, namespace, app.spec.envSecretName),
  ]);
  const isKnown = env !== undefined && (await isOfChange(context, app, processes, env));
  // Without its variables the app does not start, and the verdict on this revision says so.
  const settings = isKnown ? { env, commands: commandsOf(processes, droplet), sidecars: sidecarsOf(processes) } : undefined;
  const present: Present = { droplet: app.spec.currentDropletRef?.name ?? '', settings };
  const records = readRecords(map);
  const former = settingsIn(kept, records[0]?.settings);
  const description = whatIsNew(app, present, records[0], former);
  const { image } = droplet.registry;
  const now = description === undefined ? records : await add(context, app, { map, kept, records, present, former, description, image });
  const deployed = app.status?.revision?.deployed;
  return {
    change: changeOf(app),
    version: now[0]?.version ?? 0,
    droplets: [...new Set(deployableOf(now, deployed).map((revision) => revision.droplet))],
    ...defined({ deployed }),
    ...(now[0]?.settings === undefined ? { lacksSettings: true } : {}),
  };
}

/** False for variables that were set after the change had started. The first revision of an app has the stored ones (docs/decisions/0064). */
async function isOfChange(
  context: Context,
  app: Stored<CFApp>,
  processes: readonly Stored<CFProcess>[],
  env: SecretData,
): Promise<boolean> {
  return app.status?.revision === undefined || (await haveVariables(context, app, processes, env));
}

/** The ConfigMap or the Secret of the app. One of an app that is gone is deleted, before the garbage collector does it. */
async function ownObject<T extends ConfigMap | Secret>(
  context: Context,
  app: Stored<CFApp>,
  type: ResourceType<T>,
): Promise<Stored<T> | undefined> {
  const { namespace, name } = app.metadata;
  const found = await context.cluster.get(type, namespace, revisionsName(name), context.signal);
  if (found === undefined || isOwnedBy(found, app)) return found;
  await context.cluster.delete(type, namespace, found.metadata.name, { uid: found.metadata.uid, signal: context.signal });
  return undefined;
}

/** The user's commands, by the process types of app and droplet: those that the droplet adds may not exist yet. */
function commandsOf(processes: readonly Stored<CFProcess>[], { processTypes = [] }: Droplet): Record<string, string> {
  const found = processTypes.map(({ type }) => [type, ''] as const);
  const own = processes.map(({ spec }) => [spec.processType, spec.command ?? ''] as const);
  return Object.fromEntries([...found, ...own]);
}

function sidecarsOf(processes: readonly Stored<CFProcess>[]): Record<string, string> {
  const entries = processes.map((process) => [process.spec.processType, printSidecars(process)] as const);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** The description of a new revision in cf's sentences; undefined when nothing is new. */
function whatIsNew(
  app: Stored<CFApp>,
  { droplet, settings }: Present,
  newest: RevisionRecord | undefined,
  former: RevisionSettings | undefined,
): string | undefined {
  if (newest === undefined) return 'Initial revision.';
  const news = [...(newest.droplet === droplet ? [] : ['New droplet deployed.']), ...newSettings(newest, former, settings)];
  if (news.length === 0) return undefined;
  const version = rolledBackTo(app);
  if (version !== undefined) news.push(`Rolled back to revision ${String(version)}.`);
  return cutText(news.toSorted().join(' '), longestDescription);
}

const newVariables = 'New environment variables deployed.';

function newSettings(newest: RevisionRecord, former: RevisionSettings | undefined, settings: RevisionSettings | undefined): string[] {
  if (settings === undefined) return newest.settings === undefined ? [] : [newVariables];
  return [
    ...(former !== undefined && isSameEnv(former, settings) ? [] : [newVariables]),
    ...(former === undefined || isSameSidecars(former, settings) ? [] : ['Sidecars updated.']),
    ...commandChanges(former?.commands ?? settings.commands, settings.commands),
  ];
}

interface Addition {
  map: Stored<ConfigMap> | undefined;
  kept: Stored<Secret> | undefined;
  records: readonly RevisionRecord[];
  present: Present;
  former: RevisionSettings | undefined;
  description: string;
  /** Of the droplet. */
  image: string;
}

/** Longer texts of these annotations are not from kf. */
const longestOrigin = 512;

/** What the pushed package says about its source; that of an earlier revision when the package is gone. */
async function sourceOf(context: Context, app: Stored<CFApp>, { present, records }: Addition): Promise<Partial<RevisionRecord>> {
  const { namespace } = app.metadata;
  const earlier = records.find(({ droplet }) => droplet === present.droplet);
  if (earlier !== undefined) return defined({ contentHash: earlier.contentHash, commit: earlier.commit, ciRun: earlier.ciRun });
  const build = context.stores.of(kinds.build).get(namespace, present.droplet);
  const source = build && (await context.cluster.get(kinds.package, namespace, build.spec.packageRef.name, context.signal));
  const text = (name: string): string | undefined => {
    const value = source?.metadata.annotations?.[name];
    return value === undefined || value.length > longestOrigin ? undefined : value;
  };
  return defined({ contentHash: text(annotations.contentHash), commit: text(annotations.commit), ciRun: text(annotations.ciRun) });
}

/** Writes the settings first, if they are new, and then the record, so that a record never lacks its settings. */
async function add(context: Context, app: Stored<CFApp>, addition: Addition): Promise<RevisionRecord[]> {
  const { map, kept, records, present, former, description, image } = addition;
  const version = Math.max(records[0]?.version ?? 0, app.status?.revision?.version ?? 0) + 1;
  const { settings } = present;
  const isNew = settings !== undefined && (former === undefined || !isSameSettings(former, settings));
  const left = isNew ? await addSettings(context, app, { kept, records, version, settings }) : undefined;
  const number = isNew ? version : records[0]?.settings;
  const revision: RevisionRecord = {
    version,
    guid: randomUUID(),
    description,
    droplet: present.droplet,
    created: timestamp(context.now()),
    image,
    ...(await sourceOf(context, app, addition)),
    ...defined({ by: app.metadata.annotations?.[annotations.changedBy], settings: settings === undefined ? undefined : number }),
  };
  const before = left === undefined ? records : records.map((old) => withSettings(old, left));
  const now = limitRecords([revision, ...withService(app, before)], app.status?.revision?.deployed);
  const verdicts = verdictEntries(map, new Set(now.map((one) => one.version)));
  const wanted = { ...verdicts, ...Object.fromEntries(now.map((one) => [String(one.version), printRecord(one)])) };
  await writeData(context, app, configMapType, map, wanted);
  context.event(kinds.app, app, { type: 'Normal', reason: 'RevisionCreated', message: `Revision ${String(version)}: ${description}` });
  return now;
}

/** The records before a new one. The newest of them can no longer come to serve: a rollback without a version leaves it out if it never did. */
function withService({ metadata, status }: Stored<CFApp>, [newest, ...older]: readonly RevisionRecord[]): RevisionRecord[] {
  if (newest === undefined) return [];
  // Of an app that was restored without its status, nothing is known.
  const known = status?.revision === undefined ? undefined : status.revision.deployed !== newest.version;
  const { id, phase } = status?.deployment ?? {};
  const isOfBefore = id !== metadata.annotations?.[annotations.deployId];
  const failedLast = known === false && isOfBefore && phase === 'Failed';
  return [{ ...newest, ...defined({ neverServed: known }), ...(failedLast ? { failedLast } : {}) }, ...older];
}

/** The record without its settings when they are not kept. */
function withSettings({ settings, ...record }: RevisionRecord, kept: ReadonlySet<string>): RevisionRecord {
  return settings === undefined || !kept.has(String(settings)) ? record : { ...record, settings };
}

/** A Secret has at most 1 MiB. */
const mostSettingsBytes = 960 * 1024;

interface NewSettings {
  kept: Stored<Secret> | undefined;
  records: readonly RevisionRecord[];
  version: number;
  settings: RevisionSettings;
}

/**
 * Writes new settings beside those of the revision that served last and of the newest ones, as far as they fit. The settings of one revision more than
 * can be deployed stay, for the case that the record of the new one is never written.
 * @returns the numbers whose settings are kept
 */
async function addSettings(
  context: Context,
  app: Stored<CFApp>,
  { kept, records, version, settings }: NewSettings,
): Promise<ReadonlySet<string>> {
  const own = printSettings(settings);
  const wanted: Record<string, string> = { [String(version)]: own };
  let bytes = own.length * (3 / 4);
  /** False when the settings of the revision do not fit. */
  const keep = ({ settings: number }: RevisionRecord): boolean => {
    const text = number === undefined ? undefined : kept?.data?.[String(number)];
    if (text === undefined || String(number) in wanted) return true;
    if (bytes + text.length * (3 / 4) > mostSettingsBytes) return false;
    bytes += text.length * (3 / 4);
    wanted[String(number)] = text;
    return true;
  };
  const deployed = app.status?.revision?.deployed;
  const serving = records.find((record) => record.version === deployed);
  // Those of newer ones, which may all have failed, come after it.
  if (serving !== undefined) keep(serving);
  for (const record of deployableOf(records, deployed)) if (!keep(record)) break;
  await writeData(context, app, secretType, kept, wanted);
  return new Set(Object.keys(wanted));
}

/** Writes the entries that differ, in one request. Another controller that has written in between makes it a conflict. */
async function writeData<T extends ConfigMap | Secret>(
  context: Context,
  app: Stored<CFApp>,
  type: ResourceType<T>,
  live: Stored<T> | undefined,
  wanted: Record<string, string>,
): Promise<void> {
  const { namespace, name } = app.metadata;
  const { signal } = context;
  // Developers could write it before policy kf-people-records, and nothing changes one that they made immutable.
  const isFixed = live?.immutable === true;
  if (isFixed) await context.cluster.delete(type, namespace, live.metadata.name, { uid: live.metadata.uid, signal });
  if (live === undefined || isFixed) {
    const metadata = {
      name: revisionsName(name),
      namespace,
      labels: { [labels.appGuid]: name },
      ownerReferences: [ownerReference(kinds.app, app)],
    };
    const made = { apiVersion: 'v1', kind: type.kind, metadata, data: wanted };
    await context.cluster.create(type, made as KubeObject as T, { signal });
    return;
  }
  const present = live.data ?? {};
  const gone = Object.keys(present).filter((key) => !(key in wanted));
  const data = {
    ...Object.fromEntries(Object.entries(wanted).filter(([key, text]) => present[key] !== text)),
    ...Object.fromEntries(gone.map((key) => [key, null])),
  };
  const { resourceVersion } = live.metadata;
  await context.cluster.mergePatch(type, namespace, live.metadata.name, { metadata: { resourceVersion }, data }, { signal });
}
