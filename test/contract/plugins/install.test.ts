// Changes of the folder of plugins, with the real npm and packages from folders.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readPluginPackage, writePluginPackage, type PluginDetails } from '../../../src/lib/ops/plugins/folder.ts';
import { installPlugin, uninstallPlugin, type PluginContext } from '../../../src/lib/ops/plugins/install.ts';

const { signal } = new AbortController();
let temporary: string;
let folder: string;

beforeEach(() => {
  temporary = mkdtempSync(path.join(tmpdir(), 'kf-plugins-'));
  folder = path.join(temporary, 'plugins');
  vi.stubEnv('npm_config_registry', 'http://127.0.0.1:1');
  vi.stubEnv('npm_config_cache', path.join(temporary, 'cache'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(temporary, { recursive: true, force: true });
});

/** A package with one command, which has the package's name. */
function pack(name: string): string {
  const source = path.join(temporary, `source-${name}`);
  mkdirSync(source);
  writeFileSync(path.join(source, 'package.json'), JSON.stringify({ name, version: '1.0.0', oclif: { commands: './commands' } }));
  return source;
}

const details = (name: string): PluginDetails => ({ name, version: '1.0.0', commands: [{ name, aliases: [], summary: '' }] });

async function load(copy: string): Promise<PluginDetails[]> {
  return (await readPluginPackage(copy)).plugins.map(({ name }) => details(name));
}

const context = (more: Partial<PluginContext> = {}): PluginContext => ({ folder, signal, load, isOwn: () => false, ...more });
const installed = async (): Promise<string[]> => (await readPluginPackage(folder)).plugins.map(({ name }) => name);
/** Folders of installations beside that of the plugins. */
const beside = (): string[] => readdirSync(temporary).filter((name) => name.startsWith('plugins.'));
const endedPid = (): number => spawnSync(process.execPath, ['-e', '']).pid;

test('two installations at the same time: the slower one fails, and the plugin of the other one stays', async () => {
  const whileOtherInstalls = async (copy: string): Promise<PluginDetails[]> => {
    mkdirSync(folder);
    await writePluginPackage(folder, { dependencies: {}, plugins: [{ name: 'other', type: 'user' }] });
    return load(copy);
  };
  const slow = installPlugin(context({ load: whileOtherInstalls }), pack('slow'), false);
  await expect(slow).rejects.toThrow('Another kf changed the plugins at the same time, so nothing was changed.');
  expect(await installed()).toEqual(['other']);
  expect(beside()).toEqual([]);
});

test('what a killed installation left is removed, and what a running one works on stays', async () => {
  for (const kind of ['new', 'old']) mkdirSync(`${folder}.${kind}-${endedPid()}`);
  const running = `plugins.new-${process.ppid}`;
  mkdirSync(path.join(temporary, running));
  await installPlugin(context(), pack('first'), false);
  expect(beside()).toEqual([running]);
});

test('plugins come back if the process was killed while it replaced their folder', async () => {
  const old = `${folder}.old-${endedPid()}`;
  mkdirSync(old);
  await writePluginPackage(old, { dependencies: {}, plugins: [{ name: 'kept', type: 'user' }] });
  await installPlugin(context(), pack('first'), false);
  expect(await installed()).toEqual(['kept', 'first']);
});

test('a plugin without its files can be uninstalled', async () => {
  mkdirSync(folder);
  await writePluginPackage(folder, { dependencies: {}, plugins: [{ name: 'lost', type: 'user' }], details: [details('lost')] });
  expect(await uninstallPlugin({ folder, signal }, 'lost')).toEqual({ name: 'lost', version: '1.0.0' });
  expect(readdirSync(temporary)).not.toContain('plugins');
});

test('the URL of a tarball is given to npm', async () => {
  await expect(installPlugin(context(), 'http://127.0.0.1:1/example-1.0.0.tgz', false)).rejects.toThrow('The npm registry does not answer');
});
