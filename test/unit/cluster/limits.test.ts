import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { raiseLimits } from '../../../tools/cluster/limits.ts';

let folder: string;
let file: string;
let said: string[];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-limits-'));
  file = path.join(folder, 'max_user_instances');
  said = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const raise = (): void => raiseLimits((line) => said.push(line), { file, least: 1024 });

test('a lower limit is raised, and a line reports it', () => {
  writeFileSync(file, '128\n');
  raise();
  expect(readFileSync(file, 'utf8')).toBe('1024');
  expect(said).toEqual(['raised fs.inotify.max_user_instances from 128 to 1024']);
});

test('a higher limit stays, without a message', () => {
  writeFileSync(file, '8192\n');
  raise();
  expect(readFileSync(file, 'utf8')).toBe('8192\n');
  expect(said).toEqual([]);
});

test('a limit that cannot be read does not end the program', () => {
  raise();
  expect(said[0]).toContain('a node that does not become ready may need it raised');
});
