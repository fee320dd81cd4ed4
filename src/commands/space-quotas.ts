import { KfCommand } from '../base-command.ts';
import type { QuotaSummary } from '../lib/api/results.ts';
import { renderQuotas } from '../lib/views/quotas.ts';

export default class SpaceQuotas extends KfCommand<QuotaSummary[]> {
  static override summary = 'list the quotas of the spaces of an org';
  static override examples = ['kf space-quotas'];
  static override seeAlso = ['create-space-quota', 'space-quota', 'set-space-quota'];

  async run(): Promise<QuotaSummary[]> {
    await this.parse(SpaceQuotas);
    const [session, { listQuotas, ofSpaces }] = await this.inOrg(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Getting space quotas for org ${session.org.name} as ${session.user}...`;
    this.say``;
    const quotas = await listQuotas(session, ofSpaces(session));
    this.print(renderQuotas(quotas, 'No space quotas found.'));
    return quotas;
  }
}
