import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { FeatureFlag } from '../lib/cf/feature-flags.ts';
import { renderFeatureFlags } from '../lib/views/feature-flags.ts';

export default class FeatureFlagCommand extends KfCommand<FeatureFlag> {
  static override summary = 'show a feature flag of cf';
  static override examples = ['kf feature-flag diego_docker'];
  static override seeAlso = ['disable-feature-flag', 'enable-feature-flag', 'feature-flags'];
  static override args = { FEATURE_NAME: requiredArg('name of the feature flag') };

  async run(): Promise<FeatureFlag> {
    const { args } = await this.parse(FeatureFlagCommand);
    const [session, { readFeatureFlag }] = await this.inCluster(import('../lib/ops/tenancy/feature-flags.ts'));
    this.say`Retrieving status of ${args.FEATURE_NAME} as ${session.user}...`;
    this.say``;
    const { flag } = await readFeatureFlag(session, args.FEATURE_NAME);
    this.print(renderFeatureFlags([flag], ['Features', 'State']));
    return flag;
  }
}
