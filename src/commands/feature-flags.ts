import { KfCommand } from '../base-command.ts';
import { featureFlags, type FeatureFlag } from '../lib/cf/feature-flags.ts';
import { renderFeatureFlags } from '../lib/views/feature-flags.ts';

export default class FeatureFlags extends KfCommand<readonly FeatureFlag[]> {
  static override summary = 'list the feature flags of cf as they are in kf';
  static override examples = ['kf feature-flags', 'kf feature-flags --json'];
  static override seeAlso = ['disable-feature-flag', 'enable-feature-flag', 'feature-flag'];

  async run(): Promise<readonly FeatureFlag[]> {
    await this.parse(FeatureFlags);
    await this.clusterSession();
    this.announceList`Getting feature flags`;
    this.print(renderFeatureFlags(featureFlags));
    return featureFlags;
  }
}
