import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { faultOfReference } from '../../../tools/shown-by.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const file = 'unit/surface/shown-by';
const title = 'a reference is right: %j';
/** Of the flag --exact; it is nowhere in this file as a whole. */
const part = ['--', 'exac'].join('');

test.each<[string, string, string[], string | undefined]>([
  [file, title, [], undefined],
  [file, title, ['-x', '--exact'], undefined],
  [file, title, [part], `test/${file}.test.ts does not use ${part}`],
  [file, title.slice(0, 11), [], undefined],
  [file, title.slice(2, 11), [], `test/${file}.test.ts has no test '${title.slice(2, 11)}'`],
  ['unit/nothing', title, [], 'there is no test/unit/nothing.test.ts'],
  ['../secret', title, [], `'../secret ${title}' is no 'FILE TITLE'`],
  [file, '', [], `'${file} ' is no 'FILE TITLE'`],
])('a reference is right: %j', (path, name, spellings, fault) => {
  expect(faultOfReference(root, path, name, spellings)).toBe(fault);
});
