// Keeps one copy of texts that many cached objects have: GUIDs, kinds, images, times. JSON.parse makes a new copy at each place, and these copies are
// a third of the cache.

/** Longer texts are messages and seldom the same. */
const longest = 100;
/** Bounds the memory for texts of objects that are gone. Losing one costs another copy. */
const mostPerGeneration = 50_000;

/** Has another value in each version of each object. */
const unique = new Set(['resourceVersion']);

export class SharedTexts {
  #recent = new Map<string, string>();
  #earlier = new Map<string, string>();

  /** Replaces the texts in an object by equal ones that were seen before, at any depth, and returns the object. */
  shareIn<T extends object>(value: T): T {
    const fields = value as Record<string, unknown>;
    for (const key in fields) {
      const field = fields[key];
      if (typeof field === 'string') {
        if (field.length <= longest && !unique.has(key)) fields[key] = this.#share(field);
      } else if (typeof field === 'object' && field !== null) this.shareIn(field);
    }
    return value;
  }

  #share(text: string): string {
    const known = this.#recent.get(text);
    if (known !== undefined) return known;
    const kept = this.#earlier.get(text) ?? text;
    if (this.#recent.size >= mostPerGeneration) {
      this.#earlier = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(kept, kept);
    return kept;
  }
}
