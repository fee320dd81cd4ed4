import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WorkQueue } from '../../../src/controller/runtime/queue.ts';

describe('WorkQueue', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const queue = () => new WorkQueue({ baseDelayMs: 10, maxDelayMs: 100 });

  test('returns a key once if it was added twice', async () => {
    const q = queue();
    q.add('a');
    q.add('a');
    expect(await q.get()).toBe('a');
    expect(q.depth).toBe(0);
  });

  test('returns a key that was added while it was processed only after done', async () => {
    const q = queue();
    q.add('a');
    await q.get();
    q.add('a');
    expect(q.depth).toBe(0);
    q.done('a');
    expect(q.depth).toBe(1);
    expect(await q.get()).toBe('a');
  });

  test('gives the next key at once to a waiting getter', async () => {
    const q = queue();
    const next = q.get();
    q.add('a');
    expect(await next).toBe('a');
    expect(q.inWork).toBe(1);
  });

  test('serves namespaces in turns, each in the order of its keys', async () => {
    const q = queue();
    for (const key of ['a/1', 'a/2', 'a/3', 'a/4', 'b/1', 'c/1', 'b/2']) q.add(key);
    expect(q.depth).toBe(7);
    const given: (string | undefined)[] = [];
    for (let count = 0; count < 7; count += 1) given.push(await q.get());
    expect(given).toEqual(['a/1', 'b/1', 'c/1', 'a/2', 'b/2', 'a/3', 'a/4']);
    expect([q.depth, q.inWork]).toEqual([0, 7]);
  });

  test('does not delay other namespaces if one adds keys endlessly', async () => {
    const q = queue();
    for (let count = 0; count < 200; count += 1) q.add(`a/${count}`);
    await q.get();
    q.add('b/1');
    for (let count = 200; count < 400; count += 1) q.add(`a/${count}`);
    expect([await q.get(), await q.get()]).toContain('b/1');
  });

  test('uses the earlier of two delays', async () => {
    const q = queue();
    q.addAfter('a', 50);
    q.addAfter('a', 500);
    await vi.advanceTimersByTimeAsync(49);
    expect(q.depth).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(q.depth).toBe(1);
    await q.get();
    q.done('a');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(q.depth).toBe(0);
  });

  test('replaces a longer delay by a later, shorter one', async () => {
    const q = queue();
    q.addAfter('a', 500);
    q.addAfter('a', 20);
    await vi.advanceTimersByTimeAsync(20);
    expect(q.depth).toBe(1);
  });

  test('doubles the back-off per failure up to its limit, and restarts it after forget', async () => {
    const q = queue();
    for (const delay of [10, 20, 40, 80, 100, 100]) {
      q.addRateLimited('a');
      await vi.advanceTimersByTimeAsync(delay - 1);
      expect(q.depth).toBe(0);
      await vi.advanceTimersByTimeAsync(1);
      expect(await q.get()).toBe('a');
      q.done('a');
    }
    q.forget('a');
    q.addRateLimited('a');
    await vi.advanceTimersByTimeAsync(10);
    expect(q.depth).toBe(1);
  });

  test('begins a back-off anew after one with another first pause', async () => {
    const q = queue();
    const waiting = { baseMs: 30, mostMs: 1_000 };
    for (const [delay, how] of [[30, waiting], [60, waiting], [10], [20], [30, waiting]] as const) {
      q.addRateLimited('a', how);
      await vi.advanceTimersByTimeAsync(delay - 1);
      expect(q.depth).toBe(0);
      await vi.advanceTimersByTimeAsync(1);
      expect(await q.get()).toBe('a');
      q.done('a');
    }
    expect(q.failures('a')).toBe(1);
  });

  test('ends its getters when it is closed, and accepts nothing more', async () => {
    const q = queue();
    const next = q.get();
    q.addAfter('b', 10);
    q.close();
    expect(await next).toBeUndefined();
    q.add('a');
    await vi.advanceTimersByTimeAsync(100);
    expect(await q.get()).toBeUndefined();
  });
});
