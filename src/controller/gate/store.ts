// The registry's files as CNCF distribution lays them out (storage driver "filesystem", layout v2): what is there, what it takes, and what may go.
// https://github.com/distribution/distribution/blob/v3.0.0/registry/storage/paths.go

import { opendir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

const partName = /^[a-z0-9][a-z0-9._-]{0,254}$/;
const hexDigest = /^[0-9a-f]{64}$/;
const tagName = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
/** An upload that nobody has written to for so long has ended. */
const uploadLifeMs = 3_600_000;
/** What a repository, an upload, a link, a tag or a blob counts beside its bytes: it takes files and folders of the volume, and time to look at. */
export const entryBytes = 64 * 1024;
/** So many blobs are held at once while those without a reference are looked for. */
const mostCandidates = 10_000;

/** What a space takes. */
export interface Usage {
  bytes: number;
  /** Unfinished ones. */
  uploads: number;
}

/** Names in a folder; none where there is no such folder. */
async function namesIn(folder: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => pattern.test(name));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

/** The same, one by one: a space may have made so many that they are not to be held at once. */
async function* namesOneByOne(folder: string, pattern: RegExp): AsyncGenerator<string> {
  try {
    for await (const { name } of await opendir(folder, { bufferSize: 256 })) if (pattern.test(name)) yield name;
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
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

  /** All repositories, as `<space>/<name>`, in order, from the first one behind `after` on. */
  async *repositories(after = ''): AsyncGenerator<string> {
    const [lastSpace = '', lastName = ''] = after.split('/');
    for (const space of (await namesIn(this.#repositories, partName)).toSorted()) {
      if (space < lastSpace) continue;
      for (const name of (await this.#namesOf(space)).toSorted()) if (space > lastSpace || name > lastName) yield `${space}/${name}`;
    }
  }

  async hasRepository(space: string, name: string): Promise<boolean> {
    if (!partName.test(space) || !partName.test(name)) return false;
    return stat(join(this.#repositories, space, name)).then(
      (found) => found.isDirectory(),
      (error: unknown) => {
        if (isGone(error)) return false;
        throw error;
      },
    );
  }

  /** True when a space has so many repositories, or more. */
  async hasRepositories(space: string, count: number): Promise<boolean> {
    let found = 0;
    for await (const _ of namesOneByOne(join(this.#repositories, space), partName)) if ((found += 1) >= count) return true;
    return false;
  }

  /** What a space's repositories refer to, each blob once, and its unfinished uploads. The count stops soon after it has passed `most` bytes. */
  async usageOf(space: string, most = Infinity): Promise<Usage> {
    const usage = { bytes: 0, uploads: 0 };
    const digests = new Set<string>();
    for (const name of await this.#namesOf(space)) {
      const repository = join(this.#repositories, space, name);
      usage.bytes += entryBytes;
      for await (const digest of this.#linkedBy(repository)) {
        if (usage.bytes > most) return usage;
        usage.bytes += entryBytes;
        if (digests.has(digest)) continue;
        digests.add(digest);
        usage.bytes += entryBytes + (await sizeOf(join(this.#blobFolder(digest), 'data')));
      }
      for await (const upload of this.#uploadsOf(repository)) {
        if (usage.bytes > most) return usage;
        usage.uploads += 1;
        usage.bytes += entryBytes + (await sizeOf(join(upload, 'data')));
      }
      if (usage.bytes > most) return usage;
      usage.bytes += entryBytes * (await this.#tagsOf(repository, (most - usage.bytes) / entryBytes));
    }
    return usage;
  }

  /** Takes a repository away; what it referred to goes with the next sweep. False when there was none. */
  async removeRepository(space: string, name: string): Promise<boolean> {
    if (!(await this.hasRepository(space, name))) return false;
    await rm(join(this.#repositories, space, name), { recursive: true, force: true });
    return true;
  }

  /** Takes away uploads that have had no byte for an hour. Returns how many. */
  async purgeUploads(now: number): Promise<number> {
    let purged = 0;
    for await (const repository of this.repositories()) {
      for await (const folder of this.#uploadsOf(join(this.#repositories, repository))) {
        if (now - (await this.#touchedAt(folder)) < uploadLifeMs) continue;
        await rm(folder, { recursive: true, force: true });
        purged += 1;
      }
    }
    return purged;
  }

  /**
   * Blobs to which no repository refers, some at a time. Of each part the blobs are listed before the references are read: what is stored meanwhile is
   * not among them.
   */
  async *unreferenced(most = mostCandidates): AsyncGenerator<string[]> {
    let candidates = new Set<string>();
    for (const prefix of await namesIn(this.#blobs, /^[0-9a-f]{2}$/))
      for await (const digest of namesOneByOne(join(this.#blobs, prefix), hexDigest)) {
        candidates.add(digest);
        if (candidates.size < most) continue;
        yield await this.#withoutReference(candidates);
        candidates = new Set();
      }
    if (candidates.size > 0) yield await this.#withoutReference(candidates);
  }

  async removeBlob(digest: string): Promise<void> {
    await rm(this.#blobFolder(digest), { recursive: true, force: true });
  }

  #namesOf(space: string): Promise<string[]> {
    return partName.test(space) ? namesIn(join(this.#repositories, space), partName) : Promise.resolve([]);
  }

  async #withoutReference(candidates: Set<string>): Promise<string[]> {
    for await (const repository of this.repositories())
      for await (const digest of this.#linkedBy(join(this.#repositories, repository))) candidates.delete(digest);
    return [...candidates];
  }

  /** Hex digests of a repository's layers, configs and manifests. */
  async *#linkedBy(repository: string): AsyncGenerator<string> {
    for (const folder of ['_layers/sha256', '_manifests/revisions/sha256']) yield* namesOneByOne(join(repository, folder), hexDigest);
  }

  /** How many tags a repository has, and images that each of them ever named; no more than a little above `most`. */
  async #tagsOf(repository: string, most: number): Promise<number> {
    const tags = join(repository, '_manifests/tags');
    let count = 0;
    for await (const tag of namesOneByOne(tags, tagName)) {
      count += 1;
      for await (const _ of namesOneByOne(join(tags, tag, 'index/sha256'), hexDigest)) if ((count += 1) > most) return count;
      if (count > most) return count;
    }
    return count;
  }

  async *#uploadsOf(repository: string): AsyncGenerator<string> {
    const folder = join(repository, '_uploads');
    for await (const name of namesOneByOne(folder, /^[a-zA-Z0-9-]{1,64}$/)) yield join(folder, name);
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
