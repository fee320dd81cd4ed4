import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { archiveName } from '../../../tools/cluster/images/npm-package.ts';
import { startNpmMirror } from '../../../tools/cluster/images/npm-mirror.ts';
import type { NpmMirror } from '../../../tools/cluster/images/npm-mirror.ts';
import { Workspace } from './buildpack-run.ts';
import type { PhaseResult } from './buildpack-run.ts';

let tarballs: string;
let mirror: NpmMirror;
let workspace: Workspace;

beforeAll(async () => {
  tarballs = mkdtempSync(join(tmpdir(), 'kf-tarballs-'));
  publish('greeting', { 'index.js': 'module.exports = "hello"' });
  publish(
    'compiler',
    { 'compile.js': '#!/usr/bin/env node\nrequire("fs").writeFileSync("built.txt", "built")' },
    { bin: { compile: 'compile.js' } },
  );
  mirror = await startNpmMirror({ host: '127.0.0.1', port: 0, tarballDir: tarballs });
});
afterAll(async () => {
  await mirror.close();
  rmSync(tarballs, { recursive: true, force: true });
});
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true }));

function publish(name: string, files: Record<string, string>, more: object = {}): void {
  const folder = join(tarballs, `source-${name}`);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: '1.0.0', ...more }));
  for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content);
  const packed = spawnSync('npm', ['pack', folder, '--silent', '--pack-destination', tarballs], { encoding: 'utf8' });
  renameSync(join(tarballs, packed.stdout.trim()), join(tarballs, archiveName(name, '1.0.0')));
}

interface App {
  scripts?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

function writeApp(app: App): void {
  const root = { name: 'app', version: '1.0.0', ...app };
  const entries = { ...dependencyEntries(app.dependencies, {}), ...dependencyEntries(app.devDependencies, { dev: true }) };
  workspace.write('package.json', JSON.stringify(root));
  workspace.write(
    'package-lock.json',
    JSON.stringify({ name: 'app', version: '1.0.0', lockfileVersion: 3, packages: { '': root, ...entries } }),
  );
  workspace.write('server.js', 'console.log(require("greeting"))');
}

function dependencyEntries(dependencies: Record<string, string> = {}, more: object = {}): object {
  const bin = (name: string): object => (name === 'compiler' ? { bin: { compile: 'compile.js' } } : {});
  return Object.fromEntries(
    Object.entries(dependencies).map(([name, version]) => [`node_modules/${name}`, { version, ...bin(name), ...more }]),
  );
}

function build(env: NodeJS.ProcessEnv = {}): Promise<PhaseResult> {
  return workspace.build('nodejs', { NPM_CONFIG_REGISTRY: mirror.url, ...env });
}

test('locked packages go into a launch layer that the app uses through its node_modules', async () => {
  writeApp({ dependencies: { greeting: '1.0.0' } });
  const result = await build();
  expect(result.code).toBe(0);
  expect(workspace.layerFile('modules.toml')).toMatch(/^\[types\]\nlaunch = true\n\n\[metadata\]\nkey = "[0-9a-f]{64}"\n$/);
  expect(lstatSync(join(workspace.app, 'node_modules')).isSymbolicLink()).toBe(true);
  const run = spawnSync(process.execPath, ['server.js'], { cwd: workspace.app, encoding: 'utf8' });
  expect(run.stdout).toBe('hello\n');
});

test('with the key of the previous build and without content npm does not run', async () => {
  writeApp({ dependencies: { greeting: '1.0.0' } });
  await build();
  // The lifecycle restores only the description of a launch layer, without types and content.
  const key = /^key = .*$/m.exec(workspace.layerFile('modules.toml'))?.[0] ?? '';
  rmSync(join(workspace.layers, 'modules'), { recursive: true });
  rmSync(join(workspace.app, 'node_modules'));
  writeFileSync(join(workspace.layers, 'modules.toml'), `[metadata]\n${key}\n`);
  const again = await build({ NPM_CONFIG_REGISTRY: 'http://127.0.0.1:9/' });
  expect(again.code).toBe(0);
  expect(again.output).toContain('the packages of the previous build are used again');
  expect(again.output).not.toContain('npm ci');
  expect(workspace.layerFile('modules.toml')).toContain('launch = true');
  expect(existsSync(join(workspace.layers, 'modules'))).toBe(false);
});

test('another lockfile gives another key, and another start script does not', async () => {
  writeApp({ dependencies: { greeting: '1.0.0' } });
  await build();
  const first = workspace.layerFile('modules.toml');
  writeApp({ dependencies: { greeting: '1.0.0' }, scripts: { start: 'node server.js' } });
  // The lockfile does not contain the scripts.
  const lock = readFileSync(join(workspace.app, 'package-lock.json'), 'utf8').replace(',"scripts":{"start":"node server.js"}', '');
  workspace.write('package-lock.json', lock);
  expect((await build()).output).toContain('are used again');
  writeApp({ dependencies: { greeting: '1.0.0', compiler: '1.0.0' } });
  expect((await build()).output).toContain('npm ci --omit=dev');
  expect(workspace.layerFile('modules.toml')).not.toBe(first);
});

test('the build script can use development packages, and they are removed afterwards', async () => {
  writeApp({ dependencies: { greeting: '1.0.0' }, devDependencies: { compiler: '1.0.0' }, scripts: { build: 'compile' } });
  const result = await build();
  expect(result).toMatchObject({ code: 0 });
  expect(readFileSync(join(workspace.app, 'built.txt'), 'utf8')).toBe('built');
  expect(existsSync(join(workspace.app, 'node_modules', 'greeting'))).toBe(true);
  expect(existsSync(join(workspace.app, 'node_modules', 'compiler'))).toBe(false);
});

test('NODE_ENV=development in the build environment keeps development packages', async () => {
  writeApp({ dependencies: { greeting: '1.0.0' }, devDependencies: { compiler: '1.0.0' } });
  await build({ NODE_ENV: 'development' });
  expect(existsSync(join(workspace.app, 'node_modules', 'compiler'))).toBe(true);
});

test('an app with its own install script is installed in its folder, where the script runs', async () => {
  writeApp({ dependencies: { greeting: '1.0.0' }, scripts: { postinstall: "node -e \"require('fs').writeFileSync('ran', '')\"" } });
  expect(await build()).toMatchObject({ code: 0 });
  expect(existsSync(join(workspace.app, 'ran'))).toBe(true);
  expect(lstatSync(join(workspace.app, 'node_modules')).isSymbolicLink()).toBe(false);
  expect(workspace.layerFile('modules.toml')).toBe('');
});

test('packages that were pushed without a lockfile are used as they are', async () => {
  workspace.write('package.json', JSON.stringify({ dependencies: { greeting: '1.0.0' } }));
  workspace.write('node_modules/greeting/index.js', 'module.exports = "vendored"');
  const result = await build({ NPM_CONFIG_REGISTRY: 'http://127.0.0.1:9/' });
  expect(result.code).toBe(0);
  expect(result.output).toContain('the node_modules folder that was pushed is used as it is');
});

test('the error of npm is in the log, and the build fails', async () => {
  writeApp({ dependencies: { missing: '1.0.0' } });
  const result = await build();
  expect(result.code).toBe(1);
  expect(result.output).toContain('this mirror holds no package "missing"');
  expect(result.output).toContain('kf/nodejs: npm ci --omit=dev failed with exit code 1');
});

test('a binding of type npmrc sets the address of the registry', async () => {
  writeApp({ dependencies: { greeting: '1.0.0' } });
  const binding = join(workspace.platform, 'bindings', 'registry');
  mkdirSync(binding, { recursive: true });
  writeFileSync(join(binding, 'type'), 'npmrc\n');
  writeFileSync(join(binding, '.npmrc'), `registry=${mirror.url}\n`);
  expect(await workspace.build('nodejs')).toMatchObject({ code: 0 });
});
