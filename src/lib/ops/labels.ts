// Labels that users give to apps, orgs, spaces, routes, domains and service instances: Kubernetes labels of their objects.

import { annotations, kinds } from '../api/group.ts';
import { isOfUser } from '../api/metadata.ts';
import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import type { CFRoute } from '../api/types.generated.ts';
import { KfError } from '../errors.ts';
import { patchAsRead } from '../kube/patch-as-read.ts';
import { parseRoute, splitHostname } from '../manifest/routes.ts';
import { findOrg, findSpace } from '../session/places.ts';
import type { OrgSession, Session, SpaceSession } from '../session/session.ts';
import { assertMetadata, type MetadataChange } from './apps/metadata.ts';
import { findApp, findDomain, findService, listDomainObjects } from './find.ts';
import { isLive, type RoutePlace } from './routes/holders.ts';
import { noRouteText, routesAt, type RouteAddress } from './routes/routes.ts';

/** An object whose labels are shown or changed. */
export interface Labelled {
  type: ResourceType;
  object: Stored<KubeObject>;
  /** The object for a sentence: `App 'shop'`. */
  what: string;
}

const gone = (what: string): KfError => new KfError('not-found', `${what} was deleted meanwhile.`);

async function orgObject(session: Session, name: string): Promise<Labelled> {
  const { cluster, root, signal } = session;
  const what = `Organization '${name}'`;
  const object = await cluster.get(kinds.org, root, (await findOrg(session, name)).guid, signal);
  if (object === undefined) throw gone(what);
  return { type: kinds.org, object, what };
}

async function spaceObject(session: OrgSession, name: string): Promise<Labelled> {
  const { cluster, org, signal } = session;
  const what = `Space '${name}'`;
  const object = await cluster.get(kinds.space, org.guid, (await findSpace(session, org, name)).guid, signal);
  if (object === undefined) throw gone(what);
  return { type: kinds.space, object, what };
}

/** The address that a user typed as one text, and its routes in the space. @param text `host.example.com/path` */
export async function routesOfText(
  session: SpaceSession,
  text: string,
): Promise<{ place: RoutePlace; address: RouteAddress; routes: Stored<CFRoute>[] }> {
  const route = parseRoute(text);
  if (route === undefined)
    throw new KfError('usage', `'${text}' is no route; a route looks like host.example.com or host.example.com/path.`, {
      hints: [`${session.bin} routes`],
    });
  const domains = await listDomainObjects(session);
  const split = splitHostname(
    route.hostname,
    domains.map(({ spec }) => spec.name),
  );
  const domain = domains.find(({ spec }) => spec.name === split?.domain);
  if (split === undefined || domain === undefined)
    throw new KfError('not-found', `No domain exists for route ${text}`, { hints: [`${session.bin} domains`] });
  const address = { host: split.host, domain: domain.spec.name, path: route.path ?? '' };
  return { place: { ...address, domain }, address, routes: await routesAt(session, domain, address) };
}

async function findRoute(session: SpaceSession, text: string): Promise<Stored<CFRoute>> {
  const { address, routes } = await routesOfText(session, text);
  const found = routes.find(isLive);
  if (found === undefined) throw new KfError('not-found', noRouteText(address), { hints: [`${session.bin} routes`] });
  return found;
}

/** How an object is found by its name, in the place that its command needs. */
export const resources = {
  app: {
    needs: 'space',
    find: async (session: SpaceSession, name: string): Promise<Labelled> => ({
      type: kinds.app,
      object: await findApp(session, name),
      what: `App '${name}'`,
    }),
  },
  route: {
    needs: 'space',
    find: async (session: SpaceSession, name: string): Promise<Labelled> => ({
      type: kinds.route,
      object: await findRoute(session, name),
      what: `Route '${name}'`,
    }),
  },
  'service-instance': {
    needs: 'space',
    find: async (session: SpaceSession, name: string): Promise<Labelled> => ({
      type: kinds.serviceInstance,
      object: await findService(session, name),
      what: `Service instance '${name}'`,
    }),
  },
  space: { needs: 'org', find: spaceObject },
  domain: {
    needs: 'cluster',
    find: async (session: Session, name: string): Promise<Labelled> => ({
      type: kinds.domain,
      object: await findDomain(session, name),
      what: `Domain '${name}'`,
    }),
  },
  org: { needs: 'cluster', find: orgObject },
} as const;

/** The labels of users, by name; those of Kubernetes, Korifi and kf are left out. */
export function labelsOf({ object }: Pick<Labelled, 'object'>): Record<string, string> {
  const own = Object.entries(object.metadata.labels ?? {}).filter(([name]) => isOfUser(name));
  return Object.fromEntries(own.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The policy for orgs and spaces names a GUID, and not who may change what. @returns the error to throw */
function notManager(error: unknown, type: ResourceType, what: string): unknown {
  if (!(error instanceof KfError) || !error.message.includes('Only a manager of ')) return error;
  const who = type.kind === kinds.org.kind ? 'of the org' : 'of the space or of its org';
  const hints = [`A manager ${who}, or an administrator of the cluster, can do it.`];
  const message = `You may not change ${what.charAt(0).toLowerCase()}${what.slice(1)}.`;
  return new KfError('forbidden', message, { hints, details: error.details, cause: error });
}

/** Sets and removes labels and annotations of users; the others stay. @throws KfError `usage` for a name or value that cannot be one */
export async function changeMetadataOf<T extends KubeObject>(
  session: Session,
  { type, object, what }: { type: ResourceType<T>; object: Stored<T>; what: string },
  change: MetadataChange,
): Promise<Stored<T>> {
  assertMetadata(change);
  const { labels = {}, annotations: notes = {} } = change;
  const metadata = { labels, annotations: { ...notes, [annotations.changedBy]: await session.changedBy() } };
  const isNew = Object.keys(labels).length > 0 || Object.keys(notes).length > 0;
  const read = { type, object, gone: () => gone(what) };
  const patched = patchAsRead(session.cluster, read, () => (isNew ? { metadata } : undefined), session.signal);
  const { object: changed } = await patched.catch((error: unknown) => {
    throw notManager(error, type, what);
  });
  return changed;
}

/**
 * Sets and removes labels; others stay. Nothing is written when nothing differs.
 * @param wanted null removes
 * @returns the labels after the change
 */
export async function changeLabels(
  session: Session,
  { type, object, what }: Labelled,
  wanted: Readonly<Record<string, string | null>>,
): Promise<{ labels: Record<string, string>; changed: boolean }> {
  const changedBy = await session.changedBy();
  const patched = await patchAsRead(
    session.cluster,
    { type, object, gone: () => gone(what) },
    ({ metadata }) => {
      const present = metadata.labels ?? {};
      const labels = Object.fromEntries(Object.entries(wanted).filter(([name, value]) => (present[name] ?? null) !== value));
      if (Object.keys(labels).length === 0) return undefined;
      return { metadata: { labels, annotations: { [annotations.changedBy]: changedBy } } };
    },
    session.signal,
  ).catch((error: unknown) => {
    throw notManager(error, type, what);
  });
  return { labels: labelsOf(patched), changed: patched.isWritten };
}
