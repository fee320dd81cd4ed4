import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { SpaceDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderSpace } from '../lib/views/target.ts';

export default class Space extends KfCommand<SpaceDetails | { guid: string }> {
  static override summary = 'show a space';
  static override examples = ['kf space example-space', 'kf space example-space --guid', 'kf space example-space --org example-org'];
  static override seeAlso = ['apps', 'services', 'space-users', 'spaces'];
  static override args = { SPACE: requiredArg('name of the space') };
  static override flags = { guid: Flags.boolean({ summary: 'print only the GUID' }) };

  async run(): Promise<SpaceDetails | { guid: string }> {
    const { args, flags } = await this.parse(Space);
    const [session, { describeSpace, findSpace }] = await this.inOrg(import('../lib/ops/tenancy/details.ts'));
    if (flags.guid) {
      const { guid } = await findSpace(session, session.org, args.SPACE);
      this.print([line(guid)]);
      return { guid };
    }
    this.announceList`Getting info for space ${args.SPACE}`;
    const details = await describeSpace(session, await findSpace(session, session.org, args.SPACE));
    this.print(renderSpace(details));
    return details;
  }
}
