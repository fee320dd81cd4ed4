// Finds objects by the names that users type, and suggests the nearest name when there is none.

import { kinds, labels } from '../api/group.ts';
import { isUsableBy } from '../api/domains.ts';
import { findCondition } from '../api/conditions.ts';
import { nearest, sha224 } from '../api/names.ts';
import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import type { CFApp, CFDomain, CFServiceInstance } from '../api/types.generated.ts';
import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';
import type { Session, SpaceSession } from '../session/session.ts';

interface WithDisplayName extends KubeObject {
  spec: { displayName: string };
}

/** The part of a session that a look-up in a space needs. The space need not be the targeted one. */
type SpaceReader = Pick<SpaceSession, 'cluster' | 'space' | 'signal' | 'bin'>;

const isLive = (object: KubeObject): boolean => object.metadata.deletionTimestamp === undefined;
const age = (object: KubeObject): string => object.metadata.creationTimestamp ?? '';

/** The object that has the name: not refused, and the oldest one. */
export function holderOf<T extends KubeObject>(objects: readonly T[]): T | undefined {
  const refused = (object: T) => (findCondition(object, 'Claimed')?.status === 'False' ? 1 : 0);
  return objects.filter(isLive).toSorted((a, b) => refused(a) - refused(b) || age(a).localeCompare(age(b)))[0];
}

async function byLabel<T extends WithDisplayName>(
  session: SpaceReader,
  type: ResourceType<T>,
  name: string,
): Promise<Stored<T> | undefined> {
  const { cluster, space, signal } = session;
  const labelled = await cluster.list(type, { ns: space.guid, labelSelector: `${labels.displayName}=${sha224(name)}`, signal });
  return holderOf(labelled.items.filter((item) => item.spec.displayName === name));
}

/**
 * First by index label (a small answer), then in the whole list: objects of other tools get their labels a moment later. `leaving`: if no other object
 * has the name, one that is being deleted.
 */
async function byDisplayName<T extends WithDisplayName>(
  session: SpaceReader,
  type: ResourceType<T>,
  name: string,
): Promise<{ found?: Stored<T>; leaving?: Stored<T>; names: string[] }> {
  const { cluster, space, signal } = session;
  const found = await byLabel(session, type, name);
  if (found !== undefined) return { found, names: [] };
  const { items } = await cluster.list(type, { ns: space.guid, signal });
  const same = items.filter((item) => item.spec.displayName === name);
  const leaving = same.find((item) => !isLive(item));
  return { ...defined({ found: holderOf(same), leaving }), names: items.filter(isLive).map((item) => item.spec.displayName) };
}

function notFound(message: string, name: string, names: readonly string[], command: string): KfError {
  const near = nearest(name, names);
  return new KfError('not-found', message, {
    hints: near === undefined ? [command] : [`Did you mean '${near}'?`, command],
    details: { name },
  });
}

/** The app with that name in its index label. If the name turns out to be taken nevertheless, look again with {@link findAppIfAny}. */
export function findLabelledApp(session: SpaceSession, name: string): Promise<Stored<CFApp> | undefined> {
  return byLabel(session, kinds.app, name);
}

export async function findAppIfAny(session: SpaceSession, name: string): Promise<Stored<CFApp> | undefined> {
  return (await byDisplayName(session, kinds.app, name)).found;
}

/** The app with that name for its deletion: if there is no other, one that is already being deleted. */
export async function findAppToDelete(session: SpaceSession, name: string): Promise<Stored<CFApp> | undefined> {
  const { found, leaving } = await byDisplayName(session, kinds.app, name);
  return found ?? leaving;
}

/** The name of an app that equals `name` except for capitals: names of apps are claimed in lower case. */
export async function nameInOtherCapitals({ cluster, space, signal }: SpaceSession, name: string): Promise<string | undefined> {
  const { items } = await cluster.list(kinds.app, { ns: space.guid, signal });
  const others = items.filter(({ spec }) => spec.displayName !== name && spec.displayName.toLowerCase() === name.toLowerCase());
  return holderOf(others)?.spec.displayName;
}

/** @throws KfError `not-found`: `App 'A' not found.` */
export async function findApp(session: SpaceReader, name: string): Promise<Stored<CFApp>> {
  const { found, names } = await byDisplayName(session, kinds.app, name);
  if (found === undefined) throw notFound(`App '${name}' not found.`, name, names, `${session.bin} apps`);
  return found;
}

export async function findServiceIfAny(session: SpaceSession, name: string): Promise<Stored<CFServiceInstance> | undefined> {
  return (await byDisplayName(session, kinds.serviceInstance, name)).found;
}

/** @throws KfError `not-found`: `Service instance 'S' not found` */
export async function findService(session: SpaceSession, name: string): Promise<Stored<CFServiceInstance>> {
  const { found, names } = await byDisplayName(session, kinds.serviceInstance, name);
  if (found === undefined) throw notFound(`Service instance '${name}' not found`, name, names, `${session.bin} services`);
  return found;
}

/** All domains, the oldest (setup's) first. @param labelSelector left out: all */
export async function listDomainObjects({ cluster, root, signal }: Session, labelSelector?: string): Promise<Stored<CFDomain>[]> {
  const { items } = await cluster.list(kinds.domain, { ns: root, signal, ...defined({ labelSelector }) });
  return items.filter(isLive).toSorted((a, b) => age(a).localeCompare(age(b)));
}

/** The domains that the targeted org may use, the oldest first; all when no org is targeted. @param labelSelector left out: all */
export async function usableDomains(session: Session, labelSelector?: string): Promise<Stored<CFDomain>[]> {
  const { org } = session;
  const domains = await listDomainObjects(session, labelSelector);
  return org === undefined ? domains : domains.filter((domain) => isUsableBy(domain, org.guid));
}

/** @throws KfError `not-found`: `Domain 'D' not found.`, also for a private domain that the targeted org may not use */
export async function findDomain(session: Session, name: string): Promise<Stored<CFDomain>> {
  const domains = await usableDomains(session);
  const found = domains.find((domain) => domain.spec.name === name.toLowerCase());
  if (found !== undefined) return found;
  if (name.toLowerCase() === 'apps.internal')
    throw new KfError('not-found', `Domain '${name}' not found.`, {
      hints: [`${session.bin} create-shared-domain apps.internal --internal`],
    });
  throw notFound(
    `Domain '${name}' not found.`,
    name,
    domains.map((domain) => domain.spec.name),
    `${session.bin} domains`,
  );
}
