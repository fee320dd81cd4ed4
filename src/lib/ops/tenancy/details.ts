// org, space: what is in them, as far as the user may see it.

import { isUsableBy } from '../../api/domains.ts';
import { resourceQuotaType } from '../../api/core.ts';
import type { OrgDetails, SpaceDetails } from '../../api/results.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { kinds } from '../../api/group.ts';
import type { CFOrg, CFSpace } from '../../api/types.generated.ts';
import { findSpace, listSpaces } from '../../session/places.ts';
import type { OrgSession, Session } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { listDomainObjects } from '../find.ts';
import { quotaNameOf } from './quotas.ts';

/** The result, or undefined when this user may not read it. */
async function ifAllowed<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof KfError && error.code === 'forbidden') return undefined;
    throw error;
  }
}

/** The names of the ResourceQuotas of a namespace. */
async function quotasIn({ cluster, signal }: Session, ns: string): Promise<string[]> {
  const { items } = await cluster.list(resourceQuotaType, { ns, signal });
  return items.map(({ metadata }) => metadata.name).toSorted();
}

const displayNames = (items: readonly { spec: { displayName: string }; metadata: { deletionTimestamp?: string } }[]): string[] =>
  items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ spec }) => spec.displayName)
    .toSorted((a, b) => a.localeCompare(b));

/** The name of the quota of an org or space; undefined when it has none, or when this user may not read it. */
async function quotaName(
  session: Session,
  type: typeof kinds.org | typeof kinds.space,
  ns: string,
  guid: string,
): Promise<string | undefined> {
  return ifAllowed(
    (async () => {
      const holder = await session.cluster.get<CFOrg | CFSpace>(type, ns, guid, session.signal);
      return holder === undefined ? undefined : quotaNameOf(session, ns, holder);
    })(),
  );
}

/** Domains, quotas and spaces of an org. */
export async function describeOrg(session: Session, org: NameAndGuid): Promise<OrgDetails> {
  const [domains, quota, quotas, spaces] = await Promise.all([
    listDomainObjects(session),
    quotaName(session, kinds.org, session.root, org.guid),
    ifAllowed(quotasIn(session, org.guid)),
    listSpaces(session, org),
  ]);
  return {
    ...org,
    domains: domains.filter((domain) => isUsableBy(domain, org.guid)).map(({ spec }) => spec.name),
    spaces,
    ...defined({ quota, quotas }),
  };
}

/** Apps, services and quotas of a space. */
export async function describeSpace(session: OrgSession, space: NameAndGuid): Promise<SpaceDetails> {
  const { cluster, signal, org } = session;
  const scope = { ns: space.guid, signal };
  const [quota, apps, services, quotas] = await Promise.all([
    quotaName(session, kinds.space, org.guid, space.guid),
    ifAllowed(cluster.list(kinds.app, scope)),
    ifAllowed(cluster.list(kinds.serviceInstance, scope)),
    ifAllowed(quotasIn(session, space.guid)),
  ]);
  return {
    ...space,
    org,
    ...defined({
      apps: apps === undefined ? undefined : displayNames(apps.items),
      services: services === undefined ? undefined : displayNames(services.items),
      quota,
      quotas,
    }),
  };
}

export { findOrg } from '../../session/places.ts';
export { findSpace };
