// RoleBindings that the controller creates in the namespaces of orgs and spaces.

import type { Stored } from '../lib/api/object.ts';
import type { RoleBinding } from '../lib/api/core.ts';
import { annotations, labels } from '../lib/api/group.ts';
import { defined } from '../lib/defined.ts';

/** The ClusterRole with the controller's rights inside one org or space. */
export const controllerRole = 'kf-controller-space';

/** Gives the controller its rights in a namespace that it created. */
export function controllerRoleBinding(ns: string, account: { namespace: string; name: string }): RoleBinding {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: controllerRole, namespace: ns, labels: { [labels.managedBy]: 'kf' } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: controllerRole },
    subjects: [{ kind: 'ServiceAccount', name: account.name, namespace: account.namespace }],
  };
}

/** True when the binding is an original that is copied to child namespaces. */
export function isPropagated(binding: RoleBinding): boolean {
  return binding.metadata.annotations?.[annotations.propagateRole] === 'true';
}

/** The copy of `original` in a child namespace as in Korifi: same name, role and subjects. */
export function copiedRoleBinding(original: Stored<RoleBinding>, ns: string): RoleBinding {
  const { name, namespace, labels: marks, annotations: notes } = original.metadata;
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: {
      name,
      namespace: ns,
      labels: { ...withoutTools(marks), [labels.propagatedFrom]: namespace },
      annotations: withoutTools(notes),
    },
    roleRef: original.roleRef,
    ...defined({ subjects: original.subjects }),
  };
}

// Labels and annotations of other tools are not copied, as in Korifi.
function withoutTools(entries: Record<string, string> | undefined): Record<string, string> {
  const foreign = ['meta.helm.sh/', 'kapp.k14s.io/', 'kubectl.kubernetes.io/'];
  return Object.fromEntries(Object.entries(entries ?? {}).filter(([key]) => !foreign.some((prefix) => key.startsWith(prefix))));
}
