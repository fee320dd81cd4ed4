// References to tests in documents: `contract/cli/frame TITLE` is a test of test/contract/cli/frame.test.ts whose title begins or ends so.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What is wrong with the reference; undefined when the file has such a test. */
export function faultOfReference(root: string, file: string, title: string): string | undefined {
  const path = join(root, 'test', `${file}.test.ts`);
  if (title === '' || !/^[\w/-]+$/.test(file)) return `'${file} ${title}' is no 'FILE TITLE'`;
  if (!existsSync(path)) return `there is no test/${file}.test.ts`;
  const text = readFileSync(path, 'utf8').replaceAll("\\'", "'");
  const isThere = ["'", '"', '`'].some((quote) => text.includes(quote + title) || text.includes(title + quote));
  return isThere ? undefined : `test/${file}.test.ts has no test '${title}'`;
}
