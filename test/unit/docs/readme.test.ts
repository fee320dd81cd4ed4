import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = new URL('../../../', import.meta.url);
const readme = readFileSync(new URL('README.md', root), 'utf8');

test('each folder that the tour pushes is in the repository', () => {
  const folders = [...readme.matchAll(/^\$ kf push \S+ -p (\S+)/gm)].map(([, folder = '']) => folder);
  expect(folders).not.toEqual([]);
  expect(folders.filter((folder) => !existsSync(fileURLToPath(new URL(folder, root))))).toEqual([]);
});
