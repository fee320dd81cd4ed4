// Which spaces of an org are quiet. The cluster counts a quota anew when it is written, from caches that lag behind, and lets in once more what it missed.
// Where nothing was created for a while there is nothing to miss.

/** The caches of a busy cluster lag behind by a second or so. */
const quietMs = 2_000;
/** A figure that the cluster got wrong stays wrong until a quota is written. */
const wrongMs = 5_000;
/** What comes and goes all the time keeps nobody from their share for longer. */
const mostMs = 30_000;

/** What a space holds. */
export interface Look {
  /** Equal as long as nothing has changed. */
  signature: string;
  /** The quota counts what is there. */
  isCounted: boolean;
}

interface Space extends Look {
  /** When it was first seen as it is. */
  since: number;
  /** When its quota was to be written and was not yet. */
  dueSince?: number | undefined;
}

/** The spaces of one org. */
export class QuietSpaces {
  readonly #now: () => number;
  readonly #spaces = new Map<string, Space>();

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Remembers what each of the org's spaces holds now, and forgets those that are not named. */
  look(looks: ReadonlyMap<string, Look>): void {
    for (const ns of this.#spaces.keys()) if (!looks.has(ns)) this.#spaces.delete(ns);
    for (const [ns, look] of looks) {
      const before = this.#spaces.get(ns);
      const since = before?.signature === look.signature ? before.since : this.#now();
      this.#spaces.set(ns, { ...look, since, dueSince: before?.dueSince });
    }
  }

  /** The quota of the space is as it should be. */
  settled(ns: string): void {
    const space = this.#spaces.get(ns);
    if (space !== undefined) space.dueSince = undefined;
  }

  /** Says of a quota that is not as it should be whether it may be written now. */
  isTime(ns: string): boolean {
    const space = this.#spaces.get(ns);
    if (space === undefined) return true;
    const now = this.#now();
    space.dueSince ??= now;
    return now - space.since >= (space.isCounted ? quietMs : wrongMs) || now - space.dueSince >= mostMs;
  }
}
