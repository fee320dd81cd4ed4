// The folder of plugins, in the layout of oclif's own plugins, so that oclif's loader finds them.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

const present = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

/** `$CF_PLUGIN_HOME/.cf/kf-plugins`, or in `$CF_HOME`, else `kf/plugins` in the XDG data folder. */
export function pluginFolder(env: Env): string {
  const home = present(env['CF_PLUGIN_HOME']) ?? present(env['CF_HOME']);
  if (home !== undefined) return join(home, '.cf', 'kf-plugins');
  return join(present(env['XDG_DATA_HOME']) ?? join(present(env['HOME']) ?? homedir(), '.local', 'share'), 'kf', 'plugins');
}

const packageFile = (folder: string): string => join(folder, 'package.json');

/** False on nearly every machine, at the cost of one file check. */
export const hasPlugins = (env: Env): boolean => existsSync(packageFile(pluginFolder(env)));

/** An entry of `oclif.plugins` in the folder's package.json. */
interface UserPlugin {
  name: string;
  type: 'user';
  tag?: string;
}

/** The folder's package.json: the fields of npm and those of oclif. */
export interface PluginPackage {
  dependencies: Record<string, string>;
  plugins: UserPlugin[];
}

export async function readPluginPackage(folder: string): Promise<PluginPackage> {
  if (!existsSync(packageFile(folder))) return { dependencies: {}, plugins: [] };
  const { dependencies = {}, oclif } = JSON.parse(await readFile(packageFile(folder), 'utf8')) as {
    dependencies?: Record<string, string>;
    oclif?: { plugins?: UserPlugin[] };
  };
  return { dependencies, plugins: oclif?.plugins ?? [] };
}

export async function writePluginPackage(folder: string, { dependencies, plugins }: PluginPackage): Promise<void> {
  const text = JSON.stringify({ name: 'kf-plugins', private: true, dependencies, oclif: { schema: 1, plugins } }, null, 2);
  await writeFile(packageFile(folder), `${text}\n`);
}
