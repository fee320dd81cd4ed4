import { KfCommand } from '../base-command.ts';
import { spaceRoleArgs } from '../flags/roles.ts';
import type { SpaceRole } from '../lib/cf/roles.ts';

interface Result {
  user: string;
  role: SpaceRole;
  taken: boolean;
}

export default class UnsetSpaceRole extends KfCommand<Result> {
  static override summary = 'take a role in a space from a user';
  static override changes = true;
  static override examples = ['kf unset-space-role alice example-org example-space SpaceDeveloper'];
  static override seeAlso = ['space-users', 'set-space-role'];
  static override args = spaceRoleArgs;

  async run(): Promise<Result> {
    const { args } = await this.parse(UnsetSpaceRole);
    const [session, { findRolePlace, takeRole }] = await this.inCluster(import('../lib/ops/tenancy/roles.ts'));
    const { USERNAME: user, ROLE: role } = args;
    this.say`Removing role ${args.ROLE} from user ${args.USERNAME} in org ${args.ORG} / space ${args.SPACE} as ${session.user}...`;
    const taken = await takeRole(session, { title: role, user, place: await findRolePlace(session, args.ORG, args.SPACE) });
    if (!taken) this.warn(`User '${user}' does not have role '${role}' in org '${args.ORG}' / space '${args.SPACE}'.`);
    this.ok();
    return { user, role, taken };
  }
}
