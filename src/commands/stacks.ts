import { KfCommand } from '../base-command.ts';
import type { StackSummary } from '../lib/api/results.ts';
import { renderStacks } from '../lib/views/builder.ts';

export default class Stacks extends KfCommand<StackSummary[]> {
  static override summary = 'list the stacks that apps are built for';
  static override examples = ['kf stacks', 'kf stacks --json'];
  static override seeAlso = ['buildpacks', 'push', 'stack'];

  async run(): Promise<StackSummary[]> {
    await this.parse(Stacks);
    const [session, { listStacks }] = await this.inCluster(import('../lib/ops/builds/builder.ts'));
    this.announceList`Getting stacks`;
    const stacks = await listStacks(session);
    this.print(renderStacks(stacks));
    return stacks;
  }
}
