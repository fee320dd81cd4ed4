import { afterEach, expect, test, vi } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { inOrder, mostHeld } from '../../../src/lib/logs/in-order.ts';

afterEach(() => void vi.restoreAllMocks());

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

/** Lines that are there at once; `next` says how many the reader has asked for. */
function flood(count: number): { lines: AsyncIterable<LogEntry>; asked: () => number } {
  let asked = 0;
  const next = (): Promise<IteratorResult<LogEntry>> => {
    if (asked === count) return Promise.resolve({ done: true, value: undefined });
    const text = String(asked++);
    return Promise.resolve({ done: false, value: { ...entry(0, text), time: text.padStart(9, '0') } });
  };
  return { lines: { [Symbol.asyncIterator]: () => ({ next }) }, asked: () => asked };
}

test('a flood of lines is held only up to the limit, and all come in order', async () => {
  const count = mostHeld * 3;
  const { lines, asked } = flood(count);
  let given = 0;
  let most = 0;
  for await (const { text } of inOrder(lines, 60_000)) {
    if (text !== String(given)) expect(text).toBe(String(given));
    most = Math.max(most, asked() - given++);
  }
  expect(given).toBe(count);
  // One more is asked for ahead.
  expect(most).toBe(mostHeld + 1);
});

test('lines whose time has passed come out together, however many the stream has ready', async () => {
  const { lines, asked } = flood(mostHeld - 2);
  const sorted = inOrder(lines, 0);
  for (let given = 0; given < 100; given++) {
    expect((await sorted.next()).value).toMatchObject({ text: String(given) });
    expect(asked()).toBeLessThanOrEqual(given + 2);
  }
  await sorted.return(undefined);
});

test('a line whose time passes while the pause begins causes no negative delay', async () => {
  // It comes at 4, is looked at at 8, and its pause of 7 begins at 12.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 4));
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const source = new Source();
  const lines = inOrder(source, 7);
  source.say(entry(1, 'only'));
  expect((await lines.next()).value).toMatchObject({ text: 'only' });
  const delays = timers.mock.calls.map(([, ms]) => ms ?? 0);
  expect(Math.min(...delays)).toBe(0);
  source.say(undefined);
  await lines.return(undefined);
});
