import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { requireFeatureFlag, type FeatureFlag } from '../lib/cf/feature-flags.ts';

export default class EnableFeatureFlag extends KfCommand<FeatureFlag> {
  static override summary = 'check that a feature flag is enabled';
  static override examples = ['kf enable-feature-flag diego_docker'];
  static override seeAlso = ['disable-feature-flag', 'feature-flag', 'feature-flags'];
  static override args = { FEATURE_NAME: requiredArg('name of the feature flag') };

  async run(): Promise<FeatureFlag> {
    const { args } = await this.parse(EnableFeatureFlag);
    const session = await this.clusterSession();
    this.say`Enabling feature flag ${args.FEATURE_NAME} as ${session.user}...`;
    const flag = requireFeatureFlag(args.FEATURE_NAME, true);
    this.ok();
    return flag;
  }
}
