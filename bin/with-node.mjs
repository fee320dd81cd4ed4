// Runs a script of this project under the Node that kf needs, whatever Node started it: gets that Node from its npm package into a cache
// folder when the present one is too old, installs the dependencies when the lockfile changed, then hands over. Plain syntax: old Nodes read this.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const nodeVersion = '24.21.0';
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const cacheDir = process.env.KF_CACHE || path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'kf');

const say = (line) => process.stderr.write(`kf: ${line}\n`);

/** The range of package.json's engines, in code: ^22.22.2 || ^24.15.0 || >=26. */
function isNewEnough(version) {
  const [major, minor, patch] = version.split('.').map(Number);
  if (major === 22) return minor > 22 || (minor === 22 && patch >= 2);
  if (major === 24) return minor >= 15;
  return major >= 26;
}

/** npm's own program, run by a given Node; `npm` from the path when this was not started by npm. */
function npm(node, args, options) {
  const cli = process.env.npm_execpath;
  const result = cli && cli.endsWith('.js') ? spawnSync(node, [cli, ...args], options) : spawnSync('npm', args, options);
  if (result.status !== 0) {
    say(`npm ${args[0]} failed (exit ${result.status}).`);
    process.exit(1);
  }
}

/** Absolute path of a Node that is new enough. */
function findNode() {
  if (isNewEnough(process.versions.node)) return process.execPath;
  const pkg = `node-${process.platform}-${process.arch}`;
  const home = path.join(cacheDir, 'node', nodeVersion);
  const binary = path.join(home, 'node_modules', pkg, 'bin', 'node');
  if (existsSync(binary)) return binary;
  say(`Node ${process.versions.node} is too old; getting Node ${nodeVersion} from npm (about 50 MB, once, into ${home}).`);
  const staging = `${home}.${process.pid}`;
  mkdirSync(staging, { recursive: true });
  npm(process.execPath, ['install', '--prefix', staging, '--no-save', '--engine-strict=false', `${pkg}@${nodeVersion}`], {
    stdio: ['ignore', 2, 2],
    cwd: staging,
  });
  if (existsSync(binary)) rmSync(staging, { recursive: true, force: true });
  else {
    rmSync(home, { recursive: true, force: true });
    renameSync(staging, home);
  }
  return binary;
}

/** `npm ci` unless node_modules stands for this very lockfile. */
function installDependencies(node) {
  const stamp = path.join(root, 'node_modules', '.kf-lock');
  const wanted = createHash('sha256')
    .update(readFileSync(path.join(root, 'package-lock.json')))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say('installing the dependencies (npm ci, about 200 MB unpacked).');
  const env = { ...process.env, PATH: `${path.dirname(node)}${path.delimiter}${process.env.PATH}` };
  npm(node, ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { stdio: ['ignore', 2, 2], cwd: root, env });
  writeFileSync(stamp, wanted);
}

const node = findNode();
installDependencies(node);
const env = {
  ...process.env,
  KF_CACHE: cacheDir,
  PATH: [path.join(root, 'node_modules', '.bin'), path.dirname(node), process.env.PATH].join(path.delimiter),
};
const [script, ...args] = process.argv.slice(2);
const child = spawn(node, [path.join(root, script), ...args], { stdio: 'inherit', env });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => process.exit(signal ? 128 + { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }[signal] || 1 : code));
