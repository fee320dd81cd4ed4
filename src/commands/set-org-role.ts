import * as Args from '@oclif/core/args';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { parseOrgRole, type OrgRole } from '../lib/cf/roles.ts';

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
  static override args = {
    USERNAME: requiredArg('name of the user, as the API server has it'),
    ORG: requiredArg('org'),
    ROLE: Args.custom<OrgRole>({
      ignoreStdin: true,
      description: 'OrgManager, BillingManager or OrgAuditor',
      parse: (text) => Promise.resolve().then(() => parseOrgRole(text)),
    })({ required: true }),
  };

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
