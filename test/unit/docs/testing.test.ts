import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

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
  const lacking = shownBy().filter(({ file, title }) => {
    const place = fileURLToPath(new URL(`test/${file}.test.ts`, root));
    return title === '' || !existsSync(place) || !readFileSync(place, 'utf8').replaceAll("\\'", "'").includes(title);
  });
  expect(lacking).toEqual([]);
});
