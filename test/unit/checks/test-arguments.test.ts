import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const runner = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
  spawnSync(process.execPath, ['test/run.ts', ...args], { encoding: 'utf8' });

test('npm test -- --help prints the usage and starts nothing', () => {
  const { status, stdout } = runner('--help');
  expect([status, stdout.split('\n')[0]]).toEqual([0, 'usage: npm test [-- [RING…] [FILE…] [--all] [--update]]']);
});

test.each([
  ['--watch', "Unknown option '--watch'."],
  ['untit', "There is no ring 'untit'."],
])('npm test -- %s is refused before anything is built', (word, message) => {
  const { status, stdout, stderr } = runner(word);
  expect([status, stdout, stderr.split('\n')[0]]).toEqual([2, '', message]);
});
