import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mapLargerPages, raiseLimits } from '../../../tools/cluster/limits.ts';
import { garbageCollection } from '../../../tools/cluster/namespaces.ts';

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

test('the programs of a node collect garbage as Go does by default, unless the machine has memory to spare', () => {
  const GiB = 1024 ** 3;
  expect([4, 8, 12, 64].map((size) => garbageCollection(size * GiB))).toEqual([{}, {}, { GOGC: '400' }, { GOGC: '400' }]);
});

test('larger pages are mapped where nobody has chosen, and a choice stays', () => {
  const ofSize = path.join(folder, 'hugepages-64kB');
  mkdirSync(ofSize);
  file = path.join(ofSize, 'enabled');
  const after = (all: string, before: string): string => {
    writeFileSync(path.join(folder, 'enabled'), all);
    writeFileSync(file, before);
    mapLargerPages((line) => said.push(line), file);
    return readFileSync(file, 'utf8');
  };
  const free = 'always inherit madvise [never]';
  expect(after('always [madvise] never', free)).toBe('always');
  expect(said).toHaveLength(1);
  expect(after('always madvise [never]', free)).toBe(free);
  expect(after('always [madvise] never', 'always inherit [madvise] never')).toBe('always inherit [madvise] never');
  mapLargerPages((line) => said.push(line), path.join(folder, 'older-kernel'));
  expect(said).toHaveLength(1);
});
