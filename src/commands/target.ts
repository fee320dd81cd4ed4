import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import type { TargetDetails } from '../lib/api/results.ts';
import { renderTarget } from '../lib/views/target.ts';

export default class Target extends KfCommand<TargetDetails> {
  static override summary = 'set or show the targeted org and space';
  static override examples = ['kf target', 'kf target -o example-org -s example-space', 'kf target --context other-cluster -o example-org'];
  static override aliases = ['t'];
  static override seeAlso = ['api', 'create-org', 'create-space', 'orgs', 'spaces'];
  static override flags = {
    org: Flags.string({ char: 'o', summary: 'org', helpValue: 'ORG' }),
    space: Flags.string({ char: 's', summary: 'space', helpValue: 'SPACE' }),
  };

  async run(): Promise<TargetDetails> {
    const { flags } = await this.parse(Target);
    const { org, space } = flags;
    const [session, { describeTarget, setTarget }] = await Promise.all([
      this.clusterSession({ ignorePin: true, keepPlace: org !== undefined || space !== undefined }),
      import('../lib/ops/target.ts'),
    ]);
    if (org === undefined && space === undefined) await session.findPlaceIfAny();
    const chosen =
      org === undefined && space === undefined
        ? session
        : await setTarget(session, { ...(org === undefined ? {} : { org }), ...(space === undefined ? {} : { space }) });
    const target = await describeTarget(session, chosen);
    this.print(renderTarget(target, this.frame.bin));
    return target;
  }
}
