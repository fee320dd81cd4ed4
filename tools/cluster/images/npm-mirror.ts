// A small npm registry for builds in a cluster without internet: it serves the packages of given lockfiles and nothing else.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

import { defined } from '../../../src/lib/defined.ts';
import { run } from '../process.ts';
import { archiveName } from './npm-package.ts';
import { readTar } from './tar-reader.ts';

interface LockedPackage {
  version?: string;
  name?: string;
  link?: boolean;
  resolved?: string;
  integrity?: string;
  os?: string[];
  cpu?: string[];
}

interface NamedPackage {
  name: string;
  version: string;
  /** Hashes of the archive, from the lockfile. */
  integrity?: string;
}

interface Lockfile {
  packages?: Record<string, LockedPackage>;
}

export interface NpmMirror {
  /** The value for NPM_CONFIG_REGISTRY. */
  url: string;
  close: () => Promise<void>;
}

/** npm's own rule for `os` and `cpu`: named, and not excluded by a leading `!`. */
function allows(list: readonly string[] | undefined, value: string): boolean {
  if (list === undefined || list.length === 0) return true;
  return !list.includes(`!${value}`) && (list.every((item) => item.startsWith('!')) || list.includes(value));
}

/** True for packages that a registry has and that Linux installs on this machine's processor. */
function isServed({ link, version, resolved, os, cpu }: LockedPackage): boolean {
  if (link === true || version === undefined || (resolved !== undefined && !/^https?:/.test(resolved))) return false;
  return allows(os, 'linux') && allows(cpu, process.arch);
}

/** Package names and exact versions in lockfiles (version 2 or 3), without links, local folders and packages for other systems. */
export function lockedPackages(lockfiles: readonly string[]): NamedPackage[] {
  const found = new Map<string, NamedPackage>();
  for (const path of lockfiles) {
    const { packages = {} } = JSON.parse(readFileSync(path, 'utf8')) as Lockfile;
    for (const [place, entry] of Object.entries(packages)) {
      const at = place.lastIndexOf('node_modules/');
      if (at < 0 || !isServed(entry)) continue;
      const name = entry.name ?? place.slice(at + 'node_modules/'.length);
      const version = entry.version ?? '';
      found.set(`${name}@${version}`, { name, version, ...defined({ integrity: entry.integrity }) });
    }
  }
  return [...found.values()];
}

/** Downloads the archives that are missing in `tarballDir`, all with one call of npm. */
export async function fetchLockedPackages(lockfiles: readonly string[], tarballDir: string, log: (line: string) => void): Promise<void> {
  mkdirSync(tarballDir, { recursive: true });
  const place = ({ name, version }: NamedPackage): string => join(tarballDir, archiveName(name, version));
  const locked = lockedPackages(lockfiles);
  const missing = locked.filter((entry) => !existsSync(place(entry)));
  if (missing.length > 0) log(`npm mirror: fetching ${String(missing.length)} packages`);
  for (const group of withoutCollisions(missing)) await fetchTogether(group, tarballDir, place);
  const wrong = locked.find((entry) => !hasIntegrity(place(entry), entry.integrity));
  if (wrong === undefined) return;
  // Otherwise it would be served, and npm would end a build with EINTEGRITY.
  rmSync(place(wrong));
  throw new Error(
    `npm mirror: the archive of ${wrong.name}@${wrong.version} is not the one that the lockfile names (integrity ${wrong.integrity ?? ''}). ` +
      'Does the lockfile come from another registry? `npm config get registry` tells the one that was asked.',
  );
}

/** npm writes `@a/b` and `a-b` of one version to one file: such packages are not downloaded by the same call. */
export function withoutCollisions(packages: readonly NamedPackage[]): NamedPackage[][] {
  const groups: Map<string, NamedPackage>[] = [];
  for (const entry of packages) {
    const file = `${entry.name.replace(/^@/, '').replace('/', '-')}-${entry.version}`;
    const free = groups.find((group) => !group.has(file));
    if (free === undefined) groups.push(new Map([[file, entry]]));
    else free.set(file, entry);
  }
  return groups.map((group) => [...group.values()]);
}

async function fetchTogether(packages: NamedPackage[], tarballDir: string, place: (entry: NamedPackage) => string): Promise<void> {
  const temporary = join(tarballDir, `.${String(process.pid)}.tmp`);
  mkdirSync(temporary);
  try {
    const specs = packages.map(({ name, version }) => `${name}@${version}`);
    const output = await run('npm', ['pack', ...specs, '--json', '--pack-destination', temporary], { cwd: temporary });
    for (const { name, version, filename } of JSON.parse(output) as (NamedPackage & { filename: string })[]) {
      // npm names a scoped package "@scope/name-1.0.0.tgz" and writes "scope-name-1.0.0.tgz".
      const written = filename.replace(/^@/, '').replace('/', '-');
      renameSync(join(temporary, written), place({ name, version }));
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Whether an archive has these hashes; of several the last one, which is the strongest that npm writes. */
function hasIntegrity(archive: string, integrity: string | undefined): boolean {
  const [, algorithm, wanted] = /(?:^|\s)(sha\d+)-([\w+/=]+)\s*$/.exec(integrity ?? '') ?? [];
  if (algorithm === undefined || wanted === undefined) return true;
  return createHash(algorithm).update(readFileSync(archive)).digest('base64') === wanted;
}

/** Serves every archive of `tarballDir`, also archives that are added later. Port 0 selects a free one. */
export async function startNpmMirror(options: { port: number; host: string; tarballDir: string }): Promise<NpmMirror> {
  const shelf = new Shelf(options.tarballDir);
  await shelf.refresh();
  const server = createServer((request, response) => {
    answer(request, response, shelf).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${options.host}:${String(port)}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

interface PublishedVersion {
  file: string;
  integrity: string;
  manifest: { name: string; version: string } & Record<string, unknown>;
}

/** The archives of a folder. Each is read once; the folder is listed again for every request. */
class Shelf {
  readonly folder: string;
  readonly #files = new Map<string, Promise<PublishedVersion>>();
  #versions: PublishedVersion[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  async refresh(): Promise<void> {
    for (const file of readdirSync(this.folder)) {
      if (file.endsWith('.tgz') && !this.#files.has(file)) this.#files.set(file, readArchive(this.folder, file));
    }
    this.#versions = await Promise.all(this.#files.values());
  }

  versions(name: string): PublishedVersion[] {
    return this.#versions.filter(({ manifest }) => manifest.name === name);
  }

  /** The archive of a path in the form of registries: `NAME/-/UNSCOPED-VERSION.tgz`, whatever folders precede the name. */
  archive(path: string): string | undefined {
    const [, name, file] = /(?:^|\/)((?:@[^/]+\/)?[^/]+)\/-\/([^/]+)$/.exec(path) ?? [];
    const isIt = ({ manifest }: PublishedVersion): boolean =>
      manifest.name === name && `${name.replace(/^@[^/]*\//, '')}-${manifest.version}.tgz` === file;
    return this.#versions.find((version) => isIt(version))?.file;
  }
}

async function readArchive(folder: string, file: string): Promise<PublishedVersion> {
  const integrity = `sha512-${createHash('sha512')
    .update(readFileSync(join(folder, file)))
    .digest('base64')}`;
  return { file, integrity, manifest: await manifestOf(join(folder, file)) };
}

async function manifestOf(archive: string): Promise<PublishedVersion['manifest']> {
  // The top folder is "package" by convention, not by rule.
  const [entry] = await readTar(createReadStream(archive).pipe(createGunzip()), (name) =>
    /^[^/]+\/package\.json$/.test(name) ? name : undefined,
  );
  if (entry?.type !== 'file') throw new Error(`${archive} holds no package.json.`);
  const manifest = JSON.parse(entry.source.toString()) as PublishedVersion['manifest'];
  return { ...manifest, hasInstallScript: hasInstallScript(manifest['scripts']) };
}

function hasInstallScript(scripts: unknown): boolean {
  return typeof scripts === 'object' && scripts !== null && ['preinstall', 'install', 'postinstall'].some((name) => name in scripts);
}

async function answer(request: IncomingMessage, response: ServerResponse, shelf: Shelf): Promise<void> {
  const path = decodeURIComponent(new URL(request.url ?? '/', 'http://mirror').pathname).slice(1);
  if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, { error: 'this mirror is read-only' });
  if (path === '' || path === '-/ping') return send(response, 200, {});
  await shelf.refresh();
  const file = shelf.archive(path);
  if (file !== undefined) {
    const archive = join(shelf.folder, file);
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': statSync(archive).size });
    if (request.method === 'HEAD') response.end();
    else await pipeline(createReadStream(archive), response);
    return;
  }
  const versions = shelf.versions(path);
  if (versions.length === 0) return send(response, 404, { error: `this mirror holds no package "${path}"` });
  send(response, 200, packument(path, versions, `http://${request.headers.host ?? 'localhost'}/`));
}

/** https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md */
function packument(name: string, versions: PublishedVersion[], registry: string): unknown {
  const tarball = (version: string): string => `${registry}${name}/-/${name.replace(/^@[^/]*\//, '')}-${version}.tgz`;
  return {
    name,
    'dist-tags': { latest: versions.at(-1)?.manifest.version },
    versions: Object.fromEntries(
      versions.map(({ integrity, manifest }) => [
        manifest.version,
        { ...manifest, dist: { tarball: tarball(manifest.version), integrity } },
      ]),
    ),
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
