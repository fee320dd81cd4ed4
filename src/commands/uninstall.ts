import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { counted } from '../lib/api/sizes.ts';
import type { UninstallResult } from '../lib/ops/install/uninstall.ts';
import { uninstallBlocks } from '../lib/views/setup.ts';

export default class Uninstall extends KfCommand<UninstallResult | { declined: true }> {
  static override summary = 'remove kf and all its apps from a cluster';
  static override examples = ['kf uninstall', 'kf uninstall --yes', 'kf uninstall --keep-data --yes'];
  static override isAboutInstallation = true;
  static override seeAlso = ['setup'];
  static override flags = {
    yes: Flags.boolean({ char: 'y', summary: 'do not ask' }),
    'keep-data': Flags.boolean({ summary: 'remove only the controller; apps keep serving, and a later setup takes them over' }),
  };

  async run(): Promise<UninstallResult | { declined: true }> {
    const { flags } = await this.parse(Uninstall);
    const session = await this.clusterSession({ ignorePin: true });
    const { listAppsOfInstallation, uninstall, uninstallKeepingData } = await import('../lib/ops/install/index.ts');
    this.say`Removing kf from cluster ${session.cluster.identity.context} as ${session.user}...`;
    const apps = await listAppsOfInstallation(session.cluster);
    if (!flags.yes && !(await this.confirm(questionFor(flags['keep-data'] === true, apps), '--yes'))) {
      this.say`kf has not been removed.`;
      return { declined: true };
    }
    const context = { cluster: session.cluster, report: this.report, signal: this.signal };
    const result = flags['keep-data'] ? await uninstallKeepingData(context) : await uninstall(context);
    this.print(uninstallBlocks(result));
    this.ok();
    return result;
  }
}

function questionFor(keepsData: boolean, apps: { name: string }[]): string {
  if (keepsData) return `Really remove the controller? Apps that go on serving: ${apps.length}.`;
  if (apps.length === 0) return 'Really remove kf? It has no apps.';
  return `Really remove kf and its ${counted(apps.length, 'app')}: ${apps.map(({ name }) => name).join(', ')}?`;
}
