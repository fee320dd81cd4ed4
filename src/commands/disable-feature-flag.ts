import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { requireFeatureFlag, type FeatureFlag } from '../lib/cf/feature-flags.ts';

export default class DisableFeatureFlag extends KfCommand<FeatureFlag> {
  static override summary = 'check that a feature flag is disabled';
  static override examples = ['kf disable-feature-flag user_org_creation'];
  static override seeAlso = ['enable-feature-flag', 'feature-flag', 'feature-flags'];
  static override args = { FEATURE_NAME: requiredArg('name of the feature flag') };

  async run(): Promise<FeatureFlag> {
    const { args } = await this.parse(DisableFeatureFlag);
    const session = await this.clusterSession();
    this.say`Disabling feature flag ${args.FEATURE_NAME} as ${session.user}...`;
    const flag = requireFeatureFlag(args.FEATURE_NAME, false);
    this.ok();
    return flag;
  }
}
