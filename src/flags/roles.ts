// The arguments of the commands that give and take roles.

import * as Args from '@oclif/core/args';
import { requiredArg } from '../flags.ts';
import { orgRoles, parseOrgRole, parseSpaceRole, spaceRoles, type OrgRole, type SpaceRole } from '../lib/cf/roles.ts';

/** `OrgManager, BillingManager or OrgAuditor` */
function choices(roles: object): string {
  const titles = Object.keys(roles);
  return `${titles.slice(0, -1).join(', ')} or ${titles.at(-1) ?? ''}`;
}

const roleArg = <R extends OrgRole | SpaceRole>(roles: Record<R, unknown>, parse: (text: string) => R) =>
  Args.custom<R>({
    ignoreStdin: true,
    description: choices(roles),
    parse: (text) => Promise.resolve().then(() => parse(text)),
  })({ required: true });

const userArg = requiredArg('name of the user, as the API server has it');

export const orgRoleArgs = { USERNAME: userArg, ORG: requiredArg('org'), ROLE: roleArg(orgRoles, parseOrgRole) };

export const spaceRoleArgs = {
  USERNAME: userArg,
  ORG: requiredArg('org'),
  SPACE: requiredArg('space'),
  ROLE: roleArg(spaceRoles, parseSpaceRole),
};
