// Finds the spaces of an org that are quiet. When a quota is written, the cluster counts again, from caches that lag behind, and then admits once
// more the objects that it missed. Where nothing was created for a while, nothing can be missed.

/** The caches of a busy cluster lag behind by a second or so. */
const quietMs = 2_000;
/** A count that is wrong stays wrong until a quota is written. */
const wrongMs = 5_000;
/** A space that changes all the time delays its quota no longer than this. */
const mostMs = 30_000;

/** The contents of a space. */
export interface Look {
  /** Stays equal while nothing changes. */
  signature: string;
  /** The quota has counted all existing objects. */
  isCounted: boolean;
}

interface Space extends Look {
  /** When the space was first seen in its present state. */
  since: number;
  /** Since when its quota is due to be written. */
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

  /** Stores the present contents of the org's spaces, and drops spaces that are not listed. */
  look(looks: ReadonlyMap<string, Look>): void {
    for (const ns of this.#spaces.keys()) if (!looks.has(ns)) this.#spaces.delete(ns);
    for (const [ns, look] of looks) {
      const before = this.#spaces.get(ns);
      const since = before?.signature === look.signature ? before.since : this.#now();
      this.#spaces.set(ns, { ...look, since, dueSince: before?.dueSince });
    }
  }

  /** Call it when the quota of the space is right. */
  settled(ns: string): void {
    const space = this.#spaces.get(ns);
    if (space !== undefined) space.dueSince = undefined;
  }

  /** Whether the quota of the space, which is not right, may be written now. */
  isTime(ns: string): boolean {
    const space = this.#spaces.get(ns);
    if (space === undefined) return true;
    const now = this.#now();
    space.dueSince ??= now;
    return now - space.since >= (space.isCounted ? quietMs : wrongMs) || now - space.dueSince >= mostMs;
  }
}
