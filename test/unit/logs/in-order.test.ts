import { expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { inOrder } from '../../../src/lib/logs/in-order.ts';

const entry = (second: number, text: string): LogEntry => ({
  time: `2026-01-01T00:00:0${String(second)}.000000000Z`,
  source: { type: 'STG', pod: 'p', container: 'c' },
  stream: 'OUT',
  text,
});

/** Returns entries when the test says so. */
class Source {
  #wake: (() => void) | undefined;
  readonly #queue: (LogEntry | undefined)[] = [];

  say(...entries: (LogEntry | undefined)[]): void {
    this.#queue.push(...entries);
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LogEntry> {
    for (;;) {
      if (this.#queue.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
      const next = this.#queue.shift();
      if (next === undefined) return;
      yield next;
    }
  }
}

test('lines are sorted by their times, and lines of the same time keep their order', async () => {
  const source = new Source();
  source.say(entry(3, 'registry 3'), entry(1, 'build 1'), entry(2, 'build 2a'), entry(2, 'build 2b'), undefined);
  const texts: string[] = [];
  for await (const { text } of inOrder(source, 60_000)) texts.push(text);
  expect(texts).toEqual(['build 1', 'build 2a', 'build 2b', 'registry 3']);
});

test('a line is held only for its time, even if the stream does not continue', async () => {
  const source = new Source();
  const lines = inOrder(source, 5);
  source.say(entry(2, 'late'), entry(1, 'early'));
  expect([(await lines.next()).value, (await lines.next()).value]).toMatchObject([{ text: 'early' }, { text: 'late' }]);
  source.say(undefined);
  expect(await lines.next()).toMatchObject({ done: true });
});
