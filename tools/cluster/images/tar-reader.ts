// Reads a tar stream into layer entries in memory: the packages of the images are small.
import type { Readable } from 'node:stream';

import { extract } from 'tar-stream';

import type { LayerEntry } from '../../../src/lib/oci/layer.ts';

/**
 * The entries of an archive, owners dropped (all of root), hard links as copies of what they point to.
 * @param rename new name without leading `./`, or undefined to leave the entry out
 */
export async function readTar(stream: Readable, rename: (name: string) => string | undefined): Promise<LayerEntry[]> {
  const entries: LayerEntry[] = [];
  const contents = new Map<string, Buffer>();
  const archive = stream.pipe(extract());
  stream.on('error', (error) => archive.destroy(error));
  for await (const entry of archive) {
    const { header } = entry;
    const original = header.name.replace(/^\.\//, '').replace(/\/$/, '');
    const name = original === '' || original === '.' ? undefined : rename(original);
    if (name === undefined) {
      entry.resume();
      continue;
    }
    // The sticky and set-id bits are part of the mode too.
    const mode = (header.mode ?? 0o644) & 0o7777;
    if (header.type === 'directory') entries.push({ type: 'directory', name, mode });
    else if (header.type === 'symlink') entries.push({ type: 'symlink', name, target: header.linkname ?? '' });
    else {
      const link = header.type === 'link' ? contents.get((header.linkname ?? '').replace(/^\.\//, '')) : undefined;
      const source = link ?? (await contentOf(entry));
      contents.set(original, source);
      entries.push({ type: 'file', name, mode, source });
    }
    entry.resume();
  }
  return entries;
}

async function contentOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
