// After a conflict the object is read again and the change computed again.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { retryOnConflict } from '../../../src/lib/kube/retry-on-conflict.ts';
import { apiError } from '../../support/memory-cluster.ts';

const conflict = () => apiError(409, 'Conflict', 'the object has been modified');
let version = 0;
const readAgain = async (): Promise<number> => (version += 1);

beforeEach(() => {
  version = 0;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => vi.useRealTimers());

test('the change is applied to each version, until one is written', async () => {
  const seen: number[] = [];
  const write = async (live: number): Promise<string> => {
    seen.push(live);
    if (seen.length < 4) throw conflict();
    return `wrote ${live}`;
  };
  const written = retryOnConflict(0, write, readAgain);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await written).toBe('wrote 3');
  expect(seen).toEqual([0, 1, 2, 3]);
});

test('for an object that others change all the time kf gives up, with the conflict', async () => {
  const written = retryOnConflict(0, () => Promise.reject(conflict()), readAgain).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(31_000);
  expect(await written).toMatchObject({ status: 409 });
  expect(version).toBeGreaterThan(50);
});

test.each([apiError(409, 'AlreadyExists', 'exists'), apiError(403, 'Forbidden', 'no'), new Error('gone')])(
  '%s is not a conflict',
  async (error) => {
    await expect(retryOnConflict(0, () => Promise.reject(error), readAgain)).rejects.toBe(error);
    expect(version).toBe(0);
  },
);

test('the retries end with the command', async () => {
  const ended = new AbortController();
  const write = (): Promise<never> => {
    ended.abort();
    return Promise.reject(conflict());
  };
  await expect(retryOnConflict(0, write, readAgain, ended.signal)).rejects.toMatchObject({ code: 'interrupted' });
});
