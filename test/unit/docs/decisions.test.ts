import { globSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { decisionRows } from '../../../tools/decisions.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = path.join(root, 'docs/decisions');

test('the index of decisions has every page once, by its number and title', async () => {
  const index = readFileSync(path.join(folder, 'README.md'), 'utf8');
  const pages = readdirSync(folder).filter((name) => name !== 'README.md');
  expect(pages.filter((name) => index.split(`](${name})`).length !== 2)).toEqual([]);
  expect((await decisionRows(root)).filter((row) => !index.includes(`${row}\n`))).toEqual([]);
});

test('every decision that is cited has its page', () => {
  const known = new Set(readdirSync(folder).map((name) => Number(name.slice(0, 4))));
  const files = ['*.md', 'docs/**/*.md', 'src/**/*.ts', 'bin/**/*.ts', 'tools/**/*.ts', 'manifests/**/*.yaml', 'test/**/*.ts'].flatMap(
    (pattern) => globSync(pattern, { cwd: root, exclude: (name) => name.includes('node_modules') }),
  );
  expect(files.length).toBeGreaterThan(500);
  const cited = files.flatMap((file) =>
    [...readFileSync(path.join(root, file), 'utf8').matchAll(/decisions?[ /](\d+)/g)].map(([, number]) => `${file}: ${Number(number)}`),
  );
  expect(cited.filter((one) => !known.has(Number(/\d+$/.exec(one)?.[0])))).toEqual([]);
});
