// `org-users`, `space-users`: a heading per role, and its users.

import type { RoleHolders } from '../api/results.ts';
import { line, table, type Block } from './block.ts';

/** cf's heading of a role. */
const headings: Readonly<Record<string, string>> = {
  OrgManager: 'ORG MANAGER',
  BillingManager: 'BILLING MANAGER',
  OrgAuditor: 'ORG AUDITOR',
  OrgUser: 'ORG USERS',
  SpaceManager: 'SPACE MANAGER',
  SpaceDeveloper: 'SPACE DEVELOPER',
  SpaceAuditor: 'SPACE AUDITOR',
  SpaceSupporter: 'SPACE SUPPORTER',
};

export function renderRoles(roles: readonly RoleHolders[]): Block[] {
  return roles.flatMap(({ role, users }): Block[] => {
    const heading = headings[role] ?? role;
    const rows = users.length === 0 ? [`  No ${heading} found`] : users.map(({ name, origin }) => `  ${name} (${origin})`);
    return [
      table(
        [heading],
        rows.map((row) => [row]),
      ),
      line(),
    ];
  });
}
