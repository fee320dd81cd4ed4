// Many writers, one reader, bounded: a slow reader slows the writers down instead of filling memory.

export class LineQueue<T> {
  readonly #items: T[] = [];
  readonly #capacity: number;
  #ended = false;
  #error: unknown;
  #reader: (() => void) | undefined;
  #writers: (() => void)[] = [];

  constructor(capacity = 1_000) {
    this.#capacity = capacity;
  }

  /** Resolves when there is room again; at once after the end, where the item is dropped. */
  async push(item: T): Promise<void> {
    if (this.#ended) return;
    this.#items.push(item);
    this.#wakeReader();
    if (this.#items.length >= this.#capacity) await new Promise<void>((resolve) => this.#writers.push(resolve));
  }

  /** No more items; what is queued is still read. An error is thrown to the reader behind them. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wakeReader();
    this.#wakeWriters();
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  async *read(): AsyncGenerator<T> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        if (this.#items.length < this.#capacity / 2) this.#wakeWriters();
        yield item;
      } else if (this.#ended) {
        if (this.#error !== undefined) throw this.#error as Error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#reader = resolve;
        });
      }
    }
  }

  #wakeReader(): void {
    this.#reader?.();
    this.#reader = undefined;
  }

  #wakeWriters(): void {
    const writers = this.#writers;
    this.#writers = [];
    for (const resume of writers) resume();
  }
}
