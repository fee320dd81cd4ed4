import { KfCommand } from '../base-command.ts';
import type { FeatureFlag } from '../lib/cf/feature-flags.ts';
import { renderFeatureFlags } from '../lib/views/feature-flags.ts';

export default class FeatureFlags extends KfCommand<FeatureFlag[]> {
  static override summary = 'list the feature flags of cf';
  static override examples = ['kf feature-flags', 'kf feature-flags --json'];
  static override seeAlso = ['disable-feature-flag', 'enable-feature-flag', 'feature-flag'];

  async run(): Promise<FeatureFlag[]> {
    await this.parse(FeatureFlags);
    const [session, { readFeatureFlags }] = await this.inCluster(import('../lib/ops/tenancy/feature-flags.ts'));
    this.announceList`Getting feature flags`;
    const flags = (await readFeatureFlags(session)).map(({ flag }) => flag);
    this.print(renderFeatureFlags(flags));
    return flags;
  }
}
