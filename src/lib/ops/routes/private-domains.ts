// Domains of one org (docs/decisions/0079): only its spaces, and those of the orgs it is shared with, can have routes on them.

import { randomUUID } from 'node:crypto';
import { isPrivate, isUsableBy } from '../../api/domains.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFDomain } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { patchAsRead } from '../../kube/patch-as-read.ts';
import { findOrg } from '../../session/places.ts';
import type { Session } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { buildDomain } from '../../../templates/tenancy.ts';
import { listDomainObjects } from '../find.ts';
import { assertFree, deleteWithRoutes, keepIfChecked, type DeletedDomain } from './domains.ts';
import { internalDomain } from '../../../templates/internal-domain.ts';

/**
 * Creates a domain of an org, and waits until the controller has checked it.
 * @throws KfError `not-found` for the org, `usage` for a name that no domain can have, `conflict` when it overlaps with another domain,
 * `forbidden` for all but operators
 */
export async function createPrivateDomain(session: Session, orgName: string, typed: string): Promise<NameAndGuid> {
  const { cluster, root, signal, bin } = session;
  const name = typed.toLowerCase();
  const org = await findOrg(session, orgName);
  if (name === internalDomain)
    throw new KfError('usage', `The domain '${name}' is internal, and all orgs share it.`, {
      hints: [`${bin} create-shared-domain ${name} --internal`],
    });
  await assertFree(session, name);
  const owner = await cluster.get(kinds.org, root, org.guid, signal);
  if (owner === undefined) throw new KfError('not-found', `Organization '${orgName}' was deleted meanwhile.`, { hints: [`${bin} orgs`] });
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const wanted = buildDomain({ guid: randomUUID(), rootNamespace: root, name, org: owner }, author);
  const domain = await cluster.create(kinds.domain, wanted, { signal });
  await keepIfChecked(session, domain);
  return { name, guid: domain.metadata.name };
}

const isShared = ({ bin }: Session, name: string): KfError =>
  new KfError('usage', `Domain '${name}' is a shared domain, not a private domain.`, { hints: [`${bin} domains`] });

/** The domain of some org. @throws KfError `usage` for a domain that all orgs share @returns undefined when there is none */
async function privateDomain(session: Session, name: string): Promise<Stored<CFDomain> | undefined> {
  const found = (await listDomainObjects(session)).find(({ spec }) => spec.name === name);
  if (found !== undefined && !isPrivate(found)) throw isShared(session, name);
  return found;
}

/**
 * Deletes a domain of an org and all routes on it, the routes first.
 * @throws KfError `usage` for a domain that all orgs share
 */
export async function deletePrivateDomain(session: Session, typed: string): Promise<DeletedDomain> {
  const domain = await privateDomain(session, typed.toLowerCase());
  return domain === undefined ? { deleted: false, routes: 0 } : deleteWithRoutes(session, domain);
}

/** Changes the orgs that may use a domain besides its own. */
async function changeOrgs(
  session: Session,
  orgName: string,
  typed: string,
  change: (orgs: Set<string>, org: string) => void,
): Promise<boolean> {
  const name = typed.toLowerCase();
  const org = await findOrg(session, orgName);
  const found = await privateDomain(session, name);
  const gone = (): KfError => new KfError('not-found', `Domain '${name}' not found.`, { hints: [`${session.bin} domains`] });
  if (found === undefined) throw gone();
  if (found.spec.org === org.guid)
    throw new KfError('usage', `Domain '${name}' belongs to org '${orgName}'.`, {
      hints: [`${session.bin} delete-private-domain ${name}`],
    });
  let changed = false;
  const patchFor = (live: Stored<CFDomain>) => {
    const orgs = new Set(live.spec.sharedWith);
    change(orgs, org.guid);
    changed = orgs.has(org.guid) !== isUsableBy(live, org.guid);
    return changed ? { spec: { sharedWith: [...orgs].toSorted() } } : undefined;
  };
  await patchAsRead(session.cluster, { type: kinds.domain, object: found, gone }, patchFor, session.signal);
  return changed;
}

/** Lets the spaces of another org use a domain. @returns false when they may already */
export function sharePrivateDomain(session: Session, org: string, domain: string): Promise<boolean> {
  return changeOrgs(session, org, domain, (orgs, guid) => orgs.add(guid));
}

/** Ends that; routes of this org on the domain lead nowhere then. @returns false when the domain is not shared with the org */
export function unsharePrivateDomain(session: Session, org: string, domain: string): Promise<boolean> {
  return changeOrgs(session, org, domain, (orgs, guid) => orgs.delete(guid));
}
