// CFOrg, CFSpace, CFDomain and the RoleBindings of people.

import { roleBindingType } from '../lib/api/core.ts';
import type { RoleBinding } from '../lib/api/core.ts';
import { annotations, finalizers, kinds, labels } from '../lib/api/group.ts';
import { roleBindingName } from '../lib/api/names.ts';
import { apiVersionOf } from '../lib/api/object.ts';
import type { CfRole, Subject } from '../lib/api/roles.ts';
import type { CFDomain, CFOrg, CFSpace } from '../lib/api/types.generated.ts';
import { assemble } from './metadata.ts';
import type { Authorship } from './metadata.ts';

export interface OrgInput {
  guid: string;
  rootNamespace: string;
  displayName: string;
}

export function buildOrg({ guid, rootNamespace, displayName }: OrgInput, author: Authorship): CFOrg {
  return assemble(kinds.org, {
    metadata: { name: guid, namespace: rootNamespace, finalizers: [finalizers.org] },
    body: { spec: { displayName } },
    author,
  });
}

export interface SpaceInput {
  guid: string;
  orgGuid: string;
  displayName: string;
}

export function buildSpace({ guid, orgGuid, displayName }: SpaceInput, author: Authorship): CFSpace {
  return assemble(kinds.space, {
    metadata: { name: guid, namespace: orgGuid, finalizers: [finalizers.space] },
    body: { spec: { displayName } },
    author,
  });
}

export interface DomainInput {
  guid: string;
  rootNamespace: string;
  /** Fully qualified; kept in lower case. */
  name: string;
}

export function buildDomain({ guid, rootNamespace, name }: DomainInput, author: Authorship): CFDomain {
  return assemble(kinds.domain, {
    metadata: { name: guid, namespace: rootNamespace },
    body: { spec: { name: name.toLowerCase() } },
    author,
  });
}

export interface RoleInput {
  role: CfRole;
  subject: Subject;
  namespace: string;
  /** GUID of the role: a label, since the name follows from role and subject. */
  guid: string;
}

/** A role of one person or service account in one namespace. */
export function buildRoleBinding({ role, subject, namespace, guid }: RoleInput): RoleBinding {
  const who =
    'user' in subject
      ? { kind: 'User' as const, apiGroup: 'rbac.authorization.k8s.io', name: subject.user }
      : { kind: 'ServiceAccount' as const, namespace: subject.namespace, name: subject.name };
  return {
    apiVersion: apiVersionOf(roleBindingType),
    kind: roleBindingType.kind,
    metadata: {
      name: roleBindingName(role.name, subject),
      namespace,
      labels: { [labels.roleGuid]: guid },
      annotations: { [annotations.propagateRole]: String(role.propagated) },
    },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role.clusterRole },
    subjects: [who],
  };
}
