// Keeps the removal of blobs and the storing of new ones apart. The gate is the registry's only listener, so that it knows of every request by which
// a repository begins to refer to a blob.

/** A request whose client went away may still be at work in the registry; what it was about is spared for so long. */
const sparedMs = 10 * 60_000;
/** Of so many digests a space is remembered; who pushes real images stays far below it. */
const mostOfSpace = 4_000;
/** All spaces together; above it those that have more than a small part wait. The gate's memory holds several times as many. */
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
  /** Digest (hex) → when a repository last began to refer to it, and whose; the latest is last. */
  readonly #touched = new Map<string, Touch>();
  /** Space → how many of these are its own. */
  readonly #ofSpace = new Map<string, number>();
  /** What was remembered then stays so until the sweep ends, however long it takes. */
  #sweepBegan: number | undefined;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * To be called before the registry has the last byte of such a request; waits while blobs are removed.
   *
   * @param digest what the repository will refer to, `sha256:…`
   * @param space whose repository
   * @returns to be called when the registry has answered, or will not
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

  /** True when so much is remembered for the space that its next request of this kind has to wait. */
  isFull(space: string): boolean {
    this.#prune();
    const own = this.#ofSpace.get(space) ?? 0;
    return own >= mostOfSpace || (own >= smallPart && this.#touched.size >= mostOfAll);
  }

  /** How many digests are remembered. */
  get size(): number {
    return this.#touched.size;
  }

  /** Waits until nothing is being stored: what a repository refers to after that is either on disk or remembered here until `endSweep`. */
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

  /** The oldest come first, so that each call looks at what goes and at one more. */
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
