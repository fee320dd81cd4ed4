import { KfCommand } from '../base-command.ts';
import type { QuotaSummary } from '../lib/api/results.ts';
import { renderQuotas } from '../lib/views/quotas.ts';

export default class OrgQuotas extends KfCommand<QuotaSummary[]> {
  static override summary = 'list the quotas of orgs';
  static override examples = ['kf org-quotas'];
  static override aliases = ['quotas'];
  static override seeAlso = ['create-org-quota', 'org-quota', 'set-org-quota'];

  async run(): Promise<QuotaSummary[]> {
    await this.parse(OrgQuotas);
    const [session, { listQuotas, ofOrgs }] = await this.inCluster(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Getting org quotas as ${session.user}...`;
    this.say``;
    const quotas = await listQuotas(session, ofOrgs(session));
    this.print(renderQuotas(quotas, 'No organization quotas found.'));
    return quotas;
  }
}
