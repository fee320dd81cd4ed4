// One layer: a deterministic tar, compressed into a file, with both of its hashes.

import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { type Duplex, PassThrough } from 'node:stream';
import { constants, createGzip, createZstdCompress } from 'node:zlib';
import { type Descriptor, type Digest, MEDIA_TYPES } from './descriptor.ts';
import { BlockPool, type LayerEntry, tarBlocks } from './tar.ts';

export type { DirectoryEntry, FileEntry, LayerEntry, SymlinkEntry } from './tar.ts';

export type Compression = 'gzip' | 'zstd' | 'none';

export interface LayerOptions {
  /** The output file; after a failure it is incomplete, and the caller removes it. */
  output: string;
  compression: Compression;
  /** gzip 1-9 (default 1: on source code level 6 costs four times the time for a fifth less), zstd 1-19 (default 3). */
  level?: number;
  signal?: AbortSignal;
  /** Called after every block with the bytes of the tar so far. */
  progress?: (tarBytes: number) => void;
}

/** A finished layer. `digest` is the hash of the compressed bytes, `diffId` that of the tar; manifests use the first, configs the second. */
export interface Layer {
  mediaType: string;
  digest: Digest;
  diffId: Digest;
  /** Compressed size in bytes. */
  size: number;
  path: string;
}

const LAYER_MEDIA_TYPES: Record<Compression, string> = {
  gzip: MEDIA_TYPES.layerGzip,
  zstd: MEDIA_TYPES.layerZstd,
  none: MEDIA_TYPES.layer,
};

/** Streams the entries (sorted by the caller) into `output` with constant memory. */
export async function layerFromEntries(entries: AsyncIterable<LayerEntry> | Iterable<LayerEntry>, options: LayerOptions): Promise<Layer> {
  const compressor = compressorFor(options);
  const output = await open(options.output, 'w');
  const feeding = feed(entries, compressor, options);
  try {
    const [diffId, written] = await Promise.all([feeding, store(compressor, output)]);
    return { mediaType: LAYER_MEDIA_TYPES[options.compression], diffId, ...written, path: options.output };
  } finally {
    compressor.destroy();
    await feeding.catch(() => undefined);
    await output.close();
  }
}

/** Number of blocks in the compressor: while its thread works on one, the next ones are read and hashed. */
const BLOCKS_IN_FLIGHT = 4;

/** Writes the tar into the compressor and returns the tar's digest. */
async function feed(entries: AsyncIterable<LayerEntry> | Iterable<LayerEntry>, compressor: Duplex, options: LayerOptions): Promise<Digest> {
  const hash = createHash('sha256');
  const pool = new BlockPool();
  // Uncompressed blocks are passed on as they are.
  const reusable = options.compression !== 'none';
  const inFlight: Promise<void>[] = [];
  let tarBytes = 0;
  try {
    for await (const block of tarBlocks(entries, pool)) {
      options.signal?.throwIfAborted();
      const written = write(compressor, block).then(() => (reusable ? pool.give(block) : undefined));
      // The promise is awaited below; until then its failure must not count as unhandled.
      written.catch(() => undefined);
      inFlight.push(written);
      hash.update(block);
      options.progress?.((tarBytes += block.length));
      if (inFlight.length >= BLOCKS_IN_FLIGHT) await inFlight.shift();
    }
    await Promise.all(inFlight);
    compressor.end();
  } catch (error) {
    compressor.destroy(error as Error);
    throw error;
  }
  return `sha256:${hash.digest('hex')}`;
}

function write(compressor: Duplex, block: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    compressor.write(block, (error) => (error ? reject(error) : resolve()));
  });
}

/** Writes the compressor's output into the file. */
async function store(compressor: Duplex, output: FileHandle): Promise<{ digest: Digest; size: number }> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of compressor as AsyncIterable<Buffer>) {
    hash.update(chunk);
    for (let at = 0; at < chunk.length;) at += (await output.write(chunk, at)).bytesWritten;
    size += chunk.length;
  }
  return { digest: `sha256:${hash.digest('hex')}`, size };
}

export function layerDescriptor(layer: Layer): Descriptor {
  return { mediaType: layer.mediaType, digest: layer.digest, size: layer.size };
}

const OUTPUT_CHUNK_BYTES = 128 * 1024;

function compressorFor(options: LayerOptions): Duplex {
  if (options.compression === 'none') return new PassThrough();
  if (options.compression === 'gzip') return createGzip({ level: options.level ?? 1, chunkSize: OUTPUT_CHUNK_BYTES });
  const params = { [constants.ZSTD_c_compressionLevel]: options.level ?? 3 };
  return createZstdCompress({ chunkSize: OUTPUT_CHUNK_BYTES, params });
}
