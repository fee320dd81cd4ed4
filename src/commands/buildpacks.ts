import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import type { BuildpackSummary } from '../lib/api/results.ts';
import { renderBuildpacks } from '../lib/views/builder.ts';

export default class Buildpacks extends KfCommand<BuildpackSummary[]> {
  static override summary = 'list the buildpacks of the builder';
  static override examples = ['kf buildpacks', 'kf buildpacks --json'];
  static override seeAlso = ['push', 'stacks'];
  static override flags = {
    lifecycle: Flags.string({ summary: 'only those of a lifecycle; all of kf are Cloud Native Buildpacks (cnb)', helpValue: 'LIFECYCLE' }),
  };

  async run(): Promise<BuildpackSummary[]> {
    const { flags } = await this.parse(Buildpacks);
    const [session, { listBuildpacks }] = await this.inCluster(import('../lib/ops/builds/builder.ts'));
    this.announceList`Getting buildpacks`;
    const { lifecycle = 'cnb' } = flags;
    const buildpacks = lifecycle === 'cnb' ? await listBuildpacks(session) : [];
    this.print(renderBuildpacks(buildpacks));
    return buildpacks;
  }
}
