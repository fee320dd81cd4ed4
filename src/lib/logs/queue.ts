// A bounded queue with many writers and one reader: a slow reader slows the writers down instead of filling memory.

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

  /** Resolves when the queue has space; after its end at once, and the item is dropped. */
  async push(item: T): Promise<void> {
    if (this.#ended) return;
    this.#items.push(item);
    this.#wakeReader();
    if (this.#items.length >= this.#capacity) await new Promise<void>((resolve) => this.#writers.push(resolve));
  }

  /** No more items are accepted; queued ones are still read. An error is thrown to the reader after them. */
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
