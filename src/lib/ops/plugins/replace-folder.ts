// Changes a folder as a whole: the change is made in a copy beside it, which then replaces it. A failure or a kill changes nothing.

import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { KfError } from '../../errors.ts';
import { readPluginText } from './folder.ts';

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs for another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Removes what killed processes left beside the folder. One that was killed between its two renames has left the folder itself. */
async function recover(folder: string): Promise<void> {
  for (const name of await readdir(dirname(folder))) {
    if (!name.startsWith(`${basename(folder)}.`)) continue;
    const [, kind, pid] = /\.(new|old)-(\d+)$/.exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    const left = join(dirname(folder), name);
    if (kind === 'old' && !existsSync(folder)) await rename(left, folder);
    else await rm(left, { recursive: true, force: true });
  }
}

/**
 * Runs `change` in a copy of the folder, then replaces the folder with it.
 * @throws KfError `conflict` when another process has changed the folder meanwhile, and the errors of `change`
 */
export async function replaceFolder<T>(folder: string, change: (copy: string) => Promise<T>): Promise<T> {
  const [copy, old] = [`${folder}.new-${process.pid}`, `${folder}.old-${process.pid}`];
  await mkdir(dirname(folder), { recursive: true });
  await recover(folder);
  try {
    const before = await readPluginText(folder);
    if (existsSync(folder)) await cp(folder, copy, { recursive: true, verbatimSymlinks: true });
    else await mkdir(copy);
    const result = await change(copy);
    if ((await readPluginText(folder)) !== before)
      throw new KfError('conflict', 'Another kf changed the plugins at the same time, so nothing was changed.', {
        hints: ['Run the command again.'],
      });
    if (existsSync(folder)) await rename(folder, old);
    await rename(copy, folder).catch(async (error: unknown) => {
      if (existsSync(old)) await rename(old, folder);
      throw error;
    });
    return result;
  } finally {
    await Promise.all([copy, old].map((path) => rm(path, { recursive: true, force: true })));
  }
}
