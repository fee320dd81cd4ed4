import { expect, test } from 'vitest';
import { askedMs, timeoutFrom, timeoutWarnings, twiceAsLong } from '../../../src/lib/cf/timeouts.ts';

test.each([
  ['10', 600_000],
  ['0.1', 6000],
  [' 1e1 ', 600_000],
])('CF_STARTUP_TIMEOUT=%s is this number of minutes', (text, expected) => {
  expect(timeoutFrom({ CF_STARTUP_TIMEOUT: text }, 'CF_STARTUP_TIMEOUT')).toBe(expected);
  expect(timeoutWarnings({ CF_STARTUP_TIMEOUT: text }, ['CF_STARTUP_TIMEOUT'])).toEqual([]);
});

test('a timeout without a setting has its default', () => {
  expect(askedMs({}, 'CF_STARTUP_TIMEOUT')).toBeUndefined();
  expect(timeoutFrom({}, 'CF_STARTUP_TIMEOUT')).toBe(5 * 60_000);
  expect(timeoutFrom({ CF_STAGING_TIMEOUT: '' }, 'CF_STAGING_TIMEOUT')).toBe(15 * 60_000);
  expect(timeoutFrom({ CF_DIAL_TIMEOUT: '2.5' }, 'CF_DIAL_TIMEOUT')).toBe(2500);
  expect(timeoutWarnings({ CF_STAGING_TIMEOUT: '' }, ['CF_STAGING_TIMEOUT'])).toEqual([]);
});

test('the hint after a limit that was too short names a longer one, whatever was set', () => {
  expect(twiceAsLong('CF_STARTUP_TIMEOUT', 15 * 60_000)).toBe('CF_STARTUP_TIMEOUT=30 gives it 30 minutes.');
  expect(twiceAsLong('CF_STAGING_TIMEOUT', 30_000)).toBe('CF_STAGING_TIMEOUT=1 gives it 1 minute.');
});

test.each(['abc', '0', '-1', '15m', 'Infinity', 'NaN'])('%s is not a time, so the default is used, with a warning', (text) => {
  const env = { CF_STARTUP_TIMEOUT: text, CF_STAGING_TIMEOUT: text, CF_DIAL_TIMEOUT: text };
  expect(timeoutFrom(env, 'CF_STARTUP_TIMEOUT')).toBe(5 * 60_000);
  expect(timeoutWarnings(env, ['CF_DIAL_TIMEOUT', 'HOME', 'CF_STAGING_TIMEOUT'])).toEqual([
    `CF_STAGING_TIMEOUT is '${text}', which is not a number of minutes above 0; 15 minutes are taken.`,
    `CF_DIAL_TIMEOUT is '${text}', which is not a number of seconds above 0; 10 seconds are taken.`,
  ]);
});
