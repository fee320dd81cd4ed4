// Creates and deletes domains that all orgs share. Those of one org: private-domains.ts.

import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { currentCondition } from '../../api/conditions.ts';
import { isPrivate } from '../../api/domains.ts';
import { conditionTypes, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFDomain, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { patchAsRead } from '../../kube/patch-as-read.ts';
import { listOrgs, listSpaces } from '../../session/places.ts';
import type { Session } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { buildDomain } from '../../../templates/tenancy.ts';
import { waitForController } from '../controller-wait.ts';
import { listDomainObjects } from '../find.ts';
import { internalDomain } from '../../../templates/internal-domain.ts';
import { assertInternalName, prepareInternalDomain, removeInternalDomain } from './internal-domain.ts';

/** Requests at the same time. */
const parallelRequests = 5;

/** The rule of `spec.name` in tools/crds/network.ts, without the dot at the end that DNS allows. */
const fullName = /^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const mostCharacters = 253;

/** A domain that has this name, contains it, or lies in it. */
function overlapping(name: string, domains: readonly Stored<CFDomain>[]): string | undefined {
  const theirs = domains.map(({ spec }) => spec.name.replace(/\.$/, ''));
  return theirs.find((one) => one === name || one.endsWith(`.${name}`) || name.endsWith(`.${one}`));
}

/** @throws KfError `usage` for a name that no domain can have, `conflict` when it overlaps with another domain */
export async function assertFree(session: Session, name: string): Promise<void> {
  const hints = [`${session.bin} domains`];
  if (!fullName.test(name) || name.length > mostCharacters) {
    const rule = 'write it in full, with letters, digits, dots and hyphens';
    throw new KfError('usage', `The domain '${name}' is not a valid name: ${rule}, for example apps.example.com.`, {
      hints: ['kf domains'],
    });
  }
  const other = overlapping(name, await listDomainObjects(session));
  if (other === name) throw new KfError('conflict', `The domain name '${name}' is already in use.`, { hints });
  if (other !== undefined)
    throw new KfError('conflict', `The domain '${name}' overlaps with the domain '${other}', which was there first.`, { hints });
}

const notExternal = ({ bin }: Session, name: string): KfError =>
  new KfError('usage', `The domain '${name}' is internal: the gateway gets no requests for it.`, {
    hints: [`${bin} create-shared-domain ${name} --internal`],
  });

export interface DomainOptions {
  /** Its names lead to instances, for apps only. */
  internal?: boolean | undefined;
  /** Requests with http are redirected to https. Left out: no for a new domain, and as it is for a present one. */
  httpRedirect?: boolean | undefined;
}

/** @throws KfError `conflict` when the controller refuses the domain */
async function waitUntilChecked(session: Session, domain: Stored<CFDomain>): Promise<void> {
  const isChecked = (seen: Stored<CFDomain>): boolean => {
    const ready = currentCondition(seen, conditionTypes.ready);
    if (ready?.status === 'False') throw new KfError('conflict', ready.message, { details: { reason: ready.reason } });
    return ready?.status === 'True';
  };
  const awaited = { type: kinds.domain, object: domain, what: `Domain ${domain.spec.name}` };
  await waitForController(session, awaited, isChecked, () => ({ type: 'awaiting-controller' }));
}

/** @throws KfError `usage` when the gateway does not, or cannot, do for one domain what is asked */
async function assertRedirectPossible(session: Session, { internal, httpRedirect }: DomainOptions): Promise<void> {
  if (httpRedirect === undefined) return;
  const { https } = (await session.info()).gateway;
  const refused = (why: string, ...hints: string[]): KfError => new KfError('usage', `--http-redirect cannot be given: ${why}.`, { hints });
  if (internal === true) throw refused('the gateway gets no requests for an internal domain');
  if (https === undefined)
    throw refused('kf manages no https of the gateway: it is off, or the Gateway is one of yours', `${session.bin} setup --https on`);
  if (https.redirect === true)
    throw refused('the gateway redirects the requests for all domains', `${session.bin} setup --http-redirect off`);
}

/** Changes the settings of a domain that exists. @returns undefined when there is none of that name, or none is given */
async function updateDomain(
  session: Session,
  name: string,
  { internal, httpRedirect }: DomainOptions,
): Promise<Stored<CFDomain> | undefined> {
  if (httpRedirect === undefined && internal !== true) return undefined;
  const found = (await listDomainObjects(session)).find(({ spec }) => spec.name === name);
  if (found === undefined) return undefined;
  if (httpRedirect === undefined) return found.spec.internal === true ? found : undefined;
  const gone = (): KfError => new KfError('not-found', `Domain '${name}' was deleted meanwhile.`);
  const patchFor = (live: Stored<CFDomain>) =>
    (live.spec.httpRedirect === true) === httpRedirect ? undefined : { spec: { httpRedirect } };
  const { object } = await patchAsRead(session.cluster, { type: kinds.domain, object: found, gone }, patchFor, session.signal);
  await waitUntilChecked(session, object);
  return object;
}

/**
 * Creates a domain that all orgs share, and waits until the controller has checked it. A domain that exists gets the settings that are given.
 * @throws KfError `usage` for a name that no domain can have, `conflict` when it overlaps with another domain or exists and no setting is given,
 * `forbidden` for all but operators
 */
export async function createSharedDomain(
  session: Session,
  typed: string,
  options: DomainOptions = {},
): Promise<NameAndGuid & { created: boolean }> {
  const { cluster, root, signal } = session;
  const { internal = false, httpRedirect = false } = options;
  const name = typed.toLowerCase();
  await assertRedirectPossible(session, options);
  const present = await updateDomain(session, name, options);
  if (present !== undefined) return { name, guid: present.metadata.name, created: false };
  if (internal) assertInternalName(name);
  else if (name === internalDomain) throw notExternal(session, name);
  await assertFree(session, name);
  if (internal) await prepareInternalDomain(session);
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const domain = await cluster.create(
    kinds.domain,
    buildDomain({ guid: randomUUID(), rootNamespace: root, name, internal, httpRedirect }, author),
    {
      signal,
    },
  );
  await keepIfChecked(session, domain);
  return { name, guid: domain.metadata.name, created: true };
}

/** Waits until the controller has checked a new domain, and deletes it if another one was created at the same moment. */
export async function keepIfChecked(session: Session, domain: Stored<CFDomain>): Promise<void> {
  try {
    await waitUntilChecked(session, domain);
  } catch (error) {
    const { name, uid } = domain.metadata;
    if (error instanceof KfError && error.code === 'conflict') await session.cluster.delete(kinds.domain, session.root, name, { uid });
    throw error;
  }
}

/** The routes on a domain in all spaces of all orgs. @throws KubeError `forbidden` when the caller may not read one of the spaces */
async function routesOn(session: Session, domain: Stored<CFDomain>): Promise<Stored<CFRoute>[]> {
  const { cluster, signal } = session;
  const limit = pLimit(parallelRequests);
  const spaces = (await limit.map(await listOrgs(session), (org) => listSpaces(session, org))).flat();
  const labelSelector = `${labels.domainGuid}=${domain.metadata.name}`;
  const lists = await limit.map(spaces, ({ guid }) => cluster.list(kinds.route, { ns: guid, labelSelector, signal }));
  return lists.flatMap(({ items }) => items);
}

async function deleteRoutesOn(session: Session, domain: Stored<CFDomain>): Promise<number> {
  const { cluster, signal } = session;
  const routes = await routesOn(session, domain);
  const deleted = await pLimit(parallelRequests).map(routes, ({ metadata: { namespace, name, uid } }) =>
    cluster.delete(kinds.route, namespace, name, { uid, signal }),
  );
  return deleted.filter(Boolean).length;
}

export interface DeletedDomain {
  deleted: boolean;
  /** How many routes were deleted with it. */
  routes: number;
}

/**
 * Deletes a domain and all routes on it: the routes first, so that an interrupted deletion can be repeated.
 * @throws KfError `conflict` for the domain that new apps get
 */
export async function deleteSharedDomain(session: Session, typed: string): Promise<DeletedDomain> {
  const { bin } = session;
  const name = typed.toLowerCase();
  const domain = (await listDomainObjects(session)).find(({ spec }) => spec.name === name);
  if (domain === undefined) return { deleted: false, routes: 0 };
  if (isPrivate(domain))
    throw new KfError('usage', `Domain '${name}' is a private domain, not a shared domain.`, {
      hints: [`${bin} delete-private-domain ${name}`],
    });
  if ((await session.info()).defaultDomain === name) {
    throw new KfError('conflict', `The domain '${name}' is the default domain of this installation: new apps get their route on it.`, {
      hints: [`${bin} delete-route ${name} -n HOST`],
    });
  }
  const result = await deleteWithRoutes(session, domain);
  if (domain.spec.internal === true) await removeInternalDomain(session);
  return result;
}

/** Deletes the routes on the domain, the domain, and the routes that were created meanwhile. */
export async function deleteWithRoutes(session: Session, domain: Stored<CFDomain>): Promise<DeletedDomain> {
  const { cluster, root, signal } = session;
  const before = await deleteRoutesOn(session, domain);
  await cluster.delete(kinds.domain, root, domain.metadata.name, { uid: domain.metadata.uid, signal });
  return { deleted: true, routes: before + (await deleteRoutesOn(session, domain)) };
}
