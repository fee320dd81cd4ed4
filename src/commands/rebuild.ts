import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import type { RebuildResult } from '../lib/ops/apps/rebuild.ts';
import { line } from '../lib/views/block.ts';
import { renderRebuild } from '../lib/views/rebuild.ts';

export default class Rebuild extends KfCommand<RebuildResult> {
  static override summary = 'build the apps again whose droplets the registry has lost';
  static override changes = true;
  static override examples = ['kf rebuild --dry-run', 'kf rebuild', 'kf rebuild --json'];
  static override isAboutInstallation = true;
  static override seeAlso = ['prune', 'restage', 'why'];
  static override environment: [string, string][] = [
    ['CF_STAGING_TIMEOUT', 'minutes to wait for each build, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes to wait for each app, default 5'],
  ];
  static override flags = {
    'dry-run': Flags.boolean({ summary: 'only show what is lost, and what can be built again' }),
  };

  async run(): Promise<RebuildResult> {
    const { flags } = await this.parse(Rebuild);
    const [session, { rebuildLost }] = await this.inCluster(import('../lib/ops/apps/rebuild.ts'));
    const dryRun = flags['dry-run'];
    if (dryRun) this.announce`Getting the apps whose droplets are lost`;
    else this.announce`Building the apps again whose droplets are lost`;
    const result = await rebuildLost(session, { dryRun });
    if (this.exitCode(result) === 0) this.ok();
    else this.print([line()]);
    this.print(renderRebuild(result, this.frame.bin));
    return result;
  }

  protected override exitCode({ dryRun, lost, leftOut }: RebuildResult): number {
    return leftOut.length > 0 || lost.some(({ state }) => state === 'failed' || (state === 'push' && !dryRun)) ? 1 : 0;
  }
}
