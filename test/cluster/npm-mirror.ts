// The npm registry on the node: serves the packages that the sample apps' lockfiles name, for builds in a cluster without internet.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { firstNode, npmMirrorPort } from './addresses.ts';
import { cacheFolder } from './cache.ts';
import { fetchLockedPackages } from './images/npm-mirror.ts';
import type { NodeProgram } from './namespaces.ts';

const apps = join(import.meta.dirname, '..', 'fixtures', 'apps');
const program = join(import.meta.dirname, 'images', 'serve-npm-mirror.ts');

function archiveFolder(): string {
  return join(cacheFolder(), 'npm-mirror');
}

/** Fetches the archives of all packages that a fixture app has locked. Returns whether any was missing. */
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

/** The mirror. It reads the archives when it starts. */
export function npmMirror(): NodeProgram {
  return { name: 'npm-mirror', command: [process.execPath, program, firstNode.address, String(npmMirrorPort), archiveFolder()] };
}

/** For npm in pods. */
export const npmMirrorUrl = `http://${firstNode.address}:${String(npmMirrorPort)}/`;
