import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { RoleHolders } from '../lib/api/results.ts';
import { renderRoles } from '../lib/views/roles.ts';

export default class OrgUsers extends KfCommand<RoleHolders[]> {
  static override summary = 'list the users of an org by role';
  static override examples = ['kf org-users example-org', 'kf org-users example-org -a'];
  static override seeAlso = ['orgs', 'set-org-role', 'space-users'];
  static override args = { ORG: requiredArg('org') };
  static override flags = { 'all-users': Flags.boolean({ char: 'a', summary: 'list all users of the org together' }) };

  async run(): Promise<RoleHolders[]> {
    const { args, flags } = await this.parse(OrgUsers);
    const [session, { findRolePlace, listOrgUsers }] = await this.inCluster(import('../lib/ops/tenancy/roles.ts'));
    this.announceList`Getting users in org ${args.ORG}`;
    const roles = await listOrgUsers(session, await findRolePlace(session, args.ORG), flags['all-users']);
    this.print(renderRoles(roles));
    return roles;
  }
}
