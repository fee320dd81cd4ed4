import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import type { Session } from '../lib/session/session.ts';
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
    // `-s` alone chooses in the org that `target` shows; KF_ORG may name that org.
    const { space, org = space === undefined ? undefined : this.frame.env['KF_ORG'] || undefined } = flags;
    const { describeTarget, setTarget } = await import('../lib/ops/tenancy/target.ts');
    const isShown = org === undefined && space === undefined;
    const session = await this.#open(flags);
    if (isShown) await session.findPlaceIfAny();
    const chosen = isShown ? session : await setTarget(session, { org, space });
    const target = await describeTarget(session, chosen);
    this.print(renderTarget(target, this.frame.bin));
    return target;
  }

  /** With a wrong context or a cluster that does not answer, the former org and space must not stay targeted. */
  async #open({ org, space }: { org?: string | undefined; space?: string | undefined }): Promise<Session> {
    try {
      return await this.clusterSession({ ignorePin: true, keepPlace: org !== undefined || space !== undefined });
    } catch (error) {
      const { forgetPlace } = await import('../lib/ops/tenancy/target.ts');
      if (org !== undefined || space !== undefined) forgetPlace(this.frame.env, org === undefined ? 'space' : 'org');
      throw error;
    }
  }
}
