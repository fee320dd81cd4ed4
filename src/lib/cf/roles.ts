// The roles that cf's commands name, as values of ROLE.

import { cfRoles } from '../api/roles.ts';
import { parseChoice } from './values.ts';

/** By cf's names, in the order of cf's lists. */
export const orgRoles = {
  OrgManager: cfRoles.organizationManager,
  BillingManager: cfRoles.organizationBillingManager,
  OrgAuditor: cfRoles.organizationAuditor,
} as const;
export const spaceRoles = {
  SpaceManager: cfRoles.spaceManager,
  SpaceDeveloper: cfRoles.spaceDeveloper,
  SpaceAuditor: cfRoles.spaceAuditor,
  SpaceSupporter: cfRoles.spaceSupporter,
} as const;

export type OrgRole = keyof typeof orgRoles;
export type SpaceRole = keyof typeof spaceRoles;

/** In any case. @throws KfError `usage` */
export const parseOrgRole = (text: string): OrgRole => parseChoice(text, 'ROLE', Object.keys(orgRoles) as OrgRole[]);

/** In any case. @throws KfError `usage` */
export const parseSpaceRole = (text: string): SpaceRole => parseChoice(text, 'ROLE', Object.keys(spaceRoles) as SpaceRole[]);
