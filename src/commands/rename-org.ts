import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { PlaceSummary } from '../lib/api/results.ts';

export default class RenameOrg extends KfCommand<PlaceSummary> {
  static override summary = 'rename an org';
  static override changes = true;
  static override examples = ['kf rename-org example-org second-org'];
  static override seeAlso = ['org', 'orgs', 'target'];
  static override args = { ORG: requiredArg('name of the org'), NEW_ORG_NAME: requiredArg('new name') };

  async run(): Promise<PlaceSummary> {
    const { args } = await this.parse(RenameOrg);
    const [session, { renameOrg }] = await this.inCluster(import('../lib/ops/tenancy/rename.ts'));
    this.announce`Renaming org ${args.ORG} to ${args.NEW_ORG_NAME}`;
    const renamed = await renameOrg(session, args.ORG, args.NEW_ORG_NAME);
    this.ok();
    return renamed;
  }
}
