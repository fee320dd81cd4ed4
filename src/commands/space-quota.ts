import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { QuotaSummary } from '../lib/api/results.ts';
import { renderQuota } from '../lib/views/quotas.ts';

export default class SpaceQuota extends KfCommand<QuotaSummary> {
  static override summary = 'show a quota of spaces';
  static override examples = ['kf space-quota small'];
  static override seeAlso = ['space', 'space-quotas', 'update-space-quota'];
  static override args = { SPACE_QUOTA_NAME: requiredArg('name of the quota') };

  async run(): Promise<QuotaSummary> {
    const { args } = await this.parse(SpaceQuota);
    const [session, { showQuota, ofSpaces }] = await this.inOrg(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Getting space quota ${args.SPACE_QUOTA_NAME} for org ${session.org.name} as ${session.user}...`;
    this.say``;
    const quota = await showQuota(session, ofSpaces(session), args.SPACE_QUOTA_NAME);
    this.print(renderQuota(quota));
    return quota;
  }
}
