// A small npm registry for builds in a cluster without internet: it serves the packages of given lockfiles and nothing else.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

import { run } from '../process.ts';
import { archiveName } from './npm-package.ts';
import { readTar } from './tar-reader.ts';

interface Lockfile {
  packages?: Record<string, { version?: string; name?: string; link?: boolean; resolved?: string }>;
}

export interface NpmMirror {
  /** For NPM_CONFIG_REGISTRY. */
  url: string;
  close: () => Promise<void>;
}

/** Package names and exact versions that lockfiles (version 2 or 3) name, without links and local folders. */
export function lockedPackages(lockfiles: readonly string[]): { name: string; version: string }[] {
  const found = new Map<string, { name: string; version: string }>();
  for (const path of lockfiles) {
    const { packages = {} } = JSON.parse(readFileSync(path, 'utf8')) as Lockfile;
    for (const [place, entry] of Object.entries(packages)) {
      const at = place.lastIndexOf('node_modules/');
      if (at < 0 || entry.link || entry.version === undefined) continue;
      const name = entry.name ?? place.slice(at + 'node_modules/'.length);
      found.set(`${name}@${entry.version}`, { name, version: entry.version });
    }
  }
  return [...found.values()];
}

/** Fetches the archives that are not yet in `tarballDir`, all by one call of npm. */
export async function fetchLockedPackages(lockfiles: readonly string[], tarballDir: string, log: (line: string) => void): Promise<void> {
  mkdirSync(tarballDir, { recursive: true });
  const missing = lockedPackages(lockfiles).filter(({ name, version }) => !existsSync(join(tarballDir, archiveName(name, version))));
  if (missing.length === 0) return;
  log(`npm mirror: fetching ${String(missing.length)} packages`);
  const temporary = join(tarballDir, `.${String(process.pid)}.tmp`);
  mkdirSync(temporary);
  try {
    const specs = missing.map(({ name, version }) => `${name}@${version}`);
    const output = await run('npm', ['pack', ...specs, '--json', '--pack-destination', temporary], { cwd: temporary });
    for (const { name, version, filename } of JSON.parse(output) as { name: string; version: string; filename: string }[]) {
      // npm names a scoped package "@scope/name-1.0.0.tgz" and writes "scope-name-1.0.0.tgz".
      const written = filename.replace(/^@/, '').replace('/', '-');
      renameSync(join(temporary, written), join(tarballDir, archiveName(name, version)));
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Serves every archive of `tarballDir`. Port 0 takes a free one. */
export async function startNpmMirror(options: { port: number; host: string; tarballDir: string }): Promise<NpmMirror> {
  const packages = await readPackages(options.tarballDir);
  const server = createServer((request, response) => {
    answer(request, response, packages, options.tarballDir).catch(() => response.destroy());
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

/** Package name → its versions. */
type Packages = ReadonlyMap<string, PublishedVersion[]>;

async function readPackages(folder: string): Promise<Packages> {
  const packages = new Map<string, PublishedVersion[]>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.tgz'))) {
    const bytes = readFileSync(join(folder, file));
    const manifest = await manifestOf(join(folder, file));
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    packages.set(manifest.name, [...(packages.get(manifest.name) ?? []), { file, integrity, manifest }]);
  }
  return packages;
}

async function manifestOf(archive: string): Promise<PublishedVersion['manifest']> {
  // The top folder is "package" by custom, not by rule.
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

async function answer(request: IncomingMessage, response: ServerResponse, packages: Packages, folder: string): Promise<void> {
  const path = decodeURIComponent(new URL(request.url ?? '/', 'http://mirror').pathname).slice(1);
  if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, { error: 'this mirror is read-only' });
  if (path === '' || path === '-/ping') return send(response, 200, {});
  const file = path.startsWith('-/tarball/') ? path.slice('-/tarball/'.length) : undefined;
  if (file !== undefined && [...packages.values()].flat().some((version) => version.file === file)) {
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': statSync(join(folder, file)).size });
    if (request.method === 'HEAD') response.end();
    else await pipeline(createReadStream(join(folder, file)), response);
    return;
  }
  const versions = packages.get(path);
  if (!versions) return send(response, 404, { error: `this mirror holds no package "${path}"` });
  send(response, 200, packument(path, versions, `http://${request.headers.host ?? 'localhost'}/-/tarball/`));
}

/** https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md */
function packument(name: string, versions: PublishedVersion[], tarballs: string): unknown {
  return {
    name,
    'dist-tags': { latest: versions.at(-1)?.manifest.version },
    versions: Object.fromEntries(
      versions.map(({ file, integrity, manifest }) => [
        manifest.version,
        { ...manifest, dist: { tarball: tarballs + encodeURIComponent(file), integrity } },
      ]),
    ),
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
