import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { faultOfReference } from '../../../tools/shown-by.ts';

const root = new URL('../../../', import.meta.url);

/** "`file` title; `file` title", the last cell of each row. */
function shownBy(): { file: string; title: string }[] {
  const rows = readFileSync(new URL('docs/testing.md', root), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2);
  return rows.flatMap((row) =>
    (row.slice(2, -2).split(' | ').at(-1) ?? '').split('; ').map((entry) => {
      const [, file = '', title = ''] = /^`([\w/-]+)` (.+)$/.exec(entry) ?? [];
      return { file, title };
    }),
  );
}

test('every row of docs/testing.md names tests that exist, by file and title', () => {
  const rows = shownBy();
  expect(rows.length).toBeGreaterThan(50);
  const lacking = rows.flatMap(({ file, title }) => faultOfReference(fileURLToPath(root), file, title) ?? []);
  expect(lacking).toEqual([]);
});
