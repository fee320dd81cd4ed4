import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { QuotaSummary } from '../lib/api/results.ts';
import { renderQuota } from '../lib/views/quotas.ts';

export default class OrgQuota extends KfCommand<QuotaSummary> {
  static override summary = 'show a quota of orgs';
  static override examples = ['kf org-quota small'];
  static override aliases = ['quota'];
  static override seeAlso = ['org', 'org-quotas', 'update-org-quota'];
  static override args = { ORG_QUOTA_NAME: requiredArg('name of the quota') };

  async run(): Promise<QuotaSummary> {
    const { args } = await this.parse(OrgQuota);
    const [session, { showQuota, ofOrgs }] = await this.inCluster(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Getting org quota ${args.ORG_QUOTA_NAME} as ${session.user}...`;
    this.say``;
    const quota = await showQuota(session, ofOrgs(session), args.ORG_QUOTA_NAME);
    this.print(renderQuota(quota));
    return quota;
  }
}
