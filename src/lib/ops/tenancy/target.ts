// target, api, auth: what the next commands work on.

import { kinds } from '../../api/group.ts';
import type { TargetDetails } from '../../api/results.ts';
import { defined } from '../../defined.ts';
import { KfError, messageOf } from '../../errors.ts';
import { findOrg, findSpace, listSpaces } from '../../session/places.ts';
import type { Session } from '../../session/session.ts';
import { readStored, saveState, type NameAndGuid, type TargetState } from '../../session/state.ts';
import { followedApi } from '../../v3/version.ts';

/** The API server's version, e.g. `v1.36.0`. */
export async function serverVersion({ cluster, signal }: Session): Promise<string> {
  const answer = await cluster.raw({ method: 'GET', path: '/version', signal });
  let text = '';
  for await (const chunk of answer.body) text += String(chunk);
  if (answer.status !== 200) return 'unknown';
  return (JSON.parse(text) as { gitVersion?: string }).gitVersion ?? 'unknown';
}

export interface TargetOptions {
  org?: string | undefined;
  space?: string | undefined;
}

function base(session: Session): TargetState {
  const { context, server } = session.cluster.identity;
  const { org: _org, space: _space, ...rest } = session.state;
  return { ...rest, context, server };
}

/**
 * The result of `find`. When it fails, the target that it was to set is cleared, so that the next command does not work in the former one; only
 * `kept` stays.
 */
async function orForget<T>(session: Session, kept: { org?: NameAndGuid }, find: () => Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (error) {
    try {
      session.save({ ...base(session), ...kept });
    } catch (unsaved) {
      if (error instanceof KfError) error.hints.push(`The previous target stays. ${messageOf(unsaved)}`);
    }
    throw error;
  }
}

/** Clears org and space, or only the space, before there is a session: even with a missing context, the former target must not stay. */
export function forgetPlace(env: Session['env'], what: 'org' | 'space'): void {
  const { org, space: _space, ...rest } = readStored(env).state;
  saveState(env, { ...rest, ...(what === 'org' || org === undefined ? {} : { org }) });
}

/** A space is chosen in an org. @param whyNone why the default org does not serve */
export function spaceWithoutOrg({ bin }: Session, whyNone?: string): KfError {
  return new KfError('usage', 'An org must be targeted before targeting a space.', {
    hints: [`${bin} target -o ORG -s SPACE`, ...(whyNone === undefined ? [] : [whyNone])],
  });
}

/** The org in which to choose a space: the targeted one, or the default that `kf target` shows to a user without a target. */
async function currentOrg(session: Session): Promise<NameAndGuid> {
  const whyNone = session.org === undefined ? await session.findPlaceIfAny() : undefined;
  if (session.org !== undefined) return session.org;
  throw spaceWithoutOrg(session, whyNone);
}

/** The org's space, if it has exactly one. */
async function onlySpace(session: Session, org: NameAndGuid): Promise<NameAndGuid | undefined> {
  const spaces = await listSpaces(session, org);
  return spaces.length === 1 ? spaces[0] : undefined;
}

/** cf's rules: `-o` clears the space and chooses the org's only one; on failure the target that was to be set is cleared. */
export async function setTarget(
  session: Session,
  { org: orgName, space: spaceName }: TargetOptions,
): Promise<{ org: NameAndGuid; space?: NameAndGuid }> {
  const org = orgName === undefined ? await currentOrg(session) : await orForget(session, {}, () => findOrg(session, orgName));
  const space = await orForget(session, { org }, () =>
    spaceName === undefined ? onlySpace(session, org) : findSpace(session, org, spaceName),
  );
  const place = { org, ...defined({ space }) };
  session.save({ ...base(session), ...place });
  return place;
}

/**
 * Changes the saved target after a wait, if it is still the org or space with that GUID: another command may have set a target meanwhile.
 * @returns whether it was
 */
export function changeTargetOf(
  session: Session,
  what: 'org' | 'space',
  guid: string,
  change: (saved: TargetState) => TargetState,
): boolean {
  const { context, server } = session.cluster.identity;
  const saved = readStored(session.env).state;
  if (saved.context !== context || (saved.server ?? server) !== server || saved[what]?.guid !== guid) return false;
  session.saveOrWarn(change(saved));
  return true;
}

interface Place {
  org: NameAndGuid;
  space: NameAndGuid;
}

/** The targeted org and space of this cluster, if both exist. */
async function validPlace(session: Session): Promise<Place | undefined> {
  const { org, space } = session.state;
  if (org === undefined || space === undefined) return undefined;
  const { cluster, root, signal } = session;
  const found = await Promise.all([cluster.get(kinds.org, root, org.guid, signal), cluster.get(kinds.space, org.guid, space.guid, signal)]);
  const exist = found.every((object) => object !== undefined && object.metadata.deletionTimestamp === undefined);
  return exist ? { org, space } : undefined;
}

/** Targets the org and space of a setup, unless others are targeted in this cluster and exist. Returns what is targeted. */
export async function targetAfterSetup(session: Session, own: Place): Promise<Place> {
  const { org, space } = (await validPlace(session)) ?? own;
  session.saveOrWarn({ ...base(session), org, space });
  return { org, space };
}

export async function describeTarget(session: Session, place: { org?: NameAndGuid; space?: NameAndGuid }): Promise<TargetDetails> {
  const { context, server } = session.cluster.identity;
  return {
    endpoint: server,
    apiVersion: followedApi,
    kubernetesVersion: await serverVersion(session),
    context,
    user: session.user,
    ...defined({ org: place.org, space: place.space }),
  };
}
