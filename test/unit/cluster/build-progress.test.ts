import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BuildProgress } from '../../../tools/cluster/build-progress.ts';

const parts = [
  { name: 'large', weight: 300 },
  { name: 'small', weight: 100 },
];

let now: number;
let said: string[];
let drawn: string[];

beforeEach(() => {
  vi.useFakeTimers();
  now = 0;
  said = [];
  drawn = [];
});
afterEach(() => vi.useRealTimers());

const log = (line: string): number => said.push(line);
const terminal = { columns: 200, write: (text: string) => drawn.push(text) > 0 };
const lastDrawn = (): string | undefined => drawn.map((text) => text.replace('\r\u001B[K', '')).findLast(Boolean);

function compile(progress: BuildProgress, count: number): void {
  for (let i = 0; i < count; i++) progress.compiled();
}

test('without a terminal, lines say what is built, what is being built and what is left', () => {
  const progress = new BuildProgress(parts, { log }, () => now);
  progress.start('large', ['a', 'b', 'c', 'd']);
  compile(progress, 2);
  now = 15_000;
  vi.advanceTimersByTime(15_000);
  now = 20_000;
  progress.finish();
  progress.end();
  expect(said).toEqual([
    'building once: large, small',
    '0 %, 0 s; 0 of 2 parts built; large: 0 of 4 packages',
    '37 %, 15 s; 0 of 2 parts built; large: 2 of 4 packages',
    'large: built in 20 s; 75 %, 20 s; 1 of 2 parts built',
  ]);
});

test('on a terminal a bar shows the same', () => {
  const progress = new BuildProgress(parts, { log, terminal }, () => now);
  progress.start('large', ['a', 'b', 'c', 'd']);
  compile(progress, 2);
  now = 15_000;
  progress.show();
  progress.end();
  expect(lastDrawn()).toBe('[#########---------------] 37 %, 15 s; 0 of 2 parts built; large: 2 of 4 packages');
});

test('the bar is shorter on a narrow terminal, so that the text fits', () => {
  const progress = new BuildProgress(parts, { log, terminal: { ...terminal, columns: 68 } }, () => now);
  now = 358_000;
  progress.start('large', ['a', 'b']);
  progress.end();
  expect(lastDrawn()).toBe('[----------] 0 %, 358 s; 0 of 2 parts built; large: 0 of 2 packages');
});

test('before the first part is compiled, the bar says that its sources are fetched', () => {
  const progress = new BuildProgress(parts, { log, terminal }, () => now);
  now = 12_000;
  vi.advanceTimersByTime(500);
  progress.end();
  expect(lastDrawn()).toBe('[------------------------] 0 %, 12 s; 0 of 2 parts built; fetching the sources of large');
});

test('the bar is cut to the width of the terminal, and removed at the end', () => {
  const progress = new BuildProgress(parts, { log, terminal: { ...terminal, columns: 30 } }, () => now);
  progress.start('large', []);
  expect(lastDrawn()).toHaveLength(29);
  progress.end();
  expect(drawn.at(-1)).toBe('\r\u001B[K');
});

test('a package that an earlier part contains is not expected again', () => {
  const progress = new BuildProgress(parts, { log }, () => now);
  progress.start('large', ['a', 'b']);
  progress.finish();
  progress.start('small', ['a', 'b', 'c']);
  progress.end();
  expect(said.at(-1)).toBe('75 %, 0 s; 1 of 2 parts built; small: 0 of 1 packages');
});

test('nothing is left when everything is built', () => {
  const progress = new BuildProgress(parts, { log }, () => now);
  for (const { name } of parts) {
    progress.start(name, []);
    progress.finish();
  }
  progress.end();
  expect(said.at(-1)).toBe('small: built in 0 s; 100 %, 0 s; 2 of 2 parts built');
});
