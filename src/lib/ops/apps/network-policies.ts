// Network policies: which app may connect to which. Each space has a half of a policy, so it takes the right to write in both (docs/decisions/0059).

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { NetworkPolicySummary } from '../../api/results.ts';
import type { CFApp, CFNetworkPolicy, CFNetworkPolicySpec } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { assertAccess } from '../../kube/access.ts';
import { isAlreadyExists, isForbidden } from '../../kube/errors.ts';
import { findOrg, findSpace, listOrgs, listSpaces } from '../../session/places.ts';
import type { SpaceSession } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { sleep } from '../../wait.ts';
import { buildPolicyHalf, type PolicyPorts } from '../../../templates/network-policies.ts';
import { findApp } from '../find.ts';

type Direction = CFNetworkPolicySpec['direction'];

export interface PolicyPlace {
  /** Default: the targeted ones. */
  org?: string | undefined;
  space?: string | undefined;
}

/** The space of the destination. @throws KfError `not-found` */
export async function findDestinationSpace(session: SpaceSession, { org, space }: PolicyPlace): Promise<NameAndGuid> {
  if (space === undefined) return session.space;
  return findSpace(session, org === undefined ? session.org : await findOrg(session, org), space);
}

export interface PolicyEnds {
  source: Stored<CFApp>;
  destination: Stored<CFApp>;
}

/** Both apps. @throws KfError `not-found` for the first that does not exist */
export async function findEnds(
  session: SpaceSession,
  names: { source: string; destination: string },
  to: NameAndGuid,
): Promise<PolicyEnds> {
  const { cluster, signal, bin } = session;
  const source = await findApp(session, names.source);
  return { source, destination: await findApp({ cluster, signal, bin, space: to }, names.destination) };
}

interface Half {
  app: Stored<CFApp>;
  direction: Direction;
  peer: Stored<CFApp>;
}

/** The half of the destination first: as long as it is alone, nothing is allowed. */
const halvesOf = ({ source, destination }: PolicyEnds): [Half, Half] => [
  { app: destination, direction: 'accepts', peer: source },
  { app: source, direction: 'connects', peer: destination },
];

/** What makes two halves equal, but for the app that has them. */
type Content = Pick<CFNetworkPolicySpec, 'direction' | 'peer' | 'protocol' | 'port' | 'endPort'>;

/** True of a half with that content. Its name does not tell: it is made of uids, and those of a half from a backup are not those of now. */
const isHalf =
  (app: string, { direction, peer, protocol, port, endPort = port }: Content) =>
  ({ spec }: Stored<CFNetworkPolicy>): boolean =>
    spec.appRef.name === app &&
    spec.direction === direction &&
    spec.peer.space === peer.space &&
    spec.peer.app === peer.app &&
    spec.peer.uid === peer.uid &&
    spec.protocol === protocol &&
    spec.port === port &&
    (spec.endPort ?? spec.port) === endPort;

const peerOf = ({ metadata: { namespace: space, name, uid } }: Stored<CFApp>): Content['peer'] => ({ space, app: name, uid });

/** The objects of a half: one, or none, or those of before and after a restore. */
async function findHalf(
  { cluster, signal }: SpaceSession,
  { app, direction, peer }: Half,
  ports: PolicyPorts,
): Promise<Stored<CFNetworkPolicy>[]> {
  const { items } = await cluster.list(kinds.networkPolicy, { ns: app.metadata.namespace, signal });
  return items.filter(isHalf(app.metadata.name, { direction, peer: peerOf(peer), ...ports }));
}

/** Undefined when another command has created it meanwhile. */
async function createHalf(
  session: SpaceSession,
  { app, direction, peer }: Half,
  ports: PolicyPorts,
): Promise<Stored<CFNetworkPolicy> | undefined> {
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const half = buildPolicyHalf(app, direction, { peer, ports }, author);
  try {
    return await session.cluster.create(kinds.networkPolicy, half, { signal: session.signal });
  } catch (error) {
    if (isAlreadyExists(error)) return undefined;
    throw error;
  }
}

/**
 * Deletes the halves of these spaces whose other app is gone: they allow nothing, no list shows them, and they count in the quota of the space. What the caller may not read or delete stays.
 * @returns whether any was deleted
 */
async function removeLeftovers(session: SpaceSession, spaces: ReadonlySet<string>): Promise<boolean> {
  const { cluster, signal } = session;
  const lists = await Promise.all([...spaces].map((ns) => ifAllowed(cluster.list(kinds.networkPolicy, { ns, signal }))));
  const halves = lists.flatMap((list) => list?.items ?? []);
  // After the halves, which are made after their apps: an app that is not there now is gone for good.
  const peers = [...new Set(halves.map(({ spec }) => spec.peer.space))];
  const apps = new Map(await Promise.all(peers.map(async (ns) => [ns, await ifAllowed(cluster.list(kinds.app, { ns, signal }))] as const)));
  let isDeleted = false;
  for (const { metadata, spec } of halves) {
    const there = apps.get(spec.peer.space)?.items;
    if (there === undefined || there.some((app) => app.metadata.name === spec.peer.app && app.metadata.uid === spec.peer.uid)) continue;
    const { namespace, name, uid } = metadata;
    if ((await ifAllowed(cluster.delete(kinds.networkPolicy, namespace, name, { uid, signal }))) === true) isDeleted = true;
  }
  return isDeleted;
}

/** Waits between the tries to create a half in a space whose quota was full of leftovers: the count follows their deletion a moment later. */
const countPausesMs = [200, 400, 800, 1_600, 3_200];

const isQuotaRefusal = (error: unknown): boolean => error instanceof KfError && error.code === 'quota';

/** As {@link createHalf}. @param isFreed leftovers were deleted just now */
async function createCounted(session: SpaceSession, half: Half, ports: PolicyPorts, isFreed: boolean): ReturnType<typeof createHalf> {
  const pauses = isFreed ? countPausesMs : [];
  for (let tries = 0; ; tries += 1) {
    try {
      return await createHalf(session, half, ports);
    } catch (error) {
      const pauseMs = pauses[tries];
      if (pauseMs === undefined || !isQuotaRefusal(error)) throw error;
      await sleep(pauseMs, session.signal);
    }
  }
}

/**
 * Allows connections from one app to the other.
 * @returns false when they were allowed already
 * @throws KubeError `forbidden` when the caller may not write in one of the spaces; then nothing is written
 */
export async function addNetworkPolicy(session: SpaceSession, ends: PolicyEnds, ports: PolicyPorts): Promise<boolean> {
  const { group, plural } = kinds.networkPolicy;
  const halves = halvesOf(ends);
  const spaces = new Set(halves.map(({ app }) => app.metadata.namespace));
  const questions = [...spaces].map((ns) => ({ verb: 'create', group, resource: plural, ns }));
  await assertAccess(session.cluster, questions, session.signal);
  const isFreed = await removeLeftovers(session, spaces);
  const found = await Promise.all(halves.map((half) => findHalf(session, half, ports)));
  const made: Stored<CFNetworkPolicy>[] = [];
  try {
    for (const [at, half] of halves.entries()) {
      const one = found[at]?.length === 0 ? await createCounted(session, half, ports, isFreed) : undefined;
      if (one !== undefined) made.push(one);
    }
  } catch (error) {
    // A quota refused the second one. The first one alone allows nothing, is listed nowhere, and counts in the quota of its space.
    if (isQuotaRefusal(error)) for (const half of made) await takeBack(session, half);
    throw error;
  }
  return made.length > 0;
}

/** Deletes a half that this command made; what goes wrong is less than why. */
async function takeBack({ cluster }: SpaceSession, { metadata: { namespace, name, uid } }: Stored<CFNetworkPolicy>): Promise<void> {
  await cluster.delete(kinds.networkPolicy, namespace, name, { uid }).catch(() => undefined);
}

async function deleteHalf(session: SpaceSession, half: Half, ports: PolicyPorts): Promise<boolean> {
  const { cluster, signal } = session;
  let isDeleted = false;
  for (const { metadata } of await findHalf(session, half, ports)) {
    const { namespace, name, uid } = metadata;
    if (await cluster.delete(kinds.networkPolicy, namespace, name, { uid, signal })) isDeleted = true;
  }
  return isDeleted;
}

export interface RemovedPolicy {
  removed: boolean;
  /** The caller may not write in the space of the destination, which keeps its half. The connection is refused nevertheless. */
  leftAtDestination: boolean;
}

/** Forbids the connections again. To delete one half is enough for that, so a missing right in the other space is no error. */
export async function removeNetworkPolicy(session: SpaceSession, ends: PolicyEnds, ports: PolicyPorts): Promise<RemovedPolicy> {
  const [accepts, connects] = halvesOf(ends);
  const connected = await deleteHalf(session, connects, ports);
  const accepted = await ifAllowed(deleteHalf(session, accepts, ports));
  await removeLeftovers(session, new Set([accepts, connects].map(({ app }) => app.metadata.namespace)));
  return { removed: connected || accepted === true, leftAtDestination: accepted === undefined };
}

/** Undefined when the caller has not the right. */
async function ifAllowed<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

type Place = Pick<NetworkPolicySummary, 'destinationSpace' | 'destinationOrg'>;

/** Names of the spaces with these GUIDs and of their orgs, as far as the caller may read them. */
async function placesOf(session: SpaceSession, guids: readonly string[]): Promise<Map<string, Place>> {
  const { org, space } = session;
  const places = new Map<string, Place>([[space.guid, { destinationSpace: space.name, destinationOrg: org.name }]]);
  const isKnown = (): boolean => guids.every((guid) => places.has(guid));
  const orgs = isKnown() ? [] : await listOrgs(session);
  for (const one of orgs) {
    if (isKnown()) break;
    for (const { guid, name } of (await ifAllowed(listSpaces(session, one))) ?? [])
      places.set(guid, { destinationSpace: name, destinationOrg: one.name });
  }
  return places;
}

/** The apps of a space by GUID, and the halves of network policies there. */
async function contentsOf({ cluster, signal }: SpaceSession, ns: string): Promise<Contents> {
  const lists = [cluster.list(kinds.app, { ns, signal }), cluster.list(kinds.networkPolicy, { ns, signal })] as const;
  const [apps, policies] = await Promise.all(lists);
  return {
    apps: new Map(apps.items.map((app) => [app.metadata.name, app])),
    policies: policies.items,
  };
}

interface Contents {
  apps: ReadonlyMap<string, Stored<CFApp>>;
  policies: Stored<CFNetworkPolicy>[];
}

/** A row; undefined when an app is gone, or when the destination has no half any more: nothing is allowed then. */
function summaryOf(
  { spec }: Stored<CFNetworkPolicy>,
  source: Stored<CFApp> | undefined,
  there: Contents | undefined,
  place: Place | undefined,
): NetworkPolicySummary | undefined {
  const { peer, protocol, port, endPort } = spec;
  if (source === undefined) return undefined;
  const destination = there?.apps.get(peer.app);
  const isAccepting = isHalf(peer.app, { ...spec, direction: 'accepts', peer: peerOf(source) });
  if (there !== undefined && (destination?.metadata.uid !== peer.uid || !there.policies.some(isAccepting))) return undefined;
  return {
    source: source.spec.displayName,
    destination: destination?.spec.displayName ?? peer.app,
    protocol,
    ports: endPort === undefined ? String(port) : `${port}-${endPort}`,
    ...(place ?? { destinationSpace: peer.space, destinationOrg: '' }),
  };
}

/** The policies of the space's apps as sources, by source and destination. @param source the name of one app */
export async function listNetworkPolicies(session: SpaceSession, source?: string): Promise<NetworkPolicySummary[]> {
  const only = source === undefined ? undefined : (await findApp(session, source)).metadata.name;
  const own = await contentsOf(session, session.space.guid);
  const halves = own.policies.filter(({ spec }) => spec.direction === 'connects' && (only === undefined || spec.appRef.name === only));
  const spaces = [...new Set(halves.map(({ spec }) => spec.peer.space))];
  const [places, there] = await Promise.all([
    placesOf(session, spaces),
    Promise.all(spaces.map(async (ns) => [ns, ns === session.space.guid ? own : await ifAllowed(contentsOf(session, ns))] as const)),
  ]);
  const contents = new Map(there);
  return halves
    .flatMap((half) => {
      const { peer, appRef } = half.spec;
      return summaryOf(half, own.apps.get(appRef.name), contents.get(peer.space), places.get(peer.space)) ?? [];
    })
    .toSorted((a, b) => `${a.source} ${a.destination}`.localeCompare(`${b.source} ${b.destination}`));
}

/** Why apps can reach each other without a policy too; undefined when they cannot, or when nobody knows. */
export async function whyNotEnforced(session: SpaceSession): Promise<string | undefined> {
  const { network } = await session.info();
  if (network === undefined) return 'kf makes no NetworkPolicies in this cluster, so apps can reach each other without a policy too.';
  return network.enforced === false
    ? 'The network of this cluster does not enforce NetworkPolicies, so apps can reach each other without a policy too.'
    : undefined;
}
