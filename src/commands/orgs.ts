import { KfCommand } from '../base-command.ts';
import { labelsFlag } from '../flags.ts';
import type { PlaceSummary } from '../lib/api/results.ts';
import { renderNames } from '../lib/views/target.ts';

export default class Orgs extends KfCommand<PlaceSummary[]> {
  static override summary = 'list all orgs that you can see';
  static override examples = ['kf orgs'];
  static override aliases = ['o'];
  static override seeAlso = ['create-org', 'spaces', 'target'];
  static override flags = { labels: labelsFlag() };

  async run(): Promise<PlaceSummary[]> {
    const { flags } = await this.parse(Orgs);
    const [session, { listOrgs }] = await this.inCluster(import('../lib/ops/tenancy/orgs-and-spaces.ts'));
    this.announceList`Getting orgs`;
    const orgs = await listOrgs(session, flags.labels);
    this.print(renderNames(orgs, 'No orgs found.'));
    return orgs;
  }
}
