// Organizations, spaces and roles.

import type { RoleBinding, Subject } from '../api/core.ts';
import { annotations, labels } from '../api/group.ts';
import type { Stored } from '../api/object.ts';
import { cfRoles, type CfRole } from '../api/roles.ts';
import type { CFOrg, CFSpace } from '../api/types.generated.ts';
import { identityOf, metadataOf, toOne, type Link, type LinkTo, type V3Resource } from './resource.ts';

/** Without an annotation, and with an empty one, it has none. */
const quotaOf = ({ metadata }: Stored<CFOrg> | Stored<CFSpace>) => toOne(metadata.annotations?.[annotations.quota]);

/** The link to its quota, if it has one. */
function quotaLink({ metadata }: Stored<CFOrg> | Stored<CFSpace>, what: 'organization' | 'space', link: LinkTo): Record<string, Link> {
  const guid = metadata.annotations?.[annotations.quota] ?? '';
  return guid === '' ? {} : { quota: link(`/v3/${what}_quotas/${guid}`) };
}

export function presentOrg(org: Stored<CFOrg>, link: LinkTo): V3Resource {
  const self = `/v3/organizations/${org.metadata.name}`;
  return {
    ...identityOf(org),
    name: org.spec.displayName,
    suspended: false,
    relationships: { quota: quotaOf(org) },
    metadata: metadataOf(org),
    links: {
      self: link(self),
      domains: link(`${self}/domains`),
      default_domain: link(`${self}/domains/default`),
      ...quotaLink(org, 'organization', link),
    },
  };
}

export function presentSpace(space: Stored<CFSpace>, link: LinkTo): V3Resource {
  const { metadata, spec } = space;
  return {
    ...identityOf(space),
    name: spec.displayName,
    relationships: { organization: toOne(metadata.namespace), quota: quotaOf(space) },
    metadata: metadataOf(space),
    links: {
      self: link(`/v3/spaces/${metadata.name}`),
      organization: link(`/v3/organizations/${metadata.namespace}`),
      ...quotaLink(space, 'space', link),
    },
  };
}

const byClusterRole = new Map<string, CfRole>(Object.values(cfRoles).map((role) => [role.clusterRole, role]));

/** The name of a subject as the API server knows the user. */
export const userOf = ({ kind, name, namespace = '' }: Subject): string =>
  kind === 'ServiceAccount' ? `system:serviceaccount:${namespace}:${name}` : name;

/** The roles that a binding gives to users; none for a group, a copy in a child namespace, and a role that the API does not have. */
export function presentRoles(binding: Stored<RoleBinding>, link: LinkTo): V3Resource[] {
  const role = byClusterRole.get(binding.roleRef.name);
  const { labels: marks = {}, name, namespace } = binding.metadata;
  if (role === undefined || role.scope === 'root' || marks[labels.propagatedFrom] !== undefined) return [];
  const users = (binding.subjects ?? []).filter(({ kind }) => kind !== 'Group').map(userOf);
  const first = marks[labels.roleGuid] ?? `${namespace}.${name}`;
  const isOfOrg = role.scope === 'org';
  return users.map((user, at) => {
    const guid = at === 0 ? first : `${first}.${at}`;
    const place = isOfOrg ? { organization: link(`/v3/organizations/${namespace}`) } : { space: link(`/v3/spaces/${namespace}`) };
    return {
      ...identityOf(binding),
      guid,
      type: role.name,
      relationships: {
        user: toOne(user),
        organization: toOne(isOfOrg ? namespace : undefined),
        space: toOne(isOfOrg ? undefined : namespace),
      },
      links: { self: link(`/v3/roles/${guid}`), ...place },
    };
  });
}

/** A user, of whom Kubernetes knows only the name. */
export function presentUser(name: string): V3Resource {
  return {
    guid: name,
    created_at: '',
    updated_at: '',
    username: name,
    presentation_name: name,
    origin: name.startsWith('system:serviceaccount:') ? 'client' : 'kubernetes',
    metadata: { labels: {}, annotations: {} },
    links: {},
  };
}
