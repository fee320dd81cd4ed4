import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { PlaceSummary } from '../lib/api/results.ts';

export default class RenameSpace extends KfCommand<PlaceSummary> {
  static override summary = 'rename a space';
  static override changes = true;
  static override examples = ['kf rename-space example-space second-space'];
  static override seeAlso = ['space', 'spaces', 'target'];
  static override args = { SPACE: requiredArg('name of the space'), NEW_SPACE_NAME: requiredArg('new name') };

  async run(): Promise<PlaceSummary> {
    const { args } = await this.parse(RenameSpace);
    const [session, { renameSpace }] = await this.inOrg(import('../lib/ops/tenancy/rename.ts'));
    this.say`Renaming space ${args.SPACE} to ${args.NEW_SPACE_NAME} as ${session.user}...`;
    const renamed = await renameSpace(session, args.SPACE, args.NEW_SPACE_NAME);
    this.ok();
    return renamed;
  }
}
