// The npm registry on the node: serves the packages in the sample apps' lockfiles, for builds in a cluster without internet.
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { firstNode, npmMirrorPort } from './addresses.ts';
import { cacheFolder } from './cache.ts';
import { fetchLockedPackages } from './images/npm-mirror.ts';
import type { NodeProgram } from './namespaces.ts';
import { run } from './process.ts';

const apps = join(import.meta.dirname, '../../test/fixtures/apps');
const program = join(import.meta.dirname, 'images', 'serve-npm-mirror.ts');

function archiveFolder(): string {
  return join(cacheFolder(), 'npm-mirror');
}

/** Downloads the archives of all packages in a fixture app's lockfile. Returns whether any was missing. */
export async function fetchNpmPackages(log: (line: string) => void): Promise<boolean> {
  const lockfiles = readdirSync(apps).map((app) => join(apps, app, 'package-lock.json'));
  const count = (): number => (existsSync(archiveFolder()) ? readdirSync(archiveFolder()).length : 0);
  const before = count();
  await fetchLockedPackages(
    lockfiles.filter((file) => existsSync(file)),
    archiveFolder(),
    log,
  );
  return count() > before;
}

function hasUsableLock(file: string): boolean {
  return existsSync(file) && ((JSON.parse(readFileSync(file, 'utf8')) as { lockfileVersion?: number }).lockfileVersion ?? 1) >= 2;
}

/**
 * Downloads what an app's folder needs from npm, from the registry that npm uses on this machine: the packages of its lockfile, or, without a
 * lockfile of version 2 or 3, those that npm would lock now. Nothing happens without a package.json.
 */
export async function fetchPackagesOf(folder: string, log: (line: string) => void): Promise<void> {
  if (!existsSync(join(folder, 'package.json'))) return;
  const own = ['npm-shrinkwrap.json', 'package-lock.json'].map((name) => join(folder, name)).find(hasUsableLock);
  if (own !== undefined) return fetchLockedPackages([own], archiveFolder(), log);
  const temporary = mkdtempSync(join(tmpdir(), 'kf-lock-'));
  try {
    for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
      if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(temporary, name));
    }
    log('npm mirror: asking npm which packages the folder needs');
    await run('npm', ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: temporary });
    const lock = join(temporary, 'package-lock.json');
    if (existsSync(lock)) await fetchLockedPackages([lock], archiveFolder(), log);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** The mirror. It also serves archives that are added to its folder later. */
export function npmMirror(): NodeProgram {
  return { name: 'npm-mirror', command: [process.execPath, program, firstNode.address, String(npmMirrorPort), archiveFolder()] };
}

/** The registry's address for npm in pods. */
export const npmMirrorUrl = `http://${firstNode.address}:${String(npmMirrorPort)}/`;
