// Builds CFOrg, CFSpace and CFDomain, and the RoleBindings that grant cf's roles.

import { roleBindingType } from '../lib/api/core.ts';
import type { RoleBinding } from '../lib/api/core.ts';
import { annotations, finalizers, kinds, labels } from '../lib/api/group.ts';
import { flagObjectName, roleBindingName, timeLabel } from '../lib/api/names.ts';
import { apiVersionOf, type Stored } from '../lib/api/object.ts';
import type { CfRole, Subject } from '../lib/api/roles.ts';
import type { CFDomain, CFFeatureFlag, CFOrg, CFQuota, CFSpace } from '../lib/api/types.generated.ts';
import { defined } from '../lib/defined.ts';
import { assemble, ownerReference } from './metadata.ts';
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

export interface QuotaInput {
  guid: string;
  /** The root namespace for a quota of orgs, the namespace of an org for one of its spaces. */
  namespace: string;
  spec: CFQuota['spec'];
}

export function buildQuota({ guid, namespace, spec }: QuotaInput, author: Authorship): CFQuota {
  return assemble(kinds.quota, { metadata: { name: guid, namespace }, body: { spec }, author });
}

/** @param flag the name of the flag, with `_` */
export function buildFeatureFlag(flag: string, rootNamespace: string, spec: CFFeatureFlag['spec'], author: Authorship): CFFeatureFlag {
  const metadata = { name: flagObjectName(flag), namespace: rootNamespace, labels: { [labels.updatedAt]: timeLabel(author.now) } };
  return assemble(kinds.featureFlag, { metadata, body: { spec }, author });
}

export interface DomainInput {
  guid: string;
  rootNamespace: string;
  /** Fully qualified; stored in lower case. */
  name: string;
  /** Its names lead to instances themselves. */
  internal?: boolean;
  /** Requests with http are redirected to https. */
  httpRedirect?: boolean;
  /** The only org whose spaces may use it, until it is shared. It owns the domain, so the domain goes with it. */
  org?: Stored<CFOrg>;
}

export function buildDomain(
  { guid, rootNamespace, name, internal = false, httpRedirect = false, org }: DomainInput,
  author: Authorship,
): CFDomain {
  return assemble(kinds.domain, {
    metadata: {
      name: guid,
      namespace: rootNamespace,
      ...defined({ ownerReferences: org && [ownerReference(kinds.org, org, false)] }),
    },
    body: {
      spec: {
        name: name.toLowerCase(),
        ...(internal ? { internal } : {}),
        ...(httpRedirect ? { httpRedirect } : {}),
        ...defined({ org: org?.metadata.name }),
      },
    },
    author,
  });
}

export interface RoleInput {
  role: CfRole;
  subject: Subject;
  namespace: string;
  /** GUID of the role. It is stored as a label, because the object's name is computed from role and subject. */
  guid: string;
}

/** The RoleBinding that grants a role in one namespace to one user or service account. */
export function buildRoleBinding({ role, subject, namespace, guid }: RoleInput): RoleBinding {
  const { group } = roleBindingType;
  const rbacSubject =
    'user' in subject
      ? { kind: 'User' as const, apiGroup: group, name: subject.user }
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
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: role.clusterRole },
    subjects: [rbacSubject],
  };
}
