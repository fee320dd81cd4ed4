import { describe, expect, test } from 'vitest';
import { lanesFor } from '../../support/lanes.ts';
import { ringOrder } from '../../support/ring-order.ts';

const order = (files: string): string =>
  ringOrder(
    [...files],
    (file) => file === 'S',
    (file) => file >= 'A' && file <= 'D',
  ).join('');

describe('the files of the cluster ring', () => {
  test.each([
    ['in their order without others', 'abc', 'abc'],
    ['begin with the session', 'abS', 'Sab'],
    ['that start clusters have five others between them', 'ABCabcdefghijklmS', 'SAabcdeBfghijCklm'],
    ['that start clusters come one after the other when no others are left', 'aABbC', 'AabBC'],
  ])('%s', (_what, given, expected) => {
    expect(order(given)).toBe(expected);
  });
});

test('two files run at a time only where processes start fast', () => {
  expect([28, 40, 95, 136].map((startMs) => lanesFor(startMs))).toEqual([2, 2, 1, 1]);
});
