import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = new URL('../../../', import.meta.url);

interface SecurityPromise {
  promise: string;
  shownBy: { file: string; title: string }[];
}

/** Rows of the table: `who | must not | held by | shown by`, the last as "`file` title; `file` title". */
function promises(): SecurityPromise[] {
  const rows = readFileSync(new URL('docs/security-model.md', root), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2, -2).split(' | '))
    .slice(2);
  return rows.map((cells) => ({
    promise: cells.slice(0, 2).join(' '),
    shownBy: (cells.at(-1) ?? '').split('; ').map((entry) => {
      const [, file = '', title = ''] = /^`([\w/-]+)` (.+)$/.exec(entry) ?? [];
      return { file, title };
    }),
  }));
}

test('every row of docs/security-model.md names tests that exist, by file and title', () => {
  const unshown = promises().flatMap(({ promise, shownBy }) =>
    shownBy
      .filter(({ file, title }) => {
        const test = fileURLToPath(new URL(`test/${file}.test.ts`, root));
        return title === '' || !existsSync(test) || !readFileSync(test, 'utf8').replaceAll("\\'", "'").includes(title);
      })
      .map(({ file, title }) => `${promise}: ${file} ${title}`),
  );
  expect(unshown).toEqual([]);
});

test('every attack of the cluster ring is named in a row of docs/security-model.md', () => {
  const files = readdirSync(new URL('test/cluster/attacks/', root));
  const named = new Set(promises().flatMap(({ shownBy }) => shownBy.map(({ file }) => file)));
  const attacks = files.filter((file) => file.endsWith('.test.ts')).map((file) => `cluster/attacks/${file.slice(0, -'.test.ts'.length)}`);
  expect(attacks.filter((attack) => !named.has(attack))).toEqual([]);
});
