// Installs and removes plugins. All changes are made and checked in a copy of their folder.

import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { KfError } from '../../errors.ts';
import { readPluginPackage, writePluginPackage, type PluginDetails } from './folder.ts';
import { runNpm } from './npm.ts';
import { replaceFolder } from './replace-folder.ts';

export interface PluginContext {
  folder: string;
  signal: AbortSignal;
  /** Loads the plugins of a folder in the same way as for running their commands. */
  load: (folder: string) => Promise<PluginDetails[]>;
  /** True for the name or alias of one of kf's own commands. */
  isOwn: (name: string) => boolean;
}

/** `https:`, `git+ssh:`; not the drive of a Windows path. */
const url = /^[a-z][a-z+]+:/i;

/** What npm gets. A path becomes absolute, because npm runs in another folder; everything else is unchanged. */
function specOf(given: string): string {
  if (url.test(given)) return given;
  const path = resolve(given);
  if (/[/\\]|\.tgz$/.test(given) && existsSync(path)) return path;
  if (/^[./~]|\.tgz$/.test(given)) throw new KfError('not-found', `There is no file '${given}' to install a plugin from.`);
  return given;
}

/** The name of the package that was installed. */
async function nameOf(copy: string, spec: string, before: Readonly<Record<string, string>>): Promise<string> {
  const { dependencies } = await readPluginPackage(copy);
  const fits = (name: string): boolean => {
    const { [name]: saved = '' } = dependencies;
    return (
      spec === name ||
      spec.startsWith(`${name}@`) ||
      saved === spec ||
      (saved.startsWith('file:') && resolve(copy, saved.slice(5)) === spec)
    );
  };
  const names = Object.keys(dependencies);
  const name = names.find((one) => dependencies[one] !== before[one]) ?? names.find(fits);
  if (name === undefined) throw new KfError('failed', `npm installed '${spec}', but kf cannot tell which package that is.`);
  return name;
}

async function assertIsPlugin(copy: string, name: string): Promise<void> {
  const { oclif } = JSON.parse(await readFile(join(copy, 'node_modules', name, 'package.json'), 'utf8')) as { oclif?: object };
  if (oclif === undefined)
    throw new KfError('usage', `Package '${name}' is no plugin: its package.json has no 'oclif'.`, {
      hints: ['docs/plugins.md says what a plugin needs.'],
    });
}

function assertCommands(plugin: PluginDetails, others: PluginDetails[], isOwn: (name: string) => boolean): void {
  const title = `Plugin ${plugin.name} ${plugin.version} could not be installed as it contains`;
  if (plugin.commands.length === 0) throw new KfError('usage', `${title} no commands.`);
  const taken = new Set(others.flatMap(({ commands }) => commands.flatMap(({ name, aliases }) => [name, ...aliases])));
  const used = plugin.commands.flatMap(({ name, aliases }) => [name, ...aliases]).filter((name) => isOwn(name) || taken.has(name));
  if (used.length === 0) return;
  throw new KfError('conflict', `${title} commands with names and aliases that are already used: ${used.join(', ')}.`);
}

/**
 * Installs an npm package, a tarball or a folder as a plugin.
 * @param force install it even if it is installed already
 * @throws KfError and leaves the folder unchanged
 */
export function installPlugin(context: PluginContext, given: string, force: boolean): Promise<PluginDetails> {
  const spec = specOf(given);
  return replaceFolder(context.folder, async (copy) => {
    const before = await readPluginPackage(copy);
    await writePluginPackage(copy, before);
    await runNpm(copy, ['install', spec, '--save-exact'], given, context.signal);
    const name = await nameOf(copy, spec, before.dependencies);
    if (before.plugins.some((plugin) => plugin.name === name) && !force) {
      throw new KfError('conflict', `Plugin ${name} could not be installed. A plugin with that name is already installed.`, {
        hints: ["Use 'kf install-plugin -f' to force a reinstall."],
      });
    }
    await assertIsPlugin(copy, name);
    const { dependencies } = await readPluginPackage(copy);
    const others = before.plugins.filter((plugin) => plugin.name !== name);
    await writePluginPackage(copy, { dependencies, plugins: [...others, { name, type: 'user' }] });
    const loaded = await context.load(copy);
    const plugin = loaded.find((one) => one.name === name);
    if (plugin === undefined) throw new KfError('failed', `Plugin ${name} cannot be loaded.`);
    assertCommands(
      plugin,
      loaded.filter((one) => one !== plugin),
      context.isOwn,
    );
    await writePluginPackage(copy, { ...(await readPluginPackage(copy)), details: loaded });
    return plugin;
  });
}

/** The version of a plugin whose installation did not record it; `unknown` for one that is damaged, which can be removed too. */
async function versionOf(folder: string, name: string): Promise<string> {
  const file = join(folder, 'node_modules', name, 'package.json');
  if (!existsSync(file)) return 'unknown';
  return (JSON.parse(await readFile(file, 'utf8')) as { version: string }).version;
}

/** Removes a plugin and the packages that only it needs. @throws KfError `not-found` */
export async function uninstallPlugin(
  { folder, signal }: Pick<PluginContext, 'folder' | 'signal'>,
  name: string,
): Promise<{ name: string; version: string }> {
  const { plugins, details } = await readPluginPackage(folder);
  if (!plugins.some((plugin) => plugin.name === name))
    throw new KfError('not-found', `Plugin ${name} does not exist.`, { hints: ['kf plugins'] });
  const version = details?.find((plugin) => plugin.name === name)?.version ?? (await versionOf(folder, name));
  if (plugins.length === 1) {
    await rm(folder, { recursive: true, force: true });
    return { name, version };
  }
  await replaceFolder(folder, async (copy) => {
    await runNpm(copy, ['uninstall', name], name, signal);
    const { dependencies } = await readPluginPackage(copy);
    const isOther = (plugin: { name: string }): boolean => plugin.name !== name;
    await writePluginPackage(copy, { dependencies, plugins: plugins.filter(isOther), details: details?.filter(isOther) });
  });
  return { name, version };
}
