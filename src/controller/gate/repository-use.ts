// Keeps pushes and the collection of a repository apart. What the gate has told a push to be there stays, also while the collection runs.

/** The registry may still work on a request after its client went away, so the repository is not collected for this long. */
const sparedMs = 10 * 60_000;

/** Call it when the registry has answered the request, or will not. `false`: nobody knows what the registry makes of it. */
export type Leave = (isAnswered: boolean) => void;

/** The registry may still work on requests that came to the gate's process before this one. */
const settleMs = 10_000;

export class RepositoryUse {
  readonly #now: () => number;
  readonly #settledAt: number;
  /** Repository → number of requests in progress. */
  readonly #inside = new Map<string, number>();
  /** Repository → the collection that runs. */
  readonly #collected = new Map<string, Promise<void>>();
  /** Repository → until when it is not collected; the latest is last. */
  readonly #spared = new Map<string, number>();

  constructor({ now = Date.now, settle = settleMs }: { now?: () => number; settle?: number } = {}) {
    this.#now = now;
    this.#settledAt = now() + settle;
  }

  /** Call it before the registry looks whether a repository has something, or begins to refer to something. Waits while the repository is collected. */
  async enter(repository: string): Promise<Leave> {
    for (let running = this.#collected.get(repository); running !== undefined; running = this.#collected.get(repository)) await running;
    this.#inside.set(repository, (this.#inside.get(repository) ?? 0) + 1);
    let hasLeft = false;
    return (isAnswered) => {
      if (hasLeft) return;
      hasLeft = true;
      const left = (this.#inside.get(repository) ?? 1) - 1;
      if (left > 0) this.#inside.set(repository, left);
      else this.#inside.delete(repository);
      if (!isAnswered) this.spare(repository);
    };
  }

  /** Prevents that the repository is collected for a while. */
  spare(repository: string): void {
    this.#spared.delete(repository);
    this.#spared.set(repository, this.#now() + sparedMs);
    for (const [name, until] of this.#spared) {
      if (until > this.#now()) return;
      this.#spared.delete(name);
    }
  }

  /** True while a request to the repository is in progress, or may be. */
  isUsed(repository: string): boolean {
    const now = this.#now();
    if (now < this.#settledAt || (this.#spared.get(repository) ?? 0) > now) return true;
    return this.#inside.has(repository) || this.#collected.has(repository);
  }

  /** Runs `collect` while no request to the repository is in progress. It does not wait for one: then it returns undefined at once. */
  async alone<T>(repository: string, collect: () => Promise<T>): Promise<T | undefined> {
    if (this.isUsed(repository)) return undefined;
    const running = collect();
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#collected.set(repository, ended);
    try {
      return await running;
    } finally {
      this.#collected.delete(repository);
    }
  }
}
