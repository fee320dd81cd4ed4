import { getEventListeners } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { openTerminal } from '../../../src/lib/output/terminal.ts';

test('waiting for a slow reader leaves no listener behind, however it ends', async () => {
  const stdout = new PassThrough({ highWaterMark: 1 });
  const terminal = await openTerminal({ env: {}, stdout, stderr: () => stdout, canAsk: () => false, json: false });
  const listeners = (): number[] => ['drain', 'close'].map((event) => stdout.listenerCount(event));
  const before = listeners();
  const stop = new AbortController();
  for (let line = 0; line < 20; line++) {
    terminal.out('a line');
    const drained = terminal.drained(stop.signal);
    expect(drained).toBeInstanceOf(Promise);
    stdout.read();
    await drained;
    expect(listeners()).toEqual(before);
  }
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
  terminal.out('a line');
  const drained = terminal.drained(stop.signal);
  stop.abort();
  await drained;
  expect(listeners()).toEqual(before);
});
