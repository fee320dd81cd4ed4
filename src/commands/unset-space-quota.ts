import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';

interface Result {
  space: string;
  quota: string;
}

export default class UnsetSpaceQuota extends KfCommand<Result> {
  static override summary = 'take the quota from a space';
  static override changes = true;
  static override examples = ['kf unset-space-quota example-space small'];
  static override seeAlso = ['set-space-quota', 'space'];
  static override args = { SPACE_NAME: requiredArg('space'), SPACE_QUOTA: requiredArg('quota that the space has') };

  async run(): Promise<Result> {
    const { args } = await this.parse(UnsetSpaceQuota);
    const [session, { unsetSpaceQuota }] = await this.inOrg(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Unassigning space quota ${args.SPACE_QUOTA} from space ${args.SPACE_NAME} as ${session.user}...`;
    await unsetSpaceQuota(session, args.SPACE_NAME, args.SPACE_QUOTA);
    this.ok();
    return { space: args.SPACE_NAME, quota: args.SPACE_QUOTA };
  }
}
