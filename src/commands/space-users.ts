import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { RoleHolders } from '../lib/api/results.ts';
import { renderRoles } from '../lib/views/roles.ts';

export default class SpaceUsers extends KfCommand<RoleHolders[]> {
  static override summary = 'list the users of a space by role';
  static override examples = ['kf space-users example-org example-space'];
  static override seeAlso = ['org-users', 'set-space-role', 'spaces'];
  static override args = { ORG: requiredArg('org'), SPACE: requiredArg('space') };

  async run(): Promise<RoleHolders[]> {
    const { args } = await this.parse(SpaceUsers);
    const [session, { findRolePlace, listSpaceUsers }] = await this.inCluster(import('../lib/ops/tenancy/roles.ts'));
    this.announceList`Getting users in org ${args.ORG} / space ${args.SPACE}`;
    const roles = await listSpaceUsers(session, await findRolePlace(session, args.ORG, args.SPACE));
    this.print(renderRoles(roles));
    return roles;
  }
}
