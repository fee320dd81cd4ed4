import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { PackageSummary } from '../lib/api/results.ts';
import { renderPackages } from '../lib/views/sources.ts';

export default class Packages extends KfCommand<PackageSummary[]> {
  static override summary = 'list the packages of an app, newest first';
  static override examples = ['kf packages example-app'];
  static override seeAlso = ['app', 'create-package', 'droplets', 'push'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<PackageSummary[]> {
    const { args } = await this.parse(Packages);
    const [session, { listPackages }] = await this.inSpace(import('../lib/ops/apps/packages.ts'));
    this.announceList`Getting packages of app ${args.APP_NAME}`;
    const packages = await listPackages(session, await this.findApp(session, args.APP_NAME));
    this.print(renderPackages(packages));
    return packages;
  }
}
