// Counts the volume's free disk space and what each space uses of its quota. The gate refuses an upload that does not fit before it fills the volume.

import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import type { GateStatus } from '../../lib/api/gate-status.ts';
import { formatBytes } from '../../lib/api/sizes.ts';
import { entryBytes } from './store.ts';
import type { ImageStore } from './store.ts';

/** Part of the volume that is kept free, so that files that exist can still be read, renamed and removed. */
const reservedPart = 0.05;
/** How long a count is used; bytes that arrive in that time are added to it. */
const countHoldsMs = 10_000;
/** The most unfinished uploads of one space; each is deleted after an hour. */
const mostUploads = 1_000;
/** The most repositories of one space. 100 apps, the default limit of a space, have 300; ten times as many are allowed. */
const mostRepositories = 3_000;

export interface CapacityOptions {
  store: ImageStore;
  /** A folder on the volume. */
  folder: string;
  /** Bytes that one space may use. Left out: no limit for bytes; unfinished uploads and repositories are limited all the same. */
  spaceQuota?: number;
  /** Bytes of the volume that are kept free; default {@link reservedPart} of it. */
  reserve?: number;
  now?: () => number;
  /** Asks the file system; default Node's `statfs`. */
  statfs?: (folder: string) => Promise<Pick<StatsFs, 'blocks' | 'bavail' | 'bsize' | 'files' | 'ffree'>>;
}

/** Why an upload is refused. */
export interface UploadRefusal {
  status: 403 | 413 | 429 | 507;
  code: 'DENIED' | 'MANIFEST_INVALID' | 'TOOMANYREQUESTS';
  message: string;
}

interface Count {
  at: number;
  bytes: number;
}

type SpaceCount = Count & { uploads: number };

/** What a request adds to the space in addition to its body. */
export type Adds = 'upload' | 'entry' | 'nothing';

/** A repository, `<space>/<name>`. It may not exist yet. */
export interface Target {
  space: string;
  name: string;
}

/**
 * Figures are counted on disk, at most every {@link countHoldsMs}, and what is let through afterwards is added to them. While a figure is counted, the
 * uploads that it is about wait. So the same bytes are never counted and added as well, which would refuse uploads that fit; and none of them are lost,
 * which would let a space pass its quota. Only what the registry has received and not written yet is missing from a count.
 */
export class Capacity {
  readonly #options: CapacityOptions;
  readonly #now: () => number;
  readonly #spaces = new Map<string, SpaceCount>();
  /** Counts that are running, by space: further requests of the space wait for the same count. */
  readonly #counting = new Map<string, Promise<void>>();
  #free: Count = { at: -Infinity, bytes: 0 };
  #countingFree: Promise<void> | undefined;
  #total = 0;
  /** Files that the volume can still hold, and can hold in all. A file system without a limit says 0 of 0. */
  #files = { free: 0, total: 0 };
  /** How often something was removed. */
  #removals = 0;

  constructor(options: CapacityOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async status(): Promise<GateStatus['room']> {
    await this.#countFree();
    return { total: this.#total, free: this.#free.bytes, nearlyFull: this.#free.bytes < this.#reserve() || this.#hasFewFiles() };
  }

  /**
   * Whether the volume and the space have room for a request with `bytes` in its body: undefined, or why it is refused. The body itself is not added yet:
   * {@link take} does that for each chunk, so of several bodies that fit alone but not together, the last ones are cut off.
   */
  async admit({ space, name }: Target, bytes: number, adds: Adds): Promise<UploadRefusal | undefined> {
    const { store } = this.#options;
    const isOneTooMany = !(await store.hasRepository(space, name)) && (await store.hasRepositories(space, mostRepositories));
    return this.#whenCounted(space, (used) => {
      if (this.#hasFewFiles())
        return {
          status: 507,
          code: 'DENIED',
          message: `the registry has no disk space left: ${this.#files.free} of ${this.#files.total} files are free`,
        };
      if (isOneTooMany)
        return {
          status: 403,
          code: 'DENIED',
          message: `the space has ${mostRepositories} repositories, the most that are possible; those of deleted apps go within minutes`,
        };
      if (adds === 'upload' && used.uploads >= mostUploads)
        return {
          status: 429,
          code: 'TOOMANYREQUESTS',
          message: `the space has ${mostUploads} unfinished uploads; each ends after an hour`,
        };
      const entry = adds === 'nothing' ? 0 : entryBytes;
      const refusal = this.#refusalOf(used, bytes + entry);
      if (refusal !== undefined) return refusal;
      if (adds === 'upload') used.uploads += 1;
      this.#add(used, entry);
      return undefined;
    });
  }

  /** Adds `bytes` that have arrived to the counts, or returns a refusal when they do not fit. */
  async take(space: string, bytes: number): Promise<UploadRefusal | undefined> {
    return this.#whenCounted(space, (used) => {
      const refusal = this.#refusalOf(used, bytes);
      if (refusal === undefined) this.#add(used, bytes);
      return refusal;
    });
  }

  /** Call it after something was removed: the next request counts again, and so does one whose count is running. */
  forget(): void {
    this.#removals += 1;
    this.#spaces.clear();
    this.#free.at = -Infinity;
  }

  /** Calls `act` when the figures of the space and the volume are recent and none of them is being counted. */
  async #whenCounted<T>(space: string, act: (used: SpaceCount) => T): Promise<T> {
    for (;;) {
      const free = this.#isRecent(this.#free) && this.#countingFree === undefined;
      const used = this.#counting.has(space) ? undefined : this.#spaces.get(space);
      // Nothing is awaited between this look and the end of `act`, so requests are judged one after the other.
      if (free && used !== undefined && this.#isRecent(used)) return act(used);
      await (free ? this.#countSpace(space) : this.#countFree());
    }
  }

  #refusalOf(used: SpaceCount, more: number): UploadRefusal | undefined {
    if (this.#free.bytes - more < this.#reserve())
      return {
        status: 507,
        code: 'DENIED',
        message: `the registry has no disk space left: ${formatBytes(Math.max(0, this.#free.bytes))} of ${formatBytes(this.#total)} are free`,
      };
    const { spaceQuota } = this.#options;
    if (spaceQuota !== undefined && used.bytes + more > spaceQuota)
      return {
        status: 403,
        code: 'DENIED',
        message: `the images of the space would take more than ${formatBytes(spaceQuota)}, its share of the registry: they take ${formatBytes(used.bytes)} now (an operator can raise registrySpaceQuotaMB in setup.yaml)`,
      };
    return undefined;
  }

  #add(used: SpaceCount, bytes: number): void {
    used.bytes += bytes;
    this.#free.bytes -= bytes;
  }

  #isRecent({ at }: Count): boolean {
    return this.#now() - at < countHoldsMs;
  }

  #hasFewFiles(): boolean {
    return this.#files.free < this.#files.total * reservedPart;
  }

  #reserve(): number {
    return this.#options.reserve ?? this.#total * reservedPart;
  }

  async #countFree(): Promise<void> {
    if (this.#countingFree === undefined && this.#isRecent(this.#free)) return;
    const count = async (): Promise<void> => {
      const { blocks, bavail, bsize, files, ffree } = await (this.#options.statfs ?? statfs)(this.#options.folder);
      this.#files = { free: ffree, total: files };
      this.#total = blocks * bsize;
      this.#free = { at: this.#now(), bytes: bavail * bsize };
    };
    this.#countingFree ??= count().finally(() => (this.#countingFree = undefined));
    await this.#countingFree;
  }

  async #countSpace(space: string): Promise<void> {
    const { store, spaceQuota } = this.#options;
    const count = async (): Promise<void> => {
      const before = this.#removals;
      const usage =
        spaceQuota === undefined
          ? { bytes: 0, uploads: await store.uploadsIn(space, mostUploads) }
          : await store.usageOf(space, spaceQuota);
      // The count may have met what was removed meanwhile.
      if (before === this.#removals) this.#spaces.set(space, { at: this.#now(), ...usage });
    };
    const counting = this.#counting.get(space) ?? count().finally(() => this.#counting.delete(space));
    this.#counting.set(space, counting);
    await counting;
  }
}
