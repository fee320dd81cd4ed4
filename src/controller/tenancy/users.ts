// Makes members of orgs users of the installation: a manager of an org has no rights in the root namespace, where every user must be able to read.

import { randomUUID } from 'node:crypto';
import { roleBindingType, type RoleBinding, type Subject as RbacSubject } from '../../lib/api/core.ts';
import { kinds, labels, places } from '../../lib/api/group.ts';
import { roleBindingName } from '../../lib/api/names.ts';
import type { Stored } from '../../lib/api/object.ts';
import { cfRoles, type Subject } from '../../lib/api/roles.ts';
import type { CFOrg } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildRoleBinding } from '../../templates/tenancy.ts';
import { index, watch, type Context, type Index, type Reconciler } from '../runtime/reconciler.ts';
import { splitKey } from '../runtime/store.ts';

const orgRoles: ReadonlySet<string> = new Set(
  Object.values(cfRoles)
    .filter(({ scope }) => scope === 'org')
    .map(({ clusterRole }) => clusterRole),
);

/** Accounts of apps, and those that the controller could use, are nobody's; an admission policy refuses the same. */
function personOf({ kind, name, namespace = '' }: RbacSubject): Subject | undefined {
  if (kind === 'ServiceAccount') {
    const namespaces: readonly string[] = [places.systemNamespace, places.nodeNamespace, places.rootNamespace];
    const isOwn = namespaces.includes(namespace);
    return isOwn || name === 'korifi-app' || name === 'korifi-task' ? undefined : { namespace, name };
  }
  return kind === 'User' && !name.startsWith('system:') ? { user: name } : undefined;
}

/** The name that the binding of a user of the installation has. */
const bindingNameOf = (subject: Subject): string => roleBindingName(cfRoles.cfUser.name, subject);

/** Who gets a role of an org by the binding. Copies from the root namespace are of users of the installation. */
function peopleOf({ metadata, roleRef, subjects = [] }: RoleBinding): Subject[] {
  if (!orgRoles.has(roleRef.name) || metadata.labels?.[labels.propagatedFrom] !== undefined) return [];
  return subjects.map(personOf).filter((person) => person !== undefined);
}

const membershipsByUser: Index = index<RoleBinding>(roleBindingType, 'user', (binding) => [
  ...new Set(peopleOf(binding).map(bindingNameOf)),
]);

const isOwn = ({ metadata }: RoleBinding): boolean => metadata.labels?.[labels.managedBy] === 'kf';

export const usersReconciler: Reconciler = {
  name: 'users',
  watches: [
    watch<RoleBinding>(roleBindingType, (binding, stores) => {
      if (binding.roleRef.name === cfRoles.cfUser.clusterRole) return [`${binding.metadata.namespace}/${binding.metadata.name}`];
      return stores.has(kinds.org) ? peopleOf(binding).map((person) => `${places.rootNamespace}/${bindingNameOf(person)}`) : [];
    }),
    watch<CFOrg>(kinds.org, (org, stores) =>
      stores
        .of(roleBindingType)
        .list(org.metadata.name)
        .flatMap((binding) => peopleOf(binding).map((person) => `${places.rootNamespace}/${bindingNameOf(person)}`)),
    ),
  ],
  indexes: [membershipsByUser],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    if (ns !== context.info().root) return undefined;
    const live = context.stores.of(roleBindingType).get(ns, name);
    const person = memberOf(context, name);
    if (person !== undefined && live === undefined) await make(context, person);
    // What an admin made stays.
    if (person === undefined && live !== undefined && isOwn(live))
      await context.cluster.delete(roleBindingType, ns, name, { uid: live.metadata.uid, signal: context.signal });
    return undefined;
  },
};

/** The person of that binding, if an org has it as a member. */
function memberOf({ stores, info }: Context, name: string): Subject | undefined {
  const { root } = info();
  const isOfOrg = ({ metadata }: Stored<RoleBinding>): boolean =>
    metadata.deletionTimestamp === undefined && stores.of(kinds.org).get(root, metadata.namespace) !== undefined;
  return stores
    .of(roleBindingType)
    .by(membershipsByUser.name, name)
    .filter(isOfOrg)
    .flatMap(peopleOf)
    .find((person) => bindingNameOf(person) === name);
}

async function make(context: Context, subject: Subject): Promise<void> {
  const { root: namespace } = context.info();
  const built = buildRoleBinding({ role: cfRoles.cfUser, subject, namespace, guid: randomUUID() });
  const metadata = { ...built.metadata, labels: { ...built.metadata.labels, [labels.managedBy]: 'kf' } };
  try {
    await context.cluster.create(roleBindingType, { ...built, metadata }, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
