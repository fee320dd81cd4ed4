// CF roles, their ClusterRoles and their bindings to users, as in Korifi.

export interface CfRole {
  /** As in the names of RoleBindings and in cf's API. */
  readonly name: string;
  readonly clusterRole: string;
  /** The namespace in which a binding belongs. */
  readonly scope: 'root' | 'org' | 'space';
  /** The controller copies it into the child namespaces. */
  readonly propagated: boolean;
}

const role = (name: string, clusterRole: string, scope: CfRole['scope'], propagated = false): CfRole => ({
  name,
  clusterRole: `korifi-controllers-${clusterRole}`,
  scope,
  propagated,
});

export const cfRoles = {
  admin: role('admin', 'admin', 'root', true),
  cfUser: role('cf_user', 'root-namespace-user', 'root'),
  organizationManager: role('organization_manager', 'organization-manager', 'org', true),
  organizationUser: role('organization_user', 'organization-user', 'org'),
  organizationAuditor: role('organization_auditor', 'organization-auditor', 'org'),
  organizationBillingManager: role('organization_billing_manager', 'organization-billing-manager', 'org'),
  spaceDeveloper: role('space_developer', 'space-developer', 'space'),
  spaceManager: role('space_manager', 'space-manager', 'space'),
  spaceAuditor: role('space_auditor', 'space-auditor', 'space'),
  spaceSupporter: role('space_supporter', 'space-supporter', 'space'),
} as const satisfies Record<string, CfRole>;

export type Subject = { user: string } | { namespace: string; name: string };

/** The subject of a user name from the API server: `system:serviceaccount:<ns>:<name>` is a service account. */
export function subjectOf(userName: string): Subject {
  const match = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(userName);
  return match === null ? { user: userName } : { namespace: match[1] ?? '', name: match[2] ?? '' };
}
