// Keeps the removal of blobs and the storing of new ones apart. The gate is the registry's only listener, so that it knows of every request by which
// a repository begins to refer to a blob.

/** A request whose client went away may still be at work in the registry; what it was about is spared for so long. */
const sparedMs = 10 * 60_000;

export class Commits {
  readonly #now: () => number;
  #open = 0;
  #isClosed = false;
  readonly #waiting: (() => void)[] = [];
  readonly #idle: (() => void)[] = [];
  /** Digest (hex) → when a repository last began to refer to it. */
  readonly #touched = new Map<string, number>();

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * To be called before the registry has the last byte of such a request; waits while blobs are removed.
   *
   * @param digest what the repository will refer to, `sha256:…`
   * @returns to be called when the registry has answered, or will not
   */
  async begin(digest: string): Promise<() => void> {
    while (this.#isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#open += 1;
    this.#touch(digest);
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#open -= 1;
      this.#touch(digest);
      if (this.#open === 0) for (const resolve of this.#idle.splice(0)) resolve();
    };
  }

  /** Waits until nothing is being stored: what a repository refers to after that is either on disk or remembered here. */
  async startSweep(): Promise<void> {
    await this.#alone(async () => {
      for (const [digest, at] of this.#touched) if (this.#now() - at > sparedMs) this.#touched.delete(digest);
      return Promise.resolve();
    });
  }

  /** Removes those of the blobs that no repository has begun to refer to, while nothing is stored. Returns how many. */
  async remove(digests: readonly string[], removeBlob: (digest: string) => Promise<void>): Promise<number> {
    return this.#alone(async () => {
      const unused = digests.filter((digest) => !this.#touched.has(digest));
      for (const digest of unused) await removeBlob(digest);
      return unused.length;
    });
  }

  #touch(digest: string): void {
    this.#touched.set(digest.replace(/^sha256:/, ''), this.#now());
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
