// A Map that deletes its oldest entry when it is full: for caches that may lose entries and must not grow.

export class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  /** Also makes an existing entry the newest. */
  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#most) {
      const [oldest] = this.keys();
      if (oldest !== undefined) this.delete(oldest);
    }
    return this;
  }
}
