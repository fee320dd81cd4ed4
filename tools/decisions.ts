// The index of docs/decisions: one row per page, in the order of the numbers.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** `| 9 | [Title](0009-name.md) |` for each page. @throws if two pages have one number, or if a title differs from its file name */
export async function decisionRows(root: string): Promise<string[]> {
  const folder = join(root, 'docs/decisions');
  const pages = (await readdir(folder)).filter((name) => name.endsWith('.md') && name !== 'README.md').toSorted();
  const seen = new Map<number, string>();
  const rows: string[] = [];
  for (const page of pages) {
    const number = Number(page.slice(0, 4));
    const other = seen.get(number);
    if (other !== undefined) throw new Error(`Decision ${number} is there twice: ${other} and ${page}.`);
    seen.set(number, page);
    const [first = ''] = (await readFile(join(folder, page), 'utf8')).split('\n', 1);
    const [, titled, title] = /^# (\d+)\. (.+)$/.exec(first) ?? [];
    if (Number(titled) !== number || title === undefined) throw new Error(`docs/decisions/${page} must begin with '# ${number}. TITLE'.`);
    rows.push(`| ${number} | [${title.replaceAll('|', '\\|')}](${page}) |`);
  }
  return rows;
}
