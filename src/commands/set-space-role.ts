import { KfCommand } from '../base-command.ts';
import { spaceRoleArgs } from '../flags/roles.ts';
import type { SpaceRole } from '../lib/cf/roles.ts';

interface Result {
  user: string;
  role: SpaceRole;
  given: boolean;
}

export default class SetSpaceRole extends KfCommand<Result> {
  static override summary = 'give a user a role in a space';
  static override changes = true;
  static override examples = ['kf set-space-role alice example-org example-space SpaceDeveloper'];
  static override seeAlso = ['space-users', 'unset-space-role'];
  static override args = spaceRoleArgs;

  async run(): Promise<Result> {
    const { args } = await this.parse(SetSpaceRole);
    const [session, { findRolePlace, giveRole }] = await this.inCluster(import('../lib/ops/tenancy/roles.ts'));
    const { USERNAME: user, ROLE: role } = args;
    this.say`Assigning role ${args.ROLE} to user ${args.USERNAME} in org ${args.ORG} / space ${args.SPACE} as ${session.user}...`;
    const given = await giveRole(session, { title: role, user, place: await findRolePlace(session, args.ORG, args.SPACE) });
    if (!given) this.warn(`User '${user}' already has role '${role}' in org '${args.ORG}' / space '${args.SPACE}'.`);
    this.ok();
    return { user, role, given };
  }
}
