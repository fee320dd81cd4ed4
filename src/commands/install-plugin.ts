import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import type { PluginDetails } from '../lib/ops/plugins/folder.ts';
import { line } from '../lib/views/block.ts';

export default class InstallPlugin extends KfCommand<PluginDetails | { declined: true }> {
  static override summary = 'install a plugin: an npm package, a tarball or a folder';
  static override examples = ['kf install-plugin example-plugin', 'kf install-plugin ./example-plugin-1.0.0.tgz -f'];
  static override seeAlso = ['plugins', 'uninstall-plugin'];
  static override args = { NPM_PACKAGE: requiredArg('npm package, or the path of a tarball or a folder') };
  static override flags = { force: forceFlag() };

  async run(): Promise<PluginDetails | { declined: true }> {
    const { args, flags } = await this.parse(InstallPlugin);
    const given = args.NPM_PACKAGE;
    if (!flags.force) {
      this.say`Attention: Plugins are programs written by potentially untrusted authors.`;
      this.say`Install and use plugins at your own risk.`;
      if (!(await this.confirm(`Do you want to install the plugin ${given}?`))) {
        this.print([line('Plugin installation cancelled.')]);
        return { declined: true };
      }
    }
    const [{ installPlugin }, { pluginFolder }, { loadPlugins }, { isKfCommand }] = await Promise.all([
      import('../lib/ops/plugins/install.ts'),
      import('../lib/ops/plugins/folder.ts'),
      import('../plugins.ts'),
      import('../lib/cf/cf-commands.ts'),
    ]);
    this.say`Installing plugin ${given}...`;
    const context = { folder: pluginFolder(this.frame.env), signal: this.signal, load: loadPlugins, isOwn: isKfCommand };
    const plugin = await installPlugin(context, given, flags.force);
    this.ok();
    this.print([line(`Plugin ${plugin.name} ${plugin.version} successfully installed.`)]);
    return plugin;
  }
}
