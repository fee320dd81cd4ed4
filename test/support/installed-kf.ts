// kf as users install it: packed by `npm pack`, installed by `npm install -g` under its own prefix.

import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Runs the npm that started this run (`npm_execpath`) with the present Node, otherwise the npm from the PATH. */
function npm(args: string[], cwd: string): Promise<{ stdout: string }> {
  const cli = process.env['npm_execpath'];
  return cli?.endsWith('.js') === true ? execute(process.execPath, [cli, ...args], { cwd }) : execute('npm', args, { cwd });
}

/** Set when `dist` is built: to build it again would take files away from a ring that runs beside this one. */
export const isBuilt = 'KF_TEST_BUILT';

/** Builds and packs this checkout and installs the tarball below `prefix`; returns the path of the `kf` program. */
export async function installPackedKf(prefix: string): Promise<string> {
  await mkdir(prefix, { recursive: true });
  const flags = process.env[isBuilt] === undefined ? [] : ['--ignore-scripts'];
  const { stdout } = await npm(['pack', '--pack-destination', prefix, '--json', ...flags], process.cwd());
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('['))) as { filename: string }[];
  if (packed === undefined) throw new Error(`npm pack named no file: ${stdout}`);
  await npm(
    ['install', '-g', '--prefix', prefix, '--offline', '--ignore-scripts', path.join(prefix, path.basename(packed.filename))],
    prefix,
  );
  return path.join(prefix, 'bin', 'kf');
}
