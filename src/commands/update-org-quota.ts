import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { idleFlags, limitsOfFlags, quotaUpdateFlags } from '../flags/quotas.ts';
import type { QuotaSummary } from '../lib/api/results.ts';

export default class UpdateOrgQuota extends KfCommand<QuotaSummary> {
  static override summary = 'change a quota of orgs';
  static override changes = true;
  static override examples = ['kf update-org-quota small -m 4G', 'kf update-org-quota small -n medium -r -1'];
  static override aliases = ['update-quota'];
  static override seeAlso = ['org-quota', 'org-quotas'];
  static override args = { ORG_QUOTA_NAME: requiredArg('name of the quota') };
  static override flags = quotaUpdateFlags;

  async run(): Promise<QuotaSummary> {
    const { args, flags } = await this.parse(UpdateOrgQuota);
    const idle = idleFlags(flags);
    const [session, { ofOrgs, updateQuota }] = await this.inCluster(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Updating org quota ${args.ORG_QUOTA_NAME} as ${session.user}...`;
    for (const note of idle) this.warn(note);
    const change = { newName: flags.name, limits: limitsOfFlags(flags) };
    const { quota, unapplied } = await updateQuota(session, ofOrgs(session), args.ORG_QUOTA_NAME, change);
    for (const { space, why } of unapplied) this.warn(`The quota is not in force in space '${space}': ${why}.`);
    this.ok();
    return quota;
  }
}
