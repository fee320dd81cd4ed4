// The source of a push: a folder, or a zip, jar or war. The way in to this folder's files.

import { defined } from '../defined.ts';
import { listFolder } from './content-hash.ts';
import { assertFolder, resolveSource } from './files.ts';
import type { ListOptions, SourceListing } from './listing.ts';

/** Lists and hashes a folder or an archive. Throws KfError `usage` (missing, empty, damaged) or `upload`. */
export async function listSource(path: string, options: ListOptions): Promise<SourceListing> {
  const { root, isFolder } = resolveSource(path, options.namedBy);
  return isFolder ? listFolder(root, path, options) : (await archives()).listArchive(root, options);
}

/** Reads only as much as this needs. @throws KfError `usage` when a push of the source would take nothing, or could not read the archive */
export async function assertSource(path: string, signal?: AbortSignal): Promise<void> {
  const { root, isFolder } = resolveSource(path);
  await (isFolder ? assertFolder(root, path, defined({ signal })) : (await archives()).assertArchive(root, signal));
}

/** Loaded for archives only. */
const archives = () => import('./archive.ts');
