import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { idleFlags, limitsOfFlags, quotaFlags } from '../flags/quotas.ts';
import type { QuotaSummary } from '../lib/api/results.ts';

interface Result extends QuotaSummary {
  created: boolean;
}

export default class CreateOrgQuota extends KfCommand<Result> {
  static override summary = 'create a quota of orgs';
  static override changes = true;
  static override examples = ['kf create-org-quota small -m 2G -i 512M -r 20 -s 5', 'kf create-org-quota large -m -1 -r -1 -s -1 -a 40'];
  static override aliases = ['create-quota'];
  static override seeAlso = ['org-quotas', 'set-org-quota', 'update-org-quota'];
  static override args = { ORG_QUOTA_NAME: requiredArg('name of the quota') };
  static override flags = quotaFlags;

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateOrgQuota);
    const idle = idleFlags(flags);
    const [session, { createQuota, ofOrgs }] = await this.inCluster(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Creating org quota ${args.ORG_QUOTA_NAME} as ${session.user}...`;
    for (const note of idle) this.warn(note);
    const { quota, created } = await createQuota(session, ofOrgs(session), args.ORG_QUOTA_NAME, limitsOfFlags(flags));
    if (!created) this.warn(`Organization Quota '${args.ORG_QUOTA_NAME}' already exists.`);
    this.ok();
    return { ...quota, created };
  }
}
