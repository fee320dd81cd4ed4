import { expect, test } from 'vitest';
import { formatBytes, formatMegabytes, megabytesOf, parseLogRate, parseMegabytes } from '../../../src/lib/api/sizes.ts';

test.each([
  ['256M', 256],
  ['256mb', 256],
  ['1G', 1024],
  ['1.5G', 1536],
  ['1T', 1024 ** 2],
  ['2048K', 2],
])('%s is %d megabytes', (text, megabytes) => {
  expect(parseMegabytes(text)).toBe(megabytes);
});

test.each(['256', '', 'M', '0M', '512K', '-1M', '1X', '256 MiB'])('%j is not a size', (text) => {
  expect(parseMegabytes(text)).toBeUndefined();
});

test('a size without a unit is a usage error that names the flag and the given value', () => {
  expect(() => megabytesOf('12', '-m')).toThrow(
    "-m must be a whole number of megabytes or more, with a unit (M, MB, G, GB, T or TB), not '12'",
  );
});

test.each([
  ['-1', -1],
  ['0', 0],
  ['16K', 16384],
  ['16', undefined],
])('log rate %s is %s', (text, bytes) => {
  expect(parseLogRate(text)).toBe(bytes);
});

test.each([
  [0, '0B'],
  [1024 ** 3, '1G'],
  [51_066_470, '48.7M'],
])('%d bytes are written %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test('megabytes are written as cf writes them', () => {
  expect([256, 1024, 1536].map(formatMegabytes)).toEqual(['256M', '1G', '1.5G']);
});
