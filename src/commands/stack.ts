import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { StackSummary } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderStack } from '../lib/views/builder.ts';

export default class Stack extends KfCommand<StackSummary> {
  static override summary = 'show a stack that apps are built for';
  static override examples = ['kf stack example-stack', 'kf stack example-stack --guid'];
  static override seeAlso = ['push', 'stacks'];
  static override args = { STACK_NAME: requiredArg('stack') };
  static override flags = { guid: Flags.boolean({ summary: 'print only the GUID, which is the name' }) };

  async run(): Promise<StackSummary> {
    const { args, flags } = await this.parse(Stack);
    const [session, { findStack }] = await this.inCluster(import('../lib/ops/builds/builder.ts'));
    if (!flags.guid) this.announceList`Getting info for stack ${args.STACK_NAME}`;
    const stack = await findStack(session, args.STACK_NAME);
    this.print(flags.guid ? [line(stack.guid)] : renderStack(stack));
    return stack;
  }
}
