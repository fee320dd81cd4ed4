// Removes garbage from the registry: abandoned uploads, and blobs to which no repository refers any more.

import type { Commits } from './commits.ts';
import type { Capacity } from './capacity.ts';
import type { ImageStore } from './store.ts';
import type { Swept } from '../../lib/api/gate-status.ts';

export interface HousekeepingOptions {
  store: ImageStore;
  commits: Commits;
  capacity: Capacity;
  log: (line: object) => void;
}

const purgeEveryMs = 5 * 60_000;
const sweepEveryMs = 6 * 3_600_000;
/** Further removals may follow the first one. */
const sweepAfterMs = 2_000;
/** Uploads wait while this many blobs are unlinked. */
const batch = 20;

export class Housekeeping {
  readonly #options: HousekeepingOptions;
  #sweeping: Promise<void> = Promise.resolve();
  #soon: NodeJS.Timeout | undefined;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
  }

  /** Starts the sweeps. It is safe to end the process at any time. */
  start(): void {
    const purge = (): void => void this.#report('purge', this.purge());
    const sweep = (): void => void this.#report('sweep', this.sweep());
    purge();
    sweep();
    setInterval(purge, purgeEveryMs).unref();
    setInterval(sweep, sweepEveryMs).unref();
  }

  /** Call it after something was removed. */
  sweepSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.#report('sweep', this.sweep());
    }, sweepAfterMs).unref();
  }

  async purge(): Promise<number> {
    const purged = await this.#options.store.purgeUploads(Date.now());
    if (purged > 0) this.#options.capacity.forget();
    return purged;
  }

  /** Returns how many blobs were removed. */
  async sweep(): Promise<number> {
    return (await this.sweepNow()).blobs;
  }

  /** Runs one sweep after the other, never two at once. Returns what was removed. */
  async sweepNow(): Promise<Swept> {
    const run = this.#sweeping.then(() => this.#sweep());
    this.#sweeping = run.then(
      () => undefined,
      () => undefined,
    );
    return run;
  }

  async #sweep(): Promise<Swept> {
    await this.#options.commits.startSweep();
    try {
      return await this.#removeUnreferenced();
    } finally {
      this.#options.commits.endSweep();
    }
  }

  async #removeUnreferenced(): Promise<Swept> {
    const { store, commits, capacity } = this.#options;
    const swept: Swept = { blobs: 0, bytes: 0 };
    for await (const unreferenced of store.unreferenced())
      for (let at = 0; at < unreferenced.length; at += batch) {
        const part = unreferenced.slice(at, at + batch);
        swept.blobs += await commits.remove(part, async (digest) => void (swept.bytes += await store.removeBlob(digest)));
      }
    if (swept.blobs > 0) capacity.forget();
    return swept;
  }

  async #report(what: string, work: Promise<number>): Promise<void> {
    try {
      const count = await work;
      if (count > 0) this.#options.log({ time: new Date().toISOString(), what, count });
    } catch (error) {
      this.#options.log({ time: new Date().toISOString(), what, error: String(error) });
    }
  }
}
