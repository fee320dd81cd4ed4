// Prevents that blobs are removed while new ones are stored. The gate is the registry's only listener, so it sees every request by which a
// repository begins to refer to a blob.

/** The registry may still work on a request after its client went away, so a sweep spares the digests of the request for this long. */
const sparedMs = 10 * 60_000;
/** Digests remembered per space. Pushes of real images stay far below it. */
const mostOfSpace = 4_000;
/**
 * Digests remembered for all spaces together. Above it, spaces with more than a small part have to wait. The gate's memory is enough for several
 * times as many.
 */
const mostOfAll = 100_000;
const smallPart = 200;

interface Touch {
  at: number;
  space: string;
}

export class Commits {
  readonly #now: () => number;
  #open = 0;
  #isClosed = false;
  readonly #waiting: (() => void)[] = [];
  readonly #idle: (() => void)[] = [];
  /** Digest (hex) → when a repository last began to refer to it, and its space; the latest is last. */
  readonly #touched = new Map<string, Touch>();
  /** Space → number of its digests. */
  readonly #ofSpace = new Map<string, number>();
  /** While a sweep runs, digests from before its begin stay remembered, however long it takes. */
  #sweepBegan: number | undefined;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * Call it before the registry has the last byte of such a request. It waits while blobs are removed.
   *
   * @param digest the digest that the repository will refer to, `sha256:…`
   * @param space the space of the repository
   * @returns call this when the registry has answered, or will not answer
   */
  async begin(digest: string, space: string): Promise<() => void> {
    while (this.#isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#open += 1;
    this.#touch(digest, space);
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#open -= 1;
      this.#touch(digest, space);
      if (this.#open === 0) for (const resolve of this.#idle.splice(0)) resolve();
    };
  }

  /** True when the space has so many remembered digests that its next request of this kind has to wait. */
  isFull(space: string): boolean {
    this.#prune();
    const own = this.#ofSpace.get(space) ?? 0;
    return own >= mostOfSpace || (own >= smallPart && this.#touched.size >= mostOfAll);
  }

  /** Number of remembered digests. */
  get size(): number {
    return this.#touched.size;
  }

  /**
   * Waits until no request is storing a blob. From then until `endSweep`, every digest that a repository refers to is either on disk or remembered
   * here.
   */
  async startSweep(): Promise<void> {
    await this.#alone(async () => {
      this.#prune();
      this.#sweepBegan = this.#now();
      return Promise.resolve();
    });
  }

  endSweep(): void {
    this.#sweepBegan = undefined;
  }

  /** Removes those of the blobs that no repository has begun to refer to, while nothing is stored. Returns how many. */
  async remove(digests: readonly string[], removeBlob: (digest: string) => Promise<void>): Promise<number> {
    return this.#alone(async () => {
      const unused = digests.filter((digest) => !this.#touched.has(digest));
      for (const digest of unused) await removeBlob(digest);
      return unused.length;
    });
  }

  #touch(digest: string, space: string): void {
    const hex = digest.replace(/^sha256:/, '');
    this.#forget(hex);
    this.#touched.set(hex, { at: this.#now(), space });
    this.#ofSpace.set(space, (this.#ofSpace.get(space) ?? 0) + 1);
  }

  #forget(hex: string): void {
    const touch = this.#touched.get(hex);
    if (touch === undefined) return;
    this.#touched.delete(hex);
    const left = (this.#ofSpace.get(touch.space) ?? 1) - 1;
    if (left > 0) this.#ofSpace.set(touch.space, left);
    else this.#ofSpace.delete(touch.space);
  }

  /** Digests are sorted by age, so each call looks only at those that expire and at one more. */
  #prune(): void {
    const before = (this.#sweepBegan ?? this.#now()) - sparedMs;
    for (const [hex, { at }] of this.#touched) {
      if (at >= before) return;
      this.#forget(hex);
    }
  }

  async #alone<T>(act: () => Promise<T>): Promise<T> {
    while (this.#isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#isClosed = true;
    try {
      while (this.#open > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
      return await act();
    } finally {
      this.#isClosed = false;
      for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }
}
