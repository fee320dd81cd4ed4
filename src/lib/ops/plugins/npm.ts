// Runs npm for plugins, and describes a failure in a sentence.

import { spawn } from 'node:child_process';
import { KfError } from '../../errors.ts';

interface NpmError {
  code?: string;
  summary?: string;
  detail?: string;
}

/** No network, or no answer. */
const unreachable = new Set([
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ENOTCACHED',
]);

/** Install scripts are off: a plugin's code runs when its command is called, not before. */
const always = [
  '--omit=dev',
  '--ignore-scripts',
  '--install-links',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--json',
  '--loglevel=error',
];

/** Without a network, npm fails soon. */
const impatient = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000'];

function errorOf(stdout: string, stderr: string): NpmError {
  try {
    const { error } = JSON.parse(stdout) as { error?: NpmError };
    if (error !== undefined) return error;
  } catch {
    // npm failed before it could write its JSON.
  }
  return { summary: stderr.trim().split('\n').at(-1) ?? '' };
}

function failure(what: string, { code = '', summary = '', detail = '' }: NpmError): KfError {
  const cause = summary.trim() === '' ? detail.trim() : summary.trim();
  const details = { npmCode: code };
  if (code === 'E404') return new KfError('not-found', `There is no npm package '${what}'.`, { details });
  if (unreachable.has(code))
    return new KfError('unreachable', `The npm registry does not answer (${code}), so plugin '${what}' was not installed.`, { details });
  return new KfError('failed', `npm could not install '${what}': ${cause}`, { details });
}

/**
 * Runs one npm command in a folder, with the npm from the PATH.
 * @param what the package, for the message of a failure
 * @throws KfError `not-found`, `unreachable`, `failed`, `interrupted`
 */
export async function runNpm(folder: string, args: string[], what: string, signal: AbortSignal): Promise<void> {
  const child = spawn('npm', [...args, ...always, ...impatient], {
    cwd: folder,
    signal,
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  });
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text: string) => (said[stream] += text));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') reject(error);
      else reject(new KfError('failed', 'Plugins are installed by npm, and there is no npm on the path. It comes with Node.js.'));
    });
    child.once('close', resolve);
  });
  if (code !== 0) throw failure(what, errorOf(said.stdout, said.stderr));
}
