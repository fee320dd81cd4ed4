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
  /** Bytes that one space may use. Left out: no limit, neither for bytes nor for unfinished uploads. */
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

/** What a request adds to the space in addition to its body. */
export type Adds = 'upload' | 'entry' | 'nothing';

/** A repository, `<space>/<name>`. It may not exist yet. */
export interface Target {
  space: string;
  name: string;
}

export class Capacity {
  readonly #options: CapacityOptions;
  readonly #now: () => number;
  readonly #spaces = new Map<string, Count & { uploads: number }>();
  /** Counts that are running, by space: further requests of the space wait for the same count. */
  readonly #counting = new Map<string, Promise<void>>();
  #free: Count = { at: -Infinity, bytes: 0 };
  #total = 0;
  /** Files that the volume can still hold, and can hold in all. A file system without a limit says 0 of 0. */
  #files = { free: 0, total: 0 };

  constructor(options: CapacityOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async status(): Promise<GateStatus['room']> {
    await this.#countFree();
    return { total: this.#total, free: this.#free.bytes, nearlyFull: this.#free.bytes < this.#reserve() || this.#hasFewFiles() };
  }

  /** Whether the volume and the space have room for a request with `bytes` in its body: undefined, or why it is refused. */
  async admit({ space, name }: Target, bytes: number, adds: Adds): Promise<UploadRefusal | undefined> {
    await this.#countFree();
    await this.#countSpace(space);
    if (this.#hasFewFiles())
      return {
        status: 507,
        code: 'DENIED',
        message: `the registry has no disk space left: ${this.#files.free} of ${this.#files.total} files are free`,
      };
    const { store } = this.#options;
    if (!(await store.hasRepository(space, name)) && (await store.hasRepositories(space, mostRepositories)))
      return {
        status: 403,
        code: 'DENIED',
        message: `the space has ${mostRepositories} repositories, the most that are possible; those of deleted apps go within minutes`,
      };
    const used = this.#spaces.get(space);
    if (adds === 'upload' && used !== undefined && used.uploads >= mostUploads)
      return {
        status: 429,
        code: 'TOOMANYREQUESTS',
        message: `the space has ${mostUploads} unfinished uploads; each ends after an hour`,
      };
    const entry = adds === 'nothing' ? 0 : entryBytes;
    const refusal = this.take(space, 0, bytes + entry);
    if (refusal !== undefined) return refusal;
    if (adds === 'upload' && used !== undefined) used.uploads += 1;
    this.take(space, entry);
    return undefined;
  }

  /** Adds `bytes` that have arrived to the counts. Returns a refusal when now `more` bytes do not fit. */
  take(space: string, bytes: number, more = 0): UploadRefusal | undefined {
    const used = this.#spaces.get(space);
    if (used !== undefined) used.bytes += bytes;
    this.#free.bytes -= bytes;
    const { spaceQuota } = this.#options;
    if (this.#free.bytes - more < this.#reserve())
      return {
        status: 507,
        code: 'DENIED',
        message: `the registry has no disk space left: ${formatBytes(Math.max(0, this.#free.bytes))} of ${formatBytes(this.#total)} are free`,
      };
    if (spaceQuota !== undefined && used !== undefined && used.bytes + more > spaceQuota)
      return {
        status: 403,
        code: 'DENIED',
        message: `the images of the space would take more than ${formatBytes(spaceQuota)}, its share of the registry`,
      };
    return undefined;
  }

  /** Drops all counts: something was removed, so the next request counts again. */
  forget(): void {
    this.#spaces.clear();
    this.#free.at = -Infinity;
  }

  #hasFewFiles(): boolean {
    return this.#files.free < this.#files.total * reservedPart;
  }

  #reserve(): number {
    return this.#options.reserve ?? this.#total * reservedPart;
  }

  async #countFree(): Promise<void> {
    if (this.#now() - this.#free.at < countHoldsMs) return;
    const { blocks, bavail, bsize, files, ffree } = await (this.#options.statfs ?? statfs)(this.#options.folder);
    this.#files = { free: ffree, total: files };
    this.#total = blocks * bsize;
    this.#free = { at: this.#now(), bytes: bavail * bsize };
  }

  async #countSpace(space: string): Promise<void> {
    if (this.#options.spaceQuota === undefined || this.#now() - (this.#spaces.get(space)?.at ?? -Infinity) < countHoldsMs) return;
    const count = async (): Promise<void> => {
      const usage = await this.#options.store.usageOf(space, this.#options.spaceQuota);
      this.#spaces.set(space, { at: this.#now(), ...usage });
    };
    const counting = this.#counting.get(space) ?? count().finally(() => this.#counting.delete(space));
    this.#counting.set(space, counting);
    await counting;
  }
}
