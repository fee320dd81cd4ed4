// Stores layers by their inputs: a layer with unchanged inputs is not packed again.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { layerFromEntries } from '../../../src/lib/oci/layer.ts';
import type { Layer, LayerEntry } from '../../../src/lib/oci/layer.ts';
import { completeTree } from './rootfs.ts';

/** Part of every key: increase it when entries are packed in another way. */
const FORMAT = 1;

export interface LayerRecipe {
  /** Shown to people while the layer is packed. */
  name: string;
  /** Everything that the entries depend on; cheap to compute, compared as JSON. */
  inputs: unknown;
  entries: () => Promise<LayerEntry[]> | LayerEntry[];
}

/** Returns the layer from the cache or packs it. */
export async function storedLayer(recipe: LayerRecipe, cacheDir: string, log: (line: string) => void): Promise<Layer> {
  const folder = join(cacheDir, 'layers');
  mkdirSync(folder, { recursive: true });
  const key = createHash('sha256')
    .update(JSON.stringify([FORMAT, recipe.name, recipe.inputs]))
    .digest('hex')
    .slice(0, 16);
  const description = join(folder, `${key}.json`);
  if (existsSync(description)) {
    const known = JSON.parse(readFileSync(description, 'utf8')) as Omit<Layer, 'path'>;
    const path = blobPath(folder, known.digest);
    if (existsSync(path)) return { ...known, path };
  }
  log(`images: packing layer ${recipe.name}`);
  const temporary = join(folder, `${key}.${String(process.pid)}.tmp`);
  try {
    const packed = await layerFromEntries(completeTree(await recipe.entries()), { output: temporary, compression: 'gzip' });
    const path = blobPath(folder, packed.digest);
    renameSync(temporary, path);
    const { path: _, ...facts } = packed;
    writeFileSync(`${description}.${String(process.pid)}.tmp`, JSON.stringify(facts));
    renameSync(`${description}.${String(process.pid)}.tmp`, description);
    return { ...packed, path };
  } finally {
    rmSync(temporary, { force: true });
  }
}

function blobPath(folder: string, digest: string): string {
  return join(folder, `${digest.slice('sha256:'.length)}.tgz`);
}

/** Represents a file's content in a key: folders of parts are named after their sources, so path, size and time are enough. */
export function fileStamp(path: string): [string, number, number] {
  const { size, mtimeMs } = statSync(path);
  return [path, size, mtimeMs];
}
