import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { OrgDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderOrg } from '../lib/views/target.ts';

export default class Org extends KfCommand<OrgDetails | { guid: string }> {
  static override summary = 'show an org';
  static override examples = ['kf org example-org', 'kf org example-org --guid'];
  static override seeAlso = ['org-users', 'orgs', 'space', 'target'];
  static override args = { ORG: requiredArg('name of the org') };
  static override flags = { guid: Flags.boolean({ summary: 'print only the GUID' }) };

  async run(): Promise<OrgDetails | { guid: string }> {
    const { args, flags } = await this.parse(Org);
    const [session, { describeOrg, findOrg }] = await this.inCluster(import('../lib/ops/tenancy/details.ts'));
    if (flags.guid) {
      const { guid } = await findOrg(session, args.ORG);
      this.print([line(guid)]);
      return { guid };
    }
    this.announceList`Getting info for org ${args.ORG}`;
    const details = await describeOrg(session, await findOrg(session, args.ORG));
    this.print(renderOrg(details));
    return details;
  }
}
