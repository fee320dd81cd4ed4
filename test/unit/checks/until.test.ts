import { expect, test } from 'vitest';
import { pauseAfter, until } from '../../support/until.ts';

test('a wait pauses for three times as long as a look takes, at least 0.2 s and at most 1.5 s', () => {
  expect([0, 50, 300, 10_000].map((ms) => pauseAfter(ms))).toEqual([200, 200, 900, 1500]);
});

test('a wait that ends in vain names what it waited for and the last failure', async () => {
  const waited = until('a light', () => Promise.reject(new Error('it is dark')), 1);
  await expect(waited).rejects.toMatchObject({ message: 'waited 0.001 s for a light', cause: { message: 'it is dark' } });
});
