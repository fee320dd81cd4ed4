// A root file system as a list of entries: merged from several sources, with the missing parent folders, sorted.
import { posix } from 'node:path';

import type { LayerEntry } from '../../../src/lib/oci/layer.ts';

/** Top-level folders that are links into /usr since Debian 10; packages still use both names. */
const MERGED_INTO_USR = ['bin', 'sbin', 'lib', 'lib64'];

/** The path of an entry of a Debian package in a system with merged /usr. */
export function mergedUsrName(name: string): string {
  const [top = ''] = name.split('/', 1);
  return MERGED_INTO_USR.includes(top) ? `usr/${name}` : name;
}

/** The links of the merge. */
export const mergedUsrLinks: LayerEntry[] = MERGED_INTO_USR.map((name) => ({ type: 'symlink', name, target: `usr/${name}` }));

/**
 * Sorted entries with every parent folder before its content. Of two entries with one name the later is used.
 * @param entries names with `/`, no leading slash
 */
export function completeTree(entries: readonly LayerEntry[]): LayerEntry[] {
  const byName = new Map<string, LayerEntry>();
  for (const entry of entries) {
    for (let parent = posix.dirname(entry.name); parent !== '.'; parent = posix.dirname(parent)) {
      if (!byName.has(parent)) byName.set(parent, { type: 'directory', name: parent });
    }
    byName.set(entry.name, entry);
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** A file with the given content. */
export function textFile(name: string, text: string, mode = 0o644): LayerEntry {
  return { type: 'file', name, mode, source: Buffer.from(text) };
}

/** A copy of a file or program on disk. */
export function diskFile(name: string, source: string, mode = 0o755): LayerEntry {
  return { type: 'file', name, mode, source };
}
