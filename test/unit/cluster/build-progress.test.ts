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
    'large (0 s, 0 of 4 packages); 0 %, 0 of 2 parts built, 2 left, 0 s',
    'large (15 s, 2 of 4 packages); 37 %, 0 of 2 parts built, 2 left, 15 s',
    'large: built in 20 s; 75 %, 1 of 2 parts built, 1 left, 20 s',
  ]);
});

test('on a terminal a bar shows the same', () => {
  const progress = new BuildProgress(parts, { log, terminal }, () => now);
  progress.start('large', ['a', 'b', 'c', 'd']);
  compile(progress, 2);
  now = 15_000;
  progress.show();
  progress.end();
  expect(lastDrawn()).toBe('[#########---------------] large (15 s, 2 of 4 packages); 37 %, 0 of 2 parts built, 2 left, 15 s');
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
  expect(said.at(-1)).toBe('small (0 s, 0 of 1 packages); 75 %, 1 of 2 parts built, 1 left, 0 s');
});

test('nothing is left when everything is built', () => {
  const progress = new BuildProgress(parts, { log }, () => now);
  for (const { name } of parts) {
    progress.start(name, []);
    progress.finish();
  }
  progress.end();
  expect(said.at(-1)).toBe('small: built in 0 s; 100 %, 2 of 2 parts built, 0 left, 0 s');
});
