import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { FeatureFlag } from '../lib/cf/feature-flags.ts';

export default class EnableFeatureFlag extends KfCommand<FeatureFlag> {
  static override summary = 'enable a feature flag of cf';
  static override changes = true;
  static override examples = ['kf enable-feature-flag diego_docker'];
  static override seeAlso = ['disable-feature-flag', 'feature-flag', 'feature-flags'];
  static override args = { FEATURE_NAME: requiredArg('name of the feature flag') };

  async run(): Promise<FeatureFlag> {
    const { args } = await this.parse(EnableFeatureFlag);
    const [session, { setFeatureFlag }] = await this.inCluster(import('../lib/ops/tenancy/feature-flags.ts'));
    this.say`Enabling feature flag ${args.FEATURE_NAME} as ${session.user}...`;
    const { flag } = await setFeatureFlag(session, args.FEATURE_NAME, { enabled: true });
    this.ok();
    return flag;
  }
}
