import { describe, expect, test } from 'vitest';
import { KfError } from '../../../src/lib/errors.ts';
import { backoffMs, sleep, timeoutError, waitFor } from '../../../src/lib/wait.ts';

describe('waiting', () => {
  test('asks until there is an answer', async () => {
    let asked = 0;
    const answer = await waitFor(() => Promise.resolve(++asked === 3 ? 'yes' : undefined), {
      timeoutMs: 5_000,
      intervalMs: 1,
      describe: 'x',
    });
    expect([answer, asked]).toEqual(['yes', 3]);
  });

  test('reports what it waited for at the timeout', async () => {
    const options = { timeoutMs: 20, intervalMs: 5, describe: () => 'the pod to be ready' };
    await expect(waitFor(() => Promise.resolve(undefined), options)).rejects.toMatchObject({
      code: 'timeout',
      message: 'Timed out after 20 ms waiting for the pod to be ready.',
    });
    expect(timeoutError(90_000, 'x').message).toBe('Timed out after 1 min 30 s waiting for x.');
  });

  test('a pause ends with its signal and the reason of the abort', async () => {
    const stop = new AbortController();
    const pause = sleep(60_000, stop.signal);
    stop.abort(new KfError('conflict', 'Superseded.'));
    await expect(pause).rejects.toThrow('Superseded.');
    await expect(sleep(60_000, AbortSignal.abort())).rejects.toMatchObject({ code: 'interrupted', exitCode: 130 });
    await expect(sleep(60_000, AbortSignal.timeout(5))).rejects.toMatchObject({ code: 'timeout' });
  });

  test('back-off doubles up to its limit', () => {
    for (const [attempt, full] of [
      [0, 100],
      [3, 800],
      [20, 5_000],
    ] as const) {
      const ms = backoffMs(attempt);
      expect(ms).toBeGreaterThanOrEqual(full * 0.75);
      expect(ms).toBeLessThanOrEqual(full);
    }
  });
});
