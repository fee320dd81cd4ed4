// Roles of users in orgs and spaces. A role is a RoleBinding with one subject, named as Korifi names it (src/lib/api/roles.ts).

import { randomUUID } from 'node:crypto';
import { roleBindingType, type RoleBinding } from '../../api/core.ts';
import { labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { RoleHolders, RoleUser } from '../../api/results.ts';
import { cfRoles, subjectOf, type CfRole, type Subject } from '../../api/roles.ts';
import { KfError } from '../../errors.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import { findOrg, findSpace } from '../../session/places.ts';
import type { Session } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { buildRoleBinding } from '../../../templates/tenancy.ts';
import { disabledText } from '../../cf/feature-flags.ts';
import { orgRoles, spaceRoles, type OrgRole, type SpaceRole } from '../../cf/roles.ts';

/** An org, or a space of it. */
export interface RolePlace {
  org: NameAndGuid;
  space?: NameAndGuid;
}

/** @throws KfError `not-found` in cf's words */
export async function findRolePlace(session: Session, orgName: string, spaceName?: string): Promise<RolePlace> {
  const org = await findOrg(session, orgName);
  return spaceName === undefined ? { org } : { org, space: await findSpace(session, org, spaceName) };
}

const namespaceOf = ({ org, space }: RolePlace): string => (space ?? org).guid;
const placeName = ({ org, space }: RolePlace): string => `org '${org.name}'${space === undefined ? '' : ` / space '${space.name}'`}`;

/** The bindings of the namespace itself: copies from above belong to the org or the installation. */
async function bindingsIn({ cluster, signal }: Session, ns: string): Promise<Stored<RoleBinding>[]> {
  const { items } = await cluster.list(roleBindingType, { ns, signal });
  return items.filter(({ metadata }) => metadata.labels?.[labels.propagatedFrom] === undefined);
}

const gives = ({ roleRef }: RoleBinding, role: CfRole): boolean => roleRef.kind === 'ClusterRole' && roleRef.name === role.clusterRole;

function names(binding: RoleBinding, wanted: Subject): boolean {
  return (binding.subjects ?? []).some(({ kind, name, namespace }) => {
    if ('user' in wanted) return kind === 'User' && name === wanted.user;
    return kind === 'ServiceAccount' ? name === wanted.name && namespace === wanted.namespace : name === accountUser(wanted);
  });
}

/** The API server's user name of a service account; a binding may also name the account as this user. */
const accountUser = ({ namespace, name }: { namespace: string; name: string }): string => `system:serviceaccount:${namespace}:${name}`;

async function create(session: Session, role: CfRole, user: string, namespace: string): Promise<void> {
  const { cluster, signal } = session;
  const binding = buildRoleBinding({ role, subject: subjectOf(user), namespace, guid: randomUUID() });
  try {
    await cluster.create(roleBindingType, binding, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** The same; false when the caller may not give this role. */
async function createIfAllowed(session: Session, role: CfRole, user: string, namespace: string): Promise<boolean> {
  try {
    await create(session, role, user, namespace);
    return true;
  } catch (error) {
    if (error instanceof KfError && error.code === 'forbidden') return false;
    throw error;
  }
}

/** RBAC's own text names rules of the role; what helps is who can give it. A disabled feature flag says so itself. */
function notAllowed(error: unknown, what: string, list: string): unknown {
  if (!(error instanceof KfError) || error.code !== 'forbidden' || error.message.includes(disabledText)) return error;
  const hints = ['A manager of the org, or an administrator of the cluster, can do it.', list];
  return new KfError('forbidden', `Kubernetes does not allow you to ${what}.`, { hints, details: error.details, cause: error });
}

const listOf = ({ bin }: Session, { org, space }: RolePlace): string =>
  space === undefined ? `${bin} org-users ${org.name}` : `${bin} space-users ${org.name} ${space.name}`;

/**
 * A user of a space or an org must also be able to read the org and the list of orgs. Who may not write in the root namespace leaves that to the
 * controller, which makes every member of an org a user of the installation.
 */
async function makeMember(session: Session, user: string, { org }: RolePlace): Promise<void> {
  const [isOfOrg] = await Promise.all([
    createIfAllowed(session, cfRoles.organizationUser, user, org.guid),
    createIfAllowed(session, cfRoles.cfUser, user, session.root),
  ]);
  if (isOfOrg) return;
  const message = `You may not make '${user}' a user of the org '${org.name}'; a manager of the org can, with set-org-role or set-space-role.`;
  session.report({ type: 'warning', message });
}

interface Change {
  title: OrgRole | SpaceRole;
  user: string;
  place: RolePlace;
}

const roleOf = (title: OrgRole | SpaceRole): CfRole => ({ ...orgRoles, ...spaceRoles })[title];

/** Gives a user a role. Returns false when the user has it already. */
export async function giveRole(session: Session, { title, user, place }: Change): Promise<boolean> {
  const role = roleOf(title);
  const ns = namespaceOf(place);
  await session.changedBy();
  const bindings = await bindingsIn(session, ns);
  const has = bindings.some((binding) => gives(binding, role) && names(binding, subjectOf(user)));
  if (!has) {
    await create(session, role, user, ns).catch((error: unknown) => {
      throw notAllowed(error, `give the role ${title} in ${placeName(place)}`, listOf(session, place));
    });
  }
  await makeMember(session, user, place);
  return !has;
}

/**
 * Takes a role away from a user. Returns false when the user does not have it.
 * @throws KfError `conflict` when a binding gives it to others too
 */
export async function takeRole(session: Session, { title, user, place }: Change): Promise<boolean> {
  const { cluster, signal } = session;
  const role = roleOf(title);
  const ns = namespaceOf(place);
  await session.changedBy();
  const found = (await bindingsIn(session, ns)).filter((binding) => gives(binding, role) && names(binding, subjectOf(user)));
  const shared = found.find(({ subjects = [] }) => subjects.length > 1);
  if (shared !== undefined) {
    const message = `The role binding '${shared.metadata.name}' gives the role ${title} to others too, so it was not deleted.`;
    throw new KfError('conflict', message, { hints: [`kubectl edit rolebinding ${shared.metadata.name} -n ${ns}`] });
  }
  for (const { metadata } of found) {
    await cluster
      .delete(roleBindingType, ns, metadata.name, { uid: metadata.uid, propagation: 'Background', signal })
      .catch((error: unknown) => {
        throw notAllowed(error, `take the role ${title} in ${placeName(place)} away`, listOf(session, place));
      });
  }
  return found.length > 0;
}

const origins = { User: 'kubernetes', ServiceAccount: 'client', Group: 'group' } as const;

function usersOf(bindings: readonly RoleBinding[]): RoleUser[] {
  const found = new Map<string, RoleUser>();
  for (const { kind, name, namespace } of bindings.flatMap(({ subjects = [] }) => subjects)) {
    const user = { name: kind === 'ServiceAccount' ? accountUser({ namespace: namespace ?? '', name }) : name, origin: origins[kind] };
    found.set(`${user.origin} ${user.name}`, user);
  }
  return [...found.values()].toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Who has which of these roles, in their order. */
async function holders(session: Session, place: RolePlace, roles: Readonly<Record<string, CfRole>>): Promise<RoleHolders[]> {
  const bindings = await bindingsIn(session, namespaceOf(place));
  return Object.entries(roles).map(([role, wanted]) => ({ role, users: usersOf(bindings.filter((binding) => gives(binding, wanted))) }));
}

/** @param all one list of all users of the org in place of one per role */
export async function listOrgUsers(session: Session, place: RolePlace, all: boolean): Promise<RoleHolders[]> {
  if (!all) return holders(session, place, orgRoles);
  const known = [cfRoles.organizationUser, ...Object.values(orgRoles)];
  const bindings = await bindingsIn(session, place.org.guid);
  return [{ role: 'OrgUser', users: usersOf(bindings.filter((binding) => known.some((role) => gives(binding, role)))) }];
}

export function listSpaceUsers(session: Session, place: RolePlace): Promise<RoleHolders[]> {
  return holders(session, place, spaceRoles);
}
