import { KfCommand } from '../base-command.ts';
import { labelsFlag } from '../flags.ts';
import type { DomainSummary } from '../lib/api/results.ts';
import { certificateLines, renderDomains } from '../lib/views/routes.ts';

export default class Domains extends KfCommand<DomainSummary[]> {
  static override summary = 'list all domains that routes can use';
  static override examples = ['kf domains'];
  static override seeAlso = ['map-route', 'routes'];
  static override flags = { labels: labelsFlag() };

  async run(): Promise<DomainSummary[]> {
    const { flags } = await this.parse(Domains);
    const [session, { listDomains }] = await this.inOrg(import('../lib/ops/routes/list.ts'));
    this.announceList`Getting domains`;
    const domains = await listDomains(session, flags.labels);
    this.print(renderDomains(domains));
    const { lines, warnings } = certificateLines(domains, Date.now());
    for (const text of lines) this.terminal.err(text);
    for (const text of warnings) this.warn(text);
    return domains;
  }
}
