// Reads the registry's files in the layout of CNCF distribution (storage driver "filesystem", layout v2): its contents, their size, and garbage.
// https://github.com/distribution/distribution/blob/v3.0.0/registry/storage/paths.go

import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { factsOf, isGone, namesIn, namesOneByOne } from './files.ts';
import { hexDigest, linkFolders, Repository, tagName, uploadName } from './repository.ts';

const partName = /^[a-z0-9][a-z0-9._-]{0,254}$/;
/** An upload without a write for this long was abandoned. */
const uploadLifeMs = 3_600_000;
/**
 * Size that a repository, an upload, a link, a tag or a blob counts in addition to its bytes: it takes files and folders of the volume, and time
 * to read.
 */
export const entryBytes = 64 * 1024;
/** Number of blobs that are held in memory at once during the search for unreferenced ones. */
const mostCandidates = 10_000;

/** The storage that a space uses. */
export interface Usage {
  bytes: number;
  /** Unfinished ones. */
  uploads: number;
}

const sizeOf = async (file: string): Promise<number> => (await factsOf(file))?.size ?? 0;

export class ImageStore {
  readonly #root: string;
  readonly #repositories: string;
  readonly #blobs: string;

  /** @param folder the `rootdirectory` of the registry */
  constructor(folder: string) {
    this.#root = join(folder, 'docker/registry/v2');
    this.#repositories = join(this.#root, 'repositories');
    this.#blobs = join(this.#root, 'blobs/sha256');
  }

  /** All repositories, as `<space>/<name>`, in order, starting after `after`. */
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

  /** True when a space has at least this many repositories. */
  async hasRepositories(space: string, count: number): Promise<boolean> {
    let found = 0;
    for await (const _ of namesOneByOne(join(this.#repositories, space), partName)) if ((found += 1) >= count) return true;
    return false;
  }

  /**
   * Size of the blobs to which a space's repositories refer, each counted once, and of its unfinished uploads. Counting stops soon after it has
   * passed `most` bytes.
   */
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

  /** The number of a space's unfinished uploads. Counting stops at `most`. */
  async uploadsIn(space: string, most: number): Promise<number> {
    let uploads = 0;
    for (const name of await this.#namesOf(space))
      for await (const _ of this.#uploadsOf(join(this.#repositories, space, name))) if ((uploads += 1) >= most) return uploads;
    return uploads;
  }

  /** Removes a repository; the next sweep removes the blobs that only it referred to. False when it did not exist. */
  async removeRepository(space: string, name: string): Promise<boolean> {
    if (!(await this.hasRepository(space, name))) return false;
    await rm(join(this.#repositories, space, name), { recursive: true, force: true });
    return true;
  }

  /** Removes uploads that got no byte for an hour. Returns how many. */
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
   * Blobs to which no repository refers, in parts. For each part the blobs are listed before the references are read, so blobs that are stored in
   * the meantime are not among them.
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

  /** Returns the size of the blob that was removed. */
  async removeBlob(digest: string): Promise<number> {
    const bytes = await sizeOf(join(this.#blobFolder(digest), 'data'));
    await rm(this.#blobFolder(digest), { recursive: true, force: true });
    return bytes;
  }

  /** How often all repositories together refer to each of the digests. */
  async referenceCounts(digests: readonly string[]): Promise<Map<string, number>> {
    const counts = new Map(digests.map((digest) => [digest, 0]));
    for await (const repository of this.repositories())
      for await (const digest of this.#linkedBy(join(this.#repositories, repository))) {
        const count = counts.get(digest);
        if (count !== undefined) counts.set(digest, count + 1);
      }
    return counts;
  }

  /** A repository, which has to exist. @param name `<space>/<name>`, checked */
  repository(name: string): Repository {
    return new Repository(this.#root, name);
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
    for (const folder of Object.values(linkFolders)) yield* namesOneByOne(join(repository, folder), hexDigest);
  }

  /** The number of a repository's tags, and of the images that each of them ever named. Counting stops a little above `most`. */
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
    for await (const name of namesOneByOne(folder, uploadName)) yield join(folder, name);
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
