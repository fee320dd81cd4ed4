// The registry's files as CNCF distribution lays them out (storage driver "filesystem", layout v2): what is there, what it takes, and what may go.
// https://github.com/distribution/distribution/blob/v3.0.0/registry/storage/paths.go

import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

const partName = /^[a-z0-9][a-z0-9._-]{0,254}$/;
const hexDigest = /^[0-9a-f]{64}$/;
/** An upload that nobody has written to for so long has ended. */
const uploadLifeMs = 3_600_000;

/** Names in a folder; none where there is no such folder. */
async function namesIn(folder: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => pattern.test(name));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

export class ImageStore {
  readonly #repositories: string;
  readonly #blobs: string;

  /** @param folder the `rootdirectory` of the registry */
  constructor(folder: string) {
    this.#repositories = join(folder, 'docker/registry/v2/repositories');
    this.#blobs = join(folder, 'docker/registry/v2/blobs/sha256');
  }

  /** All repositories, as `<space>/<name>`. */
  async repositories(): Promise<string[]> {
    const spaces = await namesIn(this.#repositories, partName);
    const named = await Promise.all(spaces.map(async (space) => (await this.#namesOf(space)).map((name) => `${space}/${name}`)));
    return named.flat();
  }

  /** Bytes of what a space's repositories refer to, each blob once, and of its unfinished uploads. */
  async bytesOf(space: string): Promise<number> {
    const digests = new Set<string>();
    let uploads = 0;
    for (const name of await this.#namesOf(space)) {
      for (const digest of await this.#linkedBy(join(this.#repositories, space, name))) digests.add(digest);
      for (const folder of await this.#uploadsOf(join(this.#repositories, space, name))) uploads += await sizeOf(join(folder, 'data'));
    }
    let bytes = uploads;
    for (const digest of digests) bytes += await sizeOf(join(this.#blobFolder(digest), 'data'));
    return bytes;
  }

  /** Takes a repository away; what it referred to goes with the next sweep. False when there was none. */
  async removeRepository(space: string, name: string): Promise<boolean> {
    if (!(await this.#namesOf(space)).includes(name)) return false;
    await rm(join(this.#repositories, space, name), { recursive: true, force: true });
    return true;
  }

  /** Takes away uploads that have had no byte for an hour. Returns how many. */
  async purgeUploads(now: number): Promise<number> {
    let purged = 0;
    for (const repository of await this.repositories()) {
      for (const folder of await this.#uploadsOf(join(this.#repositories, repository))) {
        if (now - (await this.#touchedAt(folder)) < uploadLifeMs) continue;
        await rm(folder, { recursive: true, force: true });
        purged += 1;
      }
    }
    return purged;
  }

  /** Blobs to which no repository refers. They are listed before the references are read: what is stored meanwhile is not among them. */
  async unreferenced(): Promise<string[]> {
    const prefixes = await namesIn(this.#blobs, /^[0-9a-f]{2}$/);
    const stored = (await Promise.all(prefixes.map((prefix) => namesIn(join(this.#blobs, prefix), hexDigest)))).flat();
    const referenced = new Set<string>();
    for (const repository of await this.repositories())
      for (const digest of await this.#linkedBy(join(this.#repositories, repository))) referenced.add(digest);
    return stored.filter((digest) => !referenced.has(digest));
  }

  async removeBlob(digest: string): Promise<void> {
    await rm(this.#blobFolder(digest), { recursive: true, force: true });
  }

  #namesOf(space: string): Promise<string[]> {
    return partName.test(space) ? namesIn(join(this.#repositories, space), partName) : Promise.resolve([]);
  }

  /** Hex digests of a repository's layers, configs and manifests. */
  async #linkedBy(repository: string): Promise<string[]> {
    const folders = ['_layers/sha256', '_manifests/revisions/sha256'].map((folder) => join(repository, folder));
    return (await Promise.all(folders.map((folder) => namesIn(folder, hexDigest)))).flat();
  }

  async #uploadsOf(repository: string): Promise<string[]> {
    const folder = join(repository, '_uploads');
    return (await namesIn(folder, /^[a-zA-Z0-9-]{1,64}$/)).map((name) => join(folder, name));
  }

  async #touchedAt(upload: string): Promise<number> {
    const times = await Promise.all(
      ['data', 'startedat', '.'].map((name) =>
        stat(join(upload, name)).then(
          ({ mtimeMs }) => mtimeMs,
          () => 0,
        ),
      ),
    );
    return Math.max(...times);
  }

  #blobFolder(digest: string): string {
    return join(this.#blobs, digest.slice(0, 2), digest);
  }
}
