import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  version: string;
}

export default class UninstallPlugin extends KfCommand<Result> {
  static override summary = 'remove an installed plugin';
  static override examples = ['kf uninstall-plugin example-plugin'];
  static override seeAlso = ['plugins', 'install-plugin'];
  static override args = { PLUGIN: requiredArg('name of the plugin') };

  async run(): Promise<Result> {
    const { args } = await this.parse(UninstallPlugin);
    const [{ uninstallPlugin }, { pluginFolder }] = await Promise.all([
      import('../lib/ops/plugins/install.ts'),
      import('../lib/ops/plugins/folder.ts'),
    ]);
    this.say`Uninstalling plugin ${args.PLUGIN}...`;
    const removed = await uninstallPlugin({ folder: pluginFolder(this.frame.env), signal: this.signal }, args.PLUGIN);
    this.ok();
    this.print([line(`Plugin ${removed.name} ${removed.version} successfully uninstalled.`)]);
    return removed;
  }
}
