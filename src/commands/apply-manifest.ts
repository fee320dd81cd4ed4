import { KfCommand } from '../base-command.ts';
import { manifestFlags, workingFolder } from '../flags/push.ts';
import type { AppliedApp } from '../lib/ops/push/apply.ts';
import { attributeTexts } from '../lib/output/push-output.ts';

interface Result {
  /** Absolute path. */
  manifest: string;
  apps: AppliedApp[];
}

export default class ApplyManifest extends KfCommand<Result> {
  static override summary = 'apply the settings of a manifest, without code';
  static override changes = true;
  static override examples = ['kf apply-manifest -f manifest.yml', 'kf apply-manifest -f manifest.yml --var instances=3'];
  static override seeAlso = ['create-app-manifest', 'push', 'restart'];
  static override flags = manifestFlags;

  async run(): Promise<Result> {
    const { flags } = await this.parse(ApplyManifest);
    const { applyManifest, manifestLines, prepareManifest, readApplyPlan } = await import('../lib/ops/push/apply.ts');
    const given = { manifest: flags.manifest, vars: flags.var, varsFiles: flags['vars-file'], redactEnv: flags['redact-env'] };
    const plan = await readApplyPlan(workingFolder(), given);
    const session = await this.spaceSession();
    this.announce`Applying manifest ${plan.manifest.asGiven}`;
    for (const warning of plan.warnings) this.warn(warning);
    const prepared = await prepareManifest(session, plan);
    for (const text of attributeTexts(manifestLines(prepared), this.terminal)) this.display.say(text);
    const apps = await applyManifest(prepared);
    this.ok();
    return { manifest: plan.manifest.path, apps };
  }
}
