// Debian packages as layer entries: names resolved to versions once, archives kept in the cache, unpacked without being installed.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { LayerEntry } from '../../../src/lib/oci/layer.ts';
import { run, tryRun } from '../process.ts';
import { mergedUsrName } from './rootfs.ts';
import { readTar } from './tar-reader.ts';

/** Archive file names (name, version and architecture), in the order of the packages asked for. */
export interface ResolvedPackages {
  folder: string;
  archives: string[];
}

/** Documentation, translations and hooks of the packaging system, which no container reads. */
const LEFT_OUT = [
  /^usr\/share\/(doc|man|locale|info|lintian|bug|menu|doc-base|i18n|bash-completion|common-licenses|base-files|debianutils|gcc|gdb)(\/|$)/,
  /^usr\/lib\/[^/]+\/(gconv|audit)(\/|$)/,
  /^(var|etc\/(apt|cron[^/]*|kernel|default|update-motd\.d))(\/|$)/,
];

/**
 * Downloads missing packages. The versions found first stay until the list of names changes or the cache is removed, so that a new upload to Debian
 * does not rebuild an image.
 */
export async function fetchDebianPackages(
  names: readonly string[],
  cacheDir: string,
  log: (line: string) => void,
): Promise<ResolvedPackages> {
  const folder = join(cacheDir, 'debian');
  mkdirSync(folder, { recursive: true });
  const system = readFileSync('/etc/os-release', 'utf8');
  const key = createHash('sha256')
    .update(JSON.stringify([names, process.arch, system]))
    .digest('hex')
    .slice(0, 12);
  const lockFile = join(folder, `${key}.json`);
  const known = existsSync(lockFile) ? (JSON.parse(readFileSync(lockFile, 'utf8')) as string[]) : [];
  if (known.length > 0 && known.every((archive) => existsSync(join(folder, archive)))) return { folder, archives: known };

  log(`images: fetching ${String(names.length)} Debian packages`);
  const archives = await resolveArchives(names);
  const missing = names.filter((_, index) => !existsSync(join(folder, archives[index] ?? '')));
  if (missing.length > 0) await download(missing, folder);
  writeFileSync(`${lockFile}.${String(process.pid)}.tmp`, JSON.stringify(archives));
  renameSync(`${lockFile}.${String(process.pid)}.tmp`, lockFile);
  return { folder, archives };
}

/** Uses a separate folder, so that an interrupted download is never taken for a complete archive. */
async function download(names: readonly string[], folder: string): Promise<void> {
  const temporary = join(folder, `${String(process.pid)}.tmp`);
  mkdirSync(temporary);
  try {
    await run('apt-get', ['download', '-q', ...names], { cwd: temporary });
    for (const archive of readdirSync(temporary)) renameSync(join(temporary, archive), join(folder, archive));
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function resolveArchives(names: readonly string[]): Promise<string[]> {
  let found = await printUris(names);
  if (found.size < names.length) {
    // Package lists may be missing or outdated.
    await run('apt-get', ['update', '-q']);
    found = await printUris(names);
  }
  return names.map((name) => {
    const archive = found.get(name);
    if (archive === undefined) throw new Error(`apt knows no package "${name}".`);
    return archive;
  });
}

/** Package name → archive name, from lines like `'http://…/bash_5.2.15-2_amd64.deb' bash_5.2.15-2_amd64.deb 1492356 SHA256:…`. */
async function printUris(names: readonly string[]): Promise<Map<string, string>> {
  const result = await tryRun('apt-get', ['download', '--print-uris', '-q', ...names]);
  const archives = [...result.stdout.matchAll(/^'[^']+' (\S+\.deb) /gm)].map((match) => match[1] ?? '');
  return new Map(archives.map((archive) => [archive.slice(0, archive.indexOf('_')), archive]));
}

/** The files of the packages with /usr merged, without documentation. */
export async function debianEntries(packages: ResolvedPackages): Promise<LayerEntry[]> {
  const entries: LayerEntry[] = [];
  for (const archive of packages.archives) {
    const child = spawn('dpkg-deb', ['--fsys-tarfile', join(packages.folder, archive)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
    entries.push(
      ...(await readTar(child.stdout, (name) => (LEFT_OUT.some((pattern) => pattern.test(name)) ? undefined : mergedUsrName(name)))),
    );
    const code = await ended;
    if (code !== 0) throw new Error(`dpkg-deb could not read ${archive} (exit code ${String(code)}).`);
  }
  return entries;
}
