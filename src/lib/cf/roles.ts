// The roles that cf's commands name, as values of ROLE.

import { cfRoles } from '../api/roles.ts';
import { notThereYet } from './usage.ts';
import { parseChoice } from './values.ts';

/** By cf's names, in the order of cf's lists. */
export const orgRoles = { OrgManager: cfRoles.organizationManager } as const;
export const spaceRoles = {
  SpaceManager: cfRoles.spaceManager,
  SpaceDeveloper: cfRoles.spaceDeveloper,
  SpaceAuditor: cfRoles.spaceAuditor,
} as const;

export type OrgRole = keyof typeof orgRoles;
export type SpaceRole = keyof typeof spaceRoles;

/** Roles of cf without a ClusterRole in kf, with the nearest one. */
const missing: Readonly<Record<string, string>> = {
  BillingManager: 'kf keeps no bills; every user of the org reads its spaces',
  OrgAuditor: 'every user of the org reads its spaces; SpaceAuditor in a space reads its apps',
  SpaceSupporter: 'SpaceDeveloper changes apps, SpaceAuditor only reads',
};

function parseRole<T extends string>(text: string, known: readonly T[], lacking: readonly string[]): T {
  const absent = lacking.find((name) => name.toLowerCase() === text.toLowerCase());
  if (absent !== undefined) throw notThereYet(`the role '${absent}'`, missing[absent] ?? '');
  return parseChoice(text, 'ROLE', known);
}

/** In any case. @throws KfError `usage` */
export const parseOrgRole = (text: string): OrgRole =>
  parseRole(text, Object.keys(orgRoles) as OrgRole[], ['BillingManager', 'OrgAuditor']);

/** In any case. @throws KfError `usage` */
export const parseSpaceRole = (text: string): SpaceRole => parseRole(text, Object.keys(spaceRoles) as SpaceRole[], ['SpaceSupporter']);
