import { KfCommand } from '../base-command.ts';
import type { PluginDetails } from '../lib/ops/plugins/folder.ts';
import { renderPlugins } from '../lib/views/plugins.ts';

export default class Plugins extends KfCommand<PluginDetails[]> {
  static override summary = 'list installed plugins with their commands';
  static override examples = ['kf plugins', 'kf plugins --json'];
  static override seeAlso = ['install-plugin', 'uninstall-plugin'];

  async run(): Promise<PluginDetails[]> {
    await this.parse(Plugins);
    const { hasPlugins, pluginFolder } = await import('../lib/ops/plugins/folder.ts');
    const { env } = this.frame;
    this.say`Listing installed plugins...`;
    this.say``;
    const found = hasPlugins(env) ? await (await import('../plugins.ts')).loadPlugins(pluginFolder(env)) : [];
    this.print(renderPlugins(found));
    return found;
  }
}
