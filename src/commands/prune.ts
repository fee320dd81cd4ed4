import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { numberFlag } from '../flags.ts';
import { leastUnusedSeconds } from '../lib/api/gate-status.ts';
import type { PruneResult } from '../lib/ops/registry/prune.ts';
import { line } from '../lib/views/block.ts';
import { renderPrune } from '../lib/views/prune.ts';

export default class Prune extends KfCommand<PruneResult> {
  static override summary = 'remove the images from the registry that nothing uses';
  static override changes = true;
  static override examples = ['kf prune --dry-run', 'kf prune', 'kf prune --unused-minutes 5 --json'];
  static override isAboutInstallation = true;
  static override seeAlso = ['droplets', 'packages', 'setup'];
  static override flags = {
    'dry-run': Flags.boolean({ summary: 'only show what would go, and how much space that frees' }),
    'unused-minutes': numberFlag({
      name: 'unused-minutes',
      least: leastUnusedSeconds / 60,
      summary: 'what was stored or used in the last minutes stays, default 60',
      helpValue: 'MINUTES',
    }),
  };

  async run(): Promise<PruneResult> {
    const { flags } = await this.parse(Prune);
    const [session, { pruneRegistry }] = await this.inCluster(import('../lib/ops/registry/prune.ts'));
    const dryRun = flags['dry-run'];
    if (dryRun) this.announce`Getting the images that nothing uses`;
    else this.announce`Removing the images that nothing uses`;
    const { cluster, report, root, signal } = session;
    const result = await pruneRegistry(
      { cluster, info: await session.info(), root, report, signal },
      { dryRun, keptSeconds: (flags['unused-minutes'] ?? 60) * 60 },
    );
    if (this.exitCode(result) === 0) this.ok();
    else this.print([line()]);
    this.print(renderPrune(result, this.frame.bin));
    return result;
  }

  protected override exitCode({ failed }: PruneResult): number {
    return failed.length > 0 ? 1 : 0;
  }
}
