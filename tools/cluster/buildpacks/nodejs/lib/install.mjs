// Installs npm packages. With a lockfile they go into a launch layer keyed by it: the next build of the app finds the key in the previous
// image, keeps that layer as it is and runs no npm at all, even without a build cache.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Part of the key: increase it when the layer's format changes. */
const LAYER_FORMAT = 1;

/** Scripts of the app that npm runs during the installation; they can read or write any file of the app. */
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare'];

export function installDependencies({ appDir, layersDir, platformDir, manifest }) {
  const context = { appDir, layersDir, manifest, env: npmEnvironment(layersDir, platformDir) };
  const lockfile = ['npm-shrinkwrap.json', 'package-lock.json'].find((name) => existsSync(join(appDir, name)));
  const buildScript = manifest.scripts?.build !== undefined;
  if (!hasDependencies(manifest, buildScript)) {
    console.log('kf/nodejs: package.json names no dependencies');
  } else if (!lockfile) {
    installUnlocked(context, buildScript);
  } else if (buildScript || !canBeShared(context, lockfile)) {
    installInApp(context, buildScript);
  } else {
    installInLayer(context, lockfile);
  }
  if (buildScript) runBuildScript(context);
  writeCacheLayer(layersDir);
}

function hasDependencies(manifest, withDev) {
  const sections = ['dependencies', 'optionalDependencies', 'workspaces', ...(withDev ? ['devDependencies'] : [])];
  return sections.some((section) => Object.keys(manifest[section] ?? {}).length > 0);
}

function installUnlocked(context, buildScript) {
  if (existsSync(join(context.appDir, 'node_modules'))) {
    console.log('kf/nodejs: no package-lock.json; the node_modules folder that was pushed is used as it is');
    return;
  }
  console.log('kf/nodejs: no package-lock.json: versions are not fixed and nothing is reused by the next build');
  npm(context, ['install', '--no-save', ...omitDev(buildScript)]);
}

function installInApp(context, buildScript) {
  npm(context, ['ci', ...omitDev(buildScript)]);
}

function installInLayer(context, lockfile) {
  const { appDir, layersDir } = context;
  const layer = join(layersDir, 'modules');
  const description = `${layer}.toml`;
  const modules = join(appDir, 'node_modules');
  const key = layerKey(appDir, lockfile);
  if (existsSync(description) && readFileSync(description, 'utf8').includes(`key = "${key}"`)) {
    console.log(`kf/nodejs: ${lockfile} has not changed: the packages of the previous build are used again`);
    rmSync(modules, { recursive: true, force: true });
  } else {
    rmSync(layer, { recursive: true, force: true });
    npm(context, ['ci', ...omitDev(false)]);
    mkdirSync(layer, { recursive: true });
    if (existsSync(modules)) move(modules, join(layer, 'node_modules'));
  }
  symlinkSync(join(layer, 'node_modules'), modules);
  writeFileSync(description, `[types]\nlaunch = true\n\n[metadata]\nkey = "${key}"\n`);
}

function runBuildScript(context) {
  npm(context, ['run', 'build']);
  const installed = existsSync(join(context.appDir, 'node_modules')) && existsSync(join(context.appDir, 'package-lock.json'));
  if (installed && isProduction()) npm(context, ['prune', '--omit=dev', '--ignore-scripts']);
}

/** Whether the packages depend on the lockfile alone: no install script of the app, no link into its folders. */
function canBeShared({ appDir, manifest }, lockfile) {
  if (INSTALL_SCRIPTS.some((name) => manifest.scripts?.[name] !== undefined)) return false;
  const { packages } = JSON.parse(readFileSync(join(appDir, lockfile), 'utf8'));
  if (packages === undefined) return false;
  return Object.values(packages).every((entry) => entry.link !== true && !String(entry.resolved ?? '').startsWith('file:'));
}

function layerKey(appDir, lockfile) {
  const hash = createHash('sha256');
  hash.update(JSON.stringify([LAYER_FORMAT, process.versions.modules, process.arch, omitDev(false)]));
  for (const name of [lockfile, 'package.json', '.npmrc']) {
    const path = join(appDir, name);
    hash.update(`\0${name}\0`);
    if (existsSync(path)) hash.update(name === 'package.json' ? dependencySections(path) : readFileSync(path));
  }
  return hash.digest('hex');
}

/** The parts of package.json that `npm ci` reads; a changed version or script of the app needs no new installation. */
function dependencySections(path) {
  const { dependencies, devDependencies, optionalDependencies, peerDependencies, overrides, bundleDependencies } = JSON.parse(
    readFileSync(path, 'utf8'),
  );
  return JSON.stringify([dependencies, devDependencies, optionalDependencies, peerDependencies, overrides, bundleDependencies]);
}

/** Development packages are left out unless the build needs them or the build environment asks for them. */
function omitDev(needed) {
  return needed || !isProduction() ? ['--include=dev'] : ['--omit=dev'];
}

function isProduction() {
  return (process.env.NODE_ENV ?? 'production') === 'production';
}

function npm({ appDir, env }, args) {
  console.log(`kf/nodejs: npm ${args.join(' ')}`);
  const result = spawnSync('npm', args, { cwd: appDir, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (result.error) throw new Error(`npm cannot be started: ${result.error.message}`);
  if (result.signal)
    throw new Error(`npm ${args[0]} was ended by ${result.signal}${result.signal === 'SIGKILL' ? ' (often: out of memory)' : ''}`);
  if (result.status !== 0) throw new Error(`npm ${args.join(' ')} failed with exit code ${result.status}`);
}

function npmEnvironment(layersDir, platformDir) {
  const npmrc = boundNpmrc(platformDir);
  return {
    ...process.env,
    npm_config_cache: join(layersDir, 'npm-cache'),
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    npm_config_progress: 'false',
    npm_config_logs_max: '0',
    npm_config_prefer_offline: 'true',
    ...(npmrc ? { npm_config_userconfig: npmrc } : {}),
  };
}

/** A binding of type npmrc contains addresses of registries and tokens, so that the app does not contain them. */
function boundNpmrc(platformDir) {
  const root = process.env.SERVICE_BINDING_ROOT ?? join(platformDir, 'bindings');
  if (!existsSync(root)) return undefined;
  for (const name of readdirSync(root)) {
    const type = join(root, name, 'type');
    const file = join(root, name, '.npmrc');
    if (existsSync(type) && existsSync(file) && readFileSync(type, 'utf8').trim() === 'npmrc') return file;
  }
  return undefined;
}

/** Downloads of npm are kept if the platform has a cache; otherwise the lifecycle drops them. */
function writeCacheLayer(layersDir) {
  if (existsSync(join(layersDir, 'npm-cache'))) writeFileSync(join(layersDir, 'npm-cache.toml'), '[types]\ncache = true\n');
}

/** The layers folder is a separate volume in a pod, where a rename is refused. */
function move(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (error.code !== 'EXDEV') throw error;
    const result = spawnSync('mv', [from, to], { stdio: 'inherit' });
    if (result.status !== 0) throw new Error(`moving ${from} into its layer failed`);
  }
}
