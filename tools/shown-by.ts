// References to tests in documents: `contract/cli/frame TITLE` is a test of test/contract/cli/frame.test.ts whose title begins or ends so.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** True for a word of its own: `-f` is not in `--force`. */
const has = (text: string, word: string): boolean => new RegExp(`(?<![\\w-])${word}(?![\\w-])`).test(text);

/**
 * What is wrong with the reference; undefined when the file has such a test.
 * @param spellings flags or variables; the file must have one of them, if there are any
 */
export function faultOfReference(root: string, file: string, title: string, spellings: readonly string[] = []): string | undefined {
  const path = join(root, 'test', `${file}.test.ts`);
  if (title === '' || !/^[\w/-]+$/.test(file)) return `'${file} ${title}' is no 'FILE TITLE'`;
  if (!existsSync(path)) return `there is no test/${file}.test.ts`;
  const text = readFileSync(path, 'utf8').replaceAll("\\'", "'");
  const isThere = ["'", '"', '`'].some((quote) => text.includes(quote + title) || text.includes(title + quote));
  if (!isThere) return `test/${file}.test.ts has no test '${title}'`;
  if (spellings.length === 0 || spellings.some((word) => has(text, word))) return undefined;
  return `test/${file}.test.ts does not use ${spellings.join(' or ')}`;
}
