// The folder of plugins, in the layout of oclif's own plugins, so that oclif's loader finds them.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { homeFolder } from '../../home.ts';

type Env = Readonly<Record<string, string | undefined>>;

const present = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

/** `$CF_PLUGIN_HOME/.cf/kf-plugins`, or in `$CF_HOME`, else `kf/plugins` in the XDG data folder. */
export function pluginFolder(env: Env): string {
  const home = present(env['CF_PLUGIN_HOME']) ?? present(env['CF_HOME']);
  if (home !== undefined) return join(home, '.cf', 'kf-plugins');
  return join(present(env['XDG_DATA_HOME']) ?? join(homeFolder(env), '.local', 'share'), 'kf', 'plugins');
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

/** A plugin as `kf plugins` shows it. */
export interface PluginDetails {
  name: string;
  version: string;
  commands: { name: string; aliases: string[]; summary: string }[];
}

/** The folder's package.json: the fields of npm, those of oclif, and that of kf. */
export interface PluginPackage {
  dependencies: Record<string, string>;
  plugins: UserPlugin[];
  /** As loaded when the plugins were installed, so that help can list their commands without loading oclif. */
  details?: PluginDetails[] | undefined;
}

/** The text of the folder's package.json; undefined if there is none. */
export async function readPluginText(folder: string): Promise<string | undefined> {
  return existsSync(packageFile(folder)) ? readFile(packageFile(folder), 'utf8') : undefined;
}

export async function readPluginPackage(folder: string): Promise<PluginPackage> {
  const text = await readPluginText(folder);
  if (text === undefined) return { dependencies: {}, plugins: [] };
  const {
    dependencies = {},
    oclif,
    kf,
  } = JSON.parse(text) as {
    dependencies?: Record<string, string>;
    oclif?: { plugins?: UserPlugin[] };
    kf?: { plugins?: PluginDetails[] };
  };
  return { dependencies, plugins: oclif?.plugins ?? [], details: kf?.plugins };
}

export async function writePluginPackage(folder: string, { dependencies, plugins, details }: PluginPackage): Promise<void> {
  const kf = details && { plugins: details };
  const text = JSON.stringify({ name: 'kf-plugins', private: true, dependencies, oclif: { schema: 1, plugins }, kf }, null, 2);
  await writeFile(packageFile(folder), `${text}\n`);
}
