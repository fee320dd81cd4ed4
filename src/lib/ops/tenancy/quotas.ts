// Quotas of orgs and of spaces: CFQuota objects, and the orgs and spaces that name them. The controller applies them.

import { randomUUID } from 'node:crypto';
import { annotations, kinds, limitsName } from '../../api/group.ts';
import { nearest } from '../../api/names.ts';
import type { Stored } from '../../api/object.ts';
import type { QuotaLimits } from '../../api/quotas.ts';
import type { QuotaSummary } from '../../api/results.ts';
import type { CFQuota } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { findOrg, findSpace, readOrgs, readSpaces } from '../../session/places.ts';
import type { OrgSession, Session } from '../../session/session.ts';
import { buildQuota } from '../../../templates/tenancy.ts';
import { untilApplied, type Unapplied } from './quota-wait.ts';

/** The quotas of orgs, or those of the spaces of one org. */
export interface QuotaPlace {
  ns: string;
  /** As in cf's sentences: `Space quota`. */
  noun: string;
  /** The command that lists them. */
  list: string;
}

export const ofOrgs = ({ root, bin }: Session): QuotaPlace => ({ ns: root, noun: 'Organization quota', list: `${bin} org-quotas` });
export const ofSpaces = ({ org, bin }: OrgSession): QuotaPlace => ({ ns: org.guid, noun: 'Space quota', list: `${bin} space-quotas` });

const limitKeys = [
  'totalMemoryMB',
  'instanceMemoryMB',
  'appInstances',
  'routes',
  'serviceInstances',
] as const satisfies (keyof QuotaLimits)[];

/** Limits by name; null means unlimited. */
export type NewLimits = Partial<Record<keyof QuotaLimits, number | null>>;

function summaryOf({ metadata, spec }: Stored<CFQuota>): QuotaSummary {
  const limits = Object.fromEntries(limitKeys.map((key) => [key, spec[key] ?? null])) as QuotaSummary['limits'];
  return { name: spec.displayName, guid: metadata.name, limits };
}

const byAge = (a: Stored<CFQuota>, b: Stored<CFQuota>): number =>
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '');

async function readQuotas({ cluster, signal }: Session, { ns }: QuotaPlace): Promise<Stored<CFQuota>[]> {
  const { items } = await cluster.list(kinds.quota, { ns, signal });
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined).toSorted(byAge);
}

/** All quotas, by name. */
export async function listQuotas(session: Session, place: QuotaPlace): Promise<QuotaSummary[]> {
  const quotas = await readQuotas(session, place);
  return quotas.map(summaryOf).toSorted((a, b) => a.name.localeCompare(b.name));
}

const named = (quotas: readonly Stored<CFQuota>[], name: string): Stored<CFQuota> | undefined =>
  quotas.find(({ spec }) => spec.displayName === name);

/** @throws KfError `not-found` in cf's words, with the nearest name */
async function findQuota(session: Session, place: QuotaPlace, name: string): Promise<Stored<CFQuota>> {
  const quotas = await readQuotas(session, place);
  const found = named(quotas, name);
  if (found !== undefined) return found;
  const names = quotas.map(({ spec }) => spec.displayName);
  const near = nearest(name, names);
  throw new KfError('not-found', `${place.noun} with name '${name}' not found.`, {
    hints: [...(near === undefined ? [] : [`Did you mean '${near}'?`]), place.list],
  });
}

/** @throws KfError `not-found` */
export async function showQuota(session: Session, place: QuotaPlace, name: string): Promise<QuotaSummary> {
  return summaryOf(await findQuota(session, place, name));
}

const limitsOf = (limits: NewLimits): QuotaLimits =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => typeof limit === 'number'));

/** As cf: without a flag there is no memory, and there are no routes and no services. */
const creationDefaults: NewLimits = { totalMemoryMB: 0, routes: 0, serviceInstances: 0 };

/** Creates a quota, unless there is one of that name. */
export async function createQuota(
  session: Session,
  place: QuotaPlace,
  name: string,
  limits: NewLimits,
): Promise<{ quota: QuotaSummary; created: boolean }> {
  const existing = named(await readQuotas(session, place), name);
  if (existing !== undefined) return { quota: summaryOf(existing), created: false };
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const spec = { displayName: name, ...limitsOf({ ...creationDefaults, ...limits }) };
  const wanted = buildQuota({ guid: randomUUID(), namespace: place.ns, spec }, author);
  return { quota: summaryOf(await session.cluster.create(kinds.quota, wanted, { signal: session.signal })), created: true };
}

/** The spaces in which a quota is to be in force. */
async function spacesUnder(session: Session, place: QuotaPlace, guid: string): Promise<{ name: string; guid: string }[]> {
  const names = ({ metadata }: { metadata: { annotations?: Record<string, string> } }): boolean =>
    metadata.annotations?.[annotations.quota] === guid;
  const toPlace = ({ metadata, spec }: { metadata: { name: string }; spec: { displayName: string } }) => ({
    name: spec.displayName,
    guid: metadata.name,
  });
  if (place.ns !== session.root) {
    const spaces = await readSpaces(session, { name: '', guid: place.ns });
    return spaces.filter(names).map(toPlace);
  }
  const orgs = (await readOrgs(session)).filter(names).map(toPlace);
  const spaces = await Promise.all(orgs.map((org) => readSpaces(session, org)));
  return spaces.flat().map(toPlace);
}

export interface QuotaChange {
  newName?: string | undefined;
  limits: NewLimits;
}

/** Changes a quota, and waits until it is in force. @throws KfError `not-found`, or `conflict` when the new name is taken */
export async function updateQuota(
  session: Session,
  place: QuotaPlace,
  name: string,
  { newName = name, limits }: QuotaChange,
): Promise<{ quota: QuotaSummary; unapplied: Unapplied[] }> {
  const quota = await findQuota(session, place, name);
  if (newName !== name && named(await readQuotas(session, place), newName) !== undefined)
    throw new KfError('conflict', `${place.noun} '${newName}' already exists.`, { hints: [place.list] });
  const { cluster, signal } = session;
  const metadata = { uid: quota.metadata.uid, annotations: { [annotations.changedBy]: await session.changedBy() } };
  const patch = { metadata, spec: { displayName: newName, ...limits } };
  const written = await cluster.mergePatch(kinds.quota, place.ns, quota.metadata.name, patch, { signal });
  const spaces = await spacesUnder(session, place, quota.metadata.name);
  return { quota: summaryOf(written), unapplied: await untilApplied(session, spaces, kindOf(session, place), written) };
}

const kindOf = ({ root }: Session, { ns }: QuotaPlace): 'org' | 'space' => (ns === root ? 'org' : 'space');

/**
 * Deletes a quota. A quota of spaces is taken from its spaces first.
 * @returns false when there is none of that name
 * @throws KfError `conflict` when orgs have it
 */
export async function deleteQuota(session: Session, place: QuotaPlace, name: string): Promise<boolean> {
  const quota = named(await readQuotas(session, place), name);
  if (quota === undefined) return false;
  const { uid, name: guid } = quota.metadata;
  const { cluster, signal, bin } = session;
  if (place.ns === session.root) {
    const orgs = (await readOrgs(session)).filter(({ metadata }) => metadata.annotations?.[annotations.quota] === guid);
    if (orgs.length > 0)
      throw new KfError(
        'conflict',
        'This quota is applied to one or more organizations. Apply different quotas to those organizations before deleting.',
        { hints: orgs.slice(0, 3).map(({ spec }) => `${bin} set-org-quota ${spec.displayName} default`) },
      );
  } else {
    for (const space of await spacesUnder(session, place, guid)) await nameQuota(session, kinds.space, place.ns, space.guid, null);
  }
  await session.changedBy();
  await cluster.delete(kinds.quota, place.ns, guid, { uid, signal });
  return true;
}

/** Writes into an org or space which quota it has. @param guid null: none */
async function nameQuota(
  session: Session,
  type: typeof kinds.org | typeof kinds.space,
  ns: string,
  name: string,
  guid: string | null,
): Promise<void> {
  const notes = { [annotations.changedBy]: await session.changedBy(), [annotations.quota]: guid };
  await session.cluster.mergePatch(type, ns, name, { metadata: { annotations: notes } }, { signal: session.signal });
}

/** Names for no quota, unless a quota has them: of cf's first quota, and what `kf org` shows of an org that has only the installation's limits. */
const noQuota: readonly string[] = ['default', limitsName];

/**
 * Gives an org a quota, and waits until it is in force in its spaces. `default` takes its quota away: the limits of the installation stay.
 * @throws KfError `not-found`
 */
export async function setOrgQuota(session: Session, orgName: string, name: string): Promise<Unapplied[]> {
  const org = await findOrg(session, orgName);
  const place = ofOrgs(session);
  if (noQuota.includes(name) && named(await readQuotas(session, place), name) === undefined) {
    await nameQuota(session, kinds.org, session.root, org.guid, null);
    return [];
  }
  const quota = await findQuota(session, place, name);
  await nameQuota(session, kinds.org, session.root, org.guid, quota.metadata.name);
  const spaces = (await readSpaces(session, org)).map(({ metadata, spec }) => ({ name: spec.displayName, guid: metadata.name }));
  return untilApplied(session, spaces, 'org', quota);
}

/** Gives a space a quota of its org, and waits until it is in force. @throws KfError `not-found` */
export async function setSpaceQuota(session: OrgSession, spaceName: string, name: string): Promise<Unapplied[]> {
  const space = await findSpace(session, session.org, spaceName);
  const quota = await findQuota(session, ofSpaces(session), name);
  await nameQuota(session, kinds.space, session.org.guid, space.guid, quota.metadata.name);
  return untilApplied(session, [space], 'space', quota);
}

/** Takes a quota from a space. @throws KfError `not-found`, or `conflict` when the space has another one or none */
export async function unsetSpaceQuota(session: OrgSession, spaceName: string, name: string): Promise<void> {
  const space = await findSpace(session, session.org, spaceName);
  const quota = await findQuota(session, ofSpaces(session), name);
  const { cluster, org, signal, bin } = session;
  const live = await cluster.get(kinds.space, org.guid, space.guid, signal);
  if (live?.metadata.annotations?.[annotations.quota] !== quota.metadata.name)
    throw new KfError(
      'conflict',
      `Unable to remove quota from space with guid '${space.guid}'. Ensure the space quota is applied to this space.`,
      { hints: [`${bin} space ${spaceName}`] },
    );
  await nameQuota(session, kinds.space, org.guid, space.guid, null);
}

/** The name of the quota that an org or space names; undefined when it has none. */
export async function quotaNameOf(
  session: Session,
  ns: string,
  holder: { metadata: { annotations?: Record<string, string> } },
): Promise<string | undefined> {
  const guid = holder.metadata.annotations?.[annotations.quota];
  if (guid === undefined || guid === '') return undefined;
  return (await session.cluster.get(kinds.quota, ns, guid, session.signal))?.spec.displayName;
}
