import { describe, expect, test } from 'vitest';
import { ServerClock } from '../../../src/lib/kube/server-clock.ts';

const server = Date.parse('2026-01-01T12:00:00.700Z');
/** A server's format: whole seconds. */
const header = (ms: number): string => new Date(ms).toUTCString();

describe("the API server's time", () => {
  test.each([-86_400_000, -30_000, 30_000, 86_400_000])('is adopted by a clock that is %i ms off', (off) => {
    const clock = new ServerClock(() => server + off);
    clock.observe(header(server));
    expect(Math.abs(clock.now() - server)).toBeLessThanOrEqual(1_000);
  });

  test.each([-1_500, 0, 1_500])('does not correct a clock whose difference is within the precision of the header (%i ms)', (off) => {
    const clock = new ServerClock(() => server + off);
    clock.observe(header(server));
    expect(clock.now()).toBe(server + off);
  });

  test('is not changed by further answers, by a slow answer, or by answers without a time', () => {
    let local = server + 30_000;
    const clock = new ServerClock(() => local);
    clock.observe(header(server));
    const first = clock.now() - local;
    for (let ms = 0; ms < 5_000; ms += 170) {
      local = server + 30_000 + ms;
      clock.observe(header(server + ms));
      clock.observe(header(server + ms - 1_200));
      clock.observe(undefined);
      clock.observe('soon');
      expect(clock.now() - local).toBe(first);
    }
  });
});
