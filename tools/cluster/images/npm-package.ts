// Published npm packages as layer entries, each archive downloaded once with npm itself.
import { createReadStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';

import type { LayerEntry } from '../../../src/lib/oci/layer.ts';
import { run } from '../process.ts';
import { readTar } from './tar-reader.ts';

/** Downloads `name@version` (exact) if it is missing; returns the path of its archive. */
export async function fetchNpmPackage(
  name: string,
  version: string,
  folder: string,
  log: (line: string) => void = () => undefined,
): Promise<string> {
  const archive = join(folder, archiveName(name, version));
  if (existsSync(archive)) return archive;
  log(`images: fetching ${name}@${version} from npm`);
  const temporary = `${archive}.${String(process.pid)}.tmp`;
  mkdirSync(temporary, { recursive: true });
  try {
    await run('npm', ['pack', `${name}@${version}`, '--silent', '--pack-destination', temporary], { cwd: temporary });
    const [file] = readdirSync(temporary);
    if (file === undefined) throw new Error(`npm pack ${name}@${version} left no archive.`);
    renameSync(join(temporary, file), archive);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return archive;
}

/** One flat name per version: `@scope/name` would need folders. */
export function archiveName(name: string, version: string): string {
  return `${name.replace('/', '+')}@${version}.tgz`;
}

/**
 * The entries of a package archive.
 * @param rename path inside the package → path in the image, or undefined to leave the file out
 */
export function npmEntries(archive: string, rename: (name: string) => string | undefined): Promise<LayerEntry[]> {
  return readTar(createReadStream(archive).pipe(createGunzip()), (name) => rename(name.slice(name.indexOf('/') + 1)));
}
