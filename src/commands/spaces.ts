import { KfCommand } from '../base-command.ts';
import { labelsFlag } from '../flags.ts';
import type { PlaceSummary } from '../lib/api/results.ts';
import { renderNames } from '../lib/views/target.ts';

export default class Spaces extends KfCommand<PlaceSummary[]> {
  static override summary = 'list all spaces of the targeted org';
  static override examples = ['kf spaces', 'kf spaces --org example-org'];
  static override seeAlso = ['create-space', 'orgs', 'target'];
  static override flags = { labels: labelsFlag() };

  async run(): Promise<PlaceSummary[]> {
    const { flags } = await this.parse(Spaces);
    const [session, { listSpaces }] = await this.inOrg(import('../lib/ops/tenancy/orgs-and-spaces.ts'));
    this.announceList`Getting spaces`;
    const spaces = await listSpaces(session, session.org, flags.labels);
    this.print(renderNames(spaces, 'No spaces found.'));
    return spaces;
  }
}
