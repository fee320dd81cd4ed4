import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { stagingLines } from '../../../src/lib/logs/format.ts';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { openDisplay } from '../../../src/lib/output/progress.ts';
import { Terminal } from '../../../src/lib/output/terminal.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function record() {
  const told: string[] = [];
  const printed: string[] = [];
  const stdout = { write: (text: string) => printed.push(text) > 0 };
  const stderr = { write: (text: string) => told.push(text.trimEnd()) };
  const terminal = new Terminal({ env: {}, stdout, stderr: () => stderr, canAsk: () => false, json: false }, plainInk);
  return { display: openDisplay(terminal), told, printed };
}

describe('without a terminal', () => {
  it('prints a line when it waits for something else, not when only figures change', () => {
    const { display, told } = record();
    for (let second = 1; second < 10; second += 1) {
      display.step(`Waiting: the app has not answered on port 8080 yet (${second} of 60 s).`);
      vi.advanceTimersByTime(1000);
    }
    display.step('Waiting: instance 0 is crashing');
    expect(told).toEqual(['Waiting: the app has not answered on port 8080 yet (1 of 60 s).', 'Waiting: instance 0 is crashing']);
    display.done();
  });

  it('lines of a build are indented by three blanks, as in cf', () => {
    const { display, printed } = record();
    for (const line of stagingLines({ text: 'Exporting\r\nDroplet' })) display.log(line);
    expect(printed).toEqual(['   Exporting\n', '   Droplet\n']);
  });

  it('otherwise prints a line every 10 s, with the latest figures', () => {
    const { display, told } = record();
    for (let second = 1; second <= 25; second += 1) {
      display.step(`Waiting (${second} of 60 s)`);
      vi.advanceTimersByTime(1000);
    }
    expect(told).toEqual(['Waiting (1 of 60 s)', 'Waiting (10 of 60 s)', 'Waiting (20 of 60 s)']);
    display.done();
    vi.advanceTimersByTime(60_000);
    expect(told).toHaveLength(3);
  });

  it('a repeated line has the time so far, and the bytes of an upload', () => {
    const { display, told } = record();
    display.step('Uploading');
    display.bytes({ done: 1024, total: 4096 });
    vi.advanceTimersByTime(10_000);
    display.step('Staging');
    vi.advanceTimersByTime(20_000);
    expect(told).toEqual(['Uploading', 'Uploading 1K of 4K (10 s)', 'Staging', 'Staging (10 s)', 'Staging (20 s)']);
    display.done();
  });

  it('alternating messages are printed once each, and then every 10 s', () => {
    const { display, told } = record();
    for (let second = 0; second < 29; second += 1) {
      display.step(second % 2 === 0 ? 'Waiting: web' : 'Waiting: worker');
      vi.advanceTimersByTime(1000);
    }
    expect(told).toHaveLength(4);
    display.done();
  });

  it('after a result the same message is printed again', () => {
    const { display, told } = record();
    display.step('Waiting');
    display.done();
    display.step('Waiting');
    expect(told).toEqual(['Waiting', 'Waiting']);
    display.done();
  });
});
