import { KfCommand } from '../base-command.ts';
import type { PlaceSummary } from '../lib/api/results.ts';
import { renderNames } from '../lib/views/target.ts';

export default class Spaces extends KfCommand<PlaceSummary[]> {
  static override summary = 'list all spaces of the targeted org';
  static override examples = ['kf spaces', 'kf spaces --org example-org'];
  static override seeAlso = ['create-space', 'orgs', 'target'];

  async run(): Promise<PlaceSummary[]> {
    await this.parse(Spaces);
    const [session, { listSpaces }] = await Promise.all([this.orgSession(), import('../lib/ops/tenancy/orgs-and-spaces.ts')]);
    this.say`Getting spaces in org ${session.org.name} as ${session.user}...`;
    this.say``;
    const spaces = await listSpaces(session, session.org);
    this.print(renderNames(spaces, 'No spaces found.'));
    return spaces;
  }
}
