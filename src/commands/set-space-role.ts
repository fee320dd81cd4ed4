import * as Args from '@oclif/core/args';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { parseSpaceRole, type SpaceRole } from '../lib/cf/roles.ts';

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
  static override args = {
    USERNAME: requiredArg('name of the user, as the API server has it'),
    ORG: requiredArg('org'),
    SPACE: requiredArg('space'),
    ROLE: Args.custom<SpaceRole>({
      ignoreStdin: true,
      description: 'SpaceManager, SpaceDeveloper, SpaceAuditor or SpaceSupporter',
      parse: (text) => Promise.resolve().then(() => parseSpaceRole(text)),
    })({ required: true }),
  };

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
