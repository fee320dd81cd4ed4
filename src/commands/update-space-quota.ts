import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { idleFlags, limitsOfFlags, quotaUpdateFlags } from '../flags/quotas.ts';
import type { QuotaSummary } from '../lib/api/results.ts';

export default class UpdateSpaceQuota extends KfCommand<QuotaSummary> {
  static override summary = 'change a quota of spaces';
  static override changes = true;
  static override examples = ['kf update-space-quota small -m 4G', 'kf update-space-quota small -n medium -r -1'];
  static override seeAlso = ['space-quota', 'space-quotas'];
  static override args = { SPACE_QUOTA_NAME: requiredArg('name of the quota') };
  static override flags = quotaUpdateFlags;

  async run(): Promise<QuotaSummary> {
    const { args, flags } = await this.parse(UpdateSpaceQuota);
    const idle = idleFlags(flags);
    const [session, { ofSpaces, updateQuota }] = await this.inOrg(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Updating space quota ${args.SPACE_QUOTA_NAME} for org ${session.org.name} as ${session.user}...`;
    for (const note of idle) this.warn(note);
    const change = { newName: flags.name, limits: limitsOfFlags(flags) };
    const { quota, unapplied } = await updateQuota(session, ofSpaces(session), args.SPACE_QUOTA_NAME, change);
    for (const { space, why } of unapplied) this.warn(`The quota is not in force in space '${space}': ${why}.`);
    this.ok();
    return quota;
  }
}
