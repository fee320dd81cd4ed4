import { KfCommand } from '../base-command.ts';
import { orgRoleArgs } from '../flags/roles.ts';
import type { OrgRole } from '../lib/cf/roles.ts';

interface Result {
  user: string;
  role: OrgRole;
  taken: boolean;
}

export default class UnsetOrgRole extends KfCommand<Result> {
  static override summary = 'take a role in an org from a user';
  static override changes = true;
  static override examples = ['kf unset-org-role alice example-org OrgManager'];
  static override seeAlso = ['org-users', 'set-org-role'];
  static override args = orgRoleArgs;

  async run(): Promise<Result> {
    const { args } = await this.parse(UnsetOrgRole);
    const [session, { findRolePlace, takeRole }] = await this.inCluster(import('../lib/ops/tenancy/roles.ts'));
    const { USERNAME: user, ROLE: role } = args;
    this.say`Removing role ${args.ROLE} from user ${args.USERNAME} in org ${args.ORG} as ${session.user}...`;
    const taken = await takeRole(session, { title: role, user, place: await findRolePlace(session, args.ORG) });
    if (!taken) this.warn(`User '${user}' does not have role '${role}' in org '${args.ORG}'.`);
    this.ok();
    return { user, role, taken };
  }
}
