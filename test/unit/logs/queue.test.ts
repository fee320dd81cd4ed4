import { describe, expect, test } from 'vitest';
import { LineQueue } from '../../../src/lib/logs/queue.ts';

describe('the queue between many writers and one reader', () => {
  test('a full queue makes writers wait until half of it is read', async () => {
    const queue = new LineQueue<number>(4);
    for (let item = 0; item < 3; item++) await queue.push(item);
    let room = false;
    const waiting = queue.push(3).then(() => {
      room = true;
    });
    const reader = queue.read();
    await reader.next();
    await reader.next();
    expect(room).toBe(false);
    await reader.next();
    await waiting;
    expect(room).toBe(true);
  });

  test('items that were queued before the end are still read, and then the error follows', async () => {
    const queue = new LineQueue<string>();
    await queue.push('a');
    queue.end(new Error('over'));
    await queue.push('dropped');
    const reader = queue.read();
    expect((await reader.next()).value).toBe('a');
    await expect(reader.next()).rejects.toThrow('over');
  });

  test('the end releases waiting writers and a waiting reader', async () => {
    const queue = new LineQueue<string>(1);
    const blocked = queue.push('a');
    const other = new LineQueue<string>();
    const read = other.read().next();
    queue.end();
    other.end();
    await blocked;
    expect((await read).done).toBe(true);
  });
});
