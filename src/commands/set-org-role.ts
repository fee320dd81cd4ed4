import { KfCommand } from '../base-command.ts';
import { orgRoleArgs } from '../flags/roles.ts';
import type { OrgRole } from '../lib/cf/roles.ts';

interface Result {
  user: string;
  role: OrgRole;
  given: boolean;
}

export default class SetOrgRole extends KfCommand<Result> {
  static override summary = 'give a user a role in an org';
  static override changes = true;
  static override examples = ['kf set-org-role alice example-org OrgManager'];
  static override seeAlso = ['org-users', 'unset-org-role'];
  static override args = orgRoleArgs;

  async run(): Promise<Result> {
    const { args } = await this.parse(SetOrgRole);
    const [session, { findRolePlace, giveRole }] = await this.inCluster(import('../lib/ops/tenancy/roles.ts'));
    const { USERNAME: user, ROLE: role } = args;
    this.say`Assigning role ${args.ROLE} to user ${args.USERNAME} in org ${args.ORG} as ${session.user}...`;
    const given = await giveRole(session, { title: role, user, place: await findRolePlace(session, args.ORG) });
    if (!given) this.warn(`User '${user}' already has role '${role}' in org '${args.ORG}'.`);
    this.ok();
    return { user, role, given };
  }
}
