import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';

interface Result {
  space: string;
  quota: string;
}

export default class SetSpaceQuota extends KfCommand<Result> {
  static override summary = 'give a space a quota';
  static override changes = true;
  static override examples = ['kf set-space-quota example-space small'];
  static override seeAlso = ['space', 'space-quotas', 'unset-space-quota'];
  static override args = { SPACE_NAME: requiredArg('space'), QUOTA: requiredArg('quota of spaces') };

  async run(): Promise<Result> {
    const { args } = await this.parse(SetSpaceQuota);
    const [session, { setSpaceQuota }] = await this.inOrg(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Setting space quota ${args.QUOTA} to space ${args.SPACE_NAME} as ${session.user}...`;
    const unapplied = await setSpaceQuota(session, args.SPACE_NAME, args.QUOTA);
    for (const { space, why } of unapplied) this.warn(`The quota is not in force in space '${space}': ${why}.`);
    this.ok();
    return { space: args.SPACE_NAME, quota: args.QUOTA };
  }
}
