// A root file system as a list of entries: merged from several sources, completed with the folders between, sorted.
import { posix } from 'node:path';

import type { LayerEntry } from '../../../src/lib/oci/layer.ts';

/** Top-level folders that are links into /usr since Debian 10; packages still name both. */
const MERGED_INTO_USR = ['bin', 'sbin', 'lib', 'lib64'];

/** Where an entry of a Debian package lies in a system with merged /usr. */
export function mergedUsrName(name: string): string {
  const [top = ''] = name.split('/', 1);
  return MERGED_INTO_USR.includes(top) ? `usr/${name}` : name;
}

/** The links that make the merge visible. */
export const mergedUsrLinks: LayerEntry[] = MERGED_INTO_USR.map((name) => ({ type: 'symlink', name, target: `usr/${name}` }));

/**
 * Sorted entries with every parent folder before its content. Of two entries with one name the later wins.
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

/** A file made here. */
export function textFile(name: string, text: string, mode = 0o644): LayerEntry {
  return { type: 'file', name, mode, source: Buffer.from(text) };
}

/** A file or program on disk, copied. */
export function diskFile(name: string, source: string, mode = 0o755): LayerEntry {
  return { type: 'file', name, mode, source };
}
