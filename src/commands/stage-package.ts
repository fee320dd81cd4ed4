import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { DropletSummary } from '../lib/api/results.ts';
import { renderStaged } from '../lib/views/sources.ts';

export default class StagePackage extends KfCommand<DropletSummary> {
  static override summary = 'build a package, and leave what runs as it is';
  static override changes = true;
  static override examples = ['kf stage-package example-app', 'kf stage-package example-app --package-guid PACKAGE_GUID'];
  static override aliases = ['stage'];
  static override seeAlso = ['app', 'create-package', 'droplets', 'packages', 'push', 'set-droplet'];
  static override environment: [string, string][] = [['CF_STAGING_TIMEOUT', 'minutes to wait for the build, default 15']];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    'package-guid': Flags.string({ summary: 'package to build, default the one that was pushed last', helpValue: 'PACKAGE_GUID' }),
  };

  async run(): Promise<DropletSummary> {
    const { args, flags } = await this.parse(StagePackage);
    const [session, { stageOnly }] = await this.inSpace(import('../lib/ops/apps/staging.ts'));
    this.announce`Staging package for ${args.APP_NAME}`;
    const droplet = await stageOnly(session, await this.findApp(session, args.APP_NAME), flags['package-guid']);
    this.print(renderStaged(droplet));
    return droplet;
  }
}
