// Free space of the volume, and use of each space's quota. The gate refuses uploads that would exceed them before they fill the volume.

import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import type { GateStatus } from '../../lib/api/gate-status.ts';
import { formatBytes } from '../../lib/api/sizes.ts';
import { entryBytes } from './store.ts';
import type { ImageStore } from './store.ts';

/** Part of the volume that stays free, so that existing files can still be read, renamed and removed. */
const reservedPart = 0.05;
/** How long a count is valid; bytes that arrive meanwhile are added. */
const countHoldsMs = 10_000;
/** Unfinished uploads of one space; each is deleted after an hour. */
const mostUploads = 1_000;
/** Repositories of one space: an app has three, and a space has at most 100 apps by default; ten times as many are allowed. */
const mostRepositories = 3_000;

export interface CapacityOptions {
  store: ImageStore;
  /** Lies on the volume. */
  folder: string;
  /** Bytes that one space may take; undefined: all there are. */
  spaceQuota?: number;
  /** Bytes that are kept free; default a twentieth of the volume. */
  reserve?: number;
  now?: () => number;
  /** What the file system says of itself; tests give another. */
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

/** What a request adds to the space beside its body. */
export type Adds = 'upload' | 'entry' | 'nothing';

/** A repository, `<space>/<name>`, of which there may be none yet. */
export interface Target {
  space: string;
  name: string;
}

export class Capacity {
  readonly #options: CapacityOptions;
  readonly #now: () => number;
  readonly #spaces = new Map<string, Count & { uploads: number }>();
  /** Who asks while a space is counted waits for that count. */
  readonly #counting = new Map<string, Promise<void>>();
  #free: Count = { at: -Infinity, bytes: 0 };
  #total = 0;
  /** Files that the volume can still take, and in all; a file system without such a limit says 0 of 0. */
  #files = { free: 0, total: 0 };

  constructor(options: CapacityOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async status(): Promise<GateStatus['room']> {
    await this.#countFree();
    return { total: this.#total, free: this.#free.bytes, nearlyFull: this.#free.bytes < this.#reserve() || this.#hasFewFiles() };
  }

  /** Looks at the volume and the space; undefined when `bytes` more fit. */
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

  /** Counts bytes that have come, by what is known; a refusal when no more fit. */
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

  /** What was counted before something was removed. */
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
