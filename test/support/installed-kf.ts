// kf as a user gets it: packed by `npm pack`, installed by `npm install -g` under a prefix of its own.

import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** npm as it was found when this run began; its own Node is the one on the path. */
function npm(args: string[], cwd: string): Promise<{ stdout: string }> {
  const cli = process.env['npm_execpath'];
  return cli?.endsWith('.js') === true ? execute(process.execPath, [cli, ...args], { cwd }) : execute('npm', args, { cwd });
}

/** Packs this checkout (which builds it) and installs the tarball below `prefix`; returns the path of the `kf` program. */
export async function installPackedKf(prefix: string): Promise<string> {
  await mkdir(prefix, { recursive: true });
  const { stdout } = await npm(['pack', '--pack-destination', prefix, '--json'], process.cwd());
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('['))) as { filename: string }[];
  if (packed === undefined) throw new Error(`npm pack named no file: ${stdout}`);
  await npm(
    ['install', '-g', '--prefix', prefix, '--offline', '--ignore-scripts', path.join(prefix, path.basename(packed.filename))],
    prefix,
  );
  return path.join(prefix, 'bin', 'kf');
}
