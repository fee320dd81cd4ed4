import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import type { PlaceSummary } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  org: PlaceSummary;
  deleted: boolean;
}

export default class DeleteSpace extends KfCommand<Result> {
  static override summary = 'delete a space with its apps and services';
  static override changes = true;
  static override examples = ['kf delete-space example-space', 'kf delete-space example-space -o example-org -f'];
  static override seeAlso = ['create-space', 'delete-org', 'spaces'];
  static override args = { SPACE: requiredArg('name of the space') };
  static override flags = {
    force: forceFlag(),
    org: Flags.string({ char: 'o', summary: 'org, default the targeted one', helpValue: 'ORG', env: 'KF_ORG' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeleteSpace);
    const name = args.SPACE;
    const [session, { deleteSpace }] = await this.inOrg(import('../lib/ops/tenancy/delete.ts'));
    const { org } = session;
    if (!flags.force) {
      this.print([
        line(
          'This action impacts all resources scoped to this space, including apps, service instances, and space-scoped service brokers.',
        ),
      ]);
      if (!(await this.confirm(`Really delete the space ${name}?`))) {
        this.print([line(`'${name}' has not been deleted.`)]);
        return { name, org, deleted: false };
      }
    }
    this.announce`Deleting space ${name}`;
    const { deleted, wasTargeted } = await deleteSpace(session, name);
    if (!deleted) this.warn(`Space '${name}' does not exist.`);
    this.ok();
    if (wasTargeted) this.print([line(`TIP: No space targeted, use '${this.frame.bin} target -s' to target a space.`)]);
    return { name, org, deleted };
  }
}
