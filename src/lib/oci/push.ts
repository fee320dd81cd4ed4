// Pushes an image of one layer, which is how kf uploads source code.

import { createReadStream } from 'node:fs';
import type { Blob, Digest } from './descriptor.ts';
import { type Image, type ImageConfig, imageFromLayers } from './image.ts';
import type { Layer } from './layer.ts';
import type { RegistryClient } from './registry.ts';
import type { BlobSource, UploadMemory, UploadOptions } from './upload.ts';
import { defined } from '../defined.ts';

export interface PushOptions {
  client: RegistryClient;
  repository: string;
  tag: string;
  layer: Layer;
  annotations?: Record<string, string>;
  /** Default: linux/amd64 without a command, because the image only carries files and is never started. */
  config?: ImageConfig;
  /** A repository of the same registry that may have the layer. */
  mountFrom?: string;
  chunkBytes?: number;
  /** Pauses between tries without progress; see UploadOptions. */
  stallDelaysMs?: number[];
  memory?: UploadMemory;
  progress?: (bytesSent: number, total: number) => void;
  signal?: AbortSignal;
}

export interface PushResult {
  /** Digest of the manifest. */
  digest: Digest;
  /** Layer bytes that were sent; 0 when the registry had them. */
  layerBytesSent: number;
  chunkBytes: number;
}

const FILES_ONLY: ImageConfig = { architecture: 'amd64', os: 'linux' };

/**
 * Pushes layer, config and manifest in this order, because a registry refuses a manifest with missing blobs. Without failures this takes at most 7
 * requests plus one per chunk.
 */
export async function pushSingleLayerImage(options: PushOptions): Promise<PushResult> {
  const { client, repository, tag, layer, signal } = options;
  const image: Image = imageFromLayers({
    layers: [layer],
    config: options.config ?? FILES_ONLY,
    ...defined({ annotations: options.annotations }),
  });
  const upload = await client.putBlob({ ...layerUpload(options), source: fileSource(layer) });
  await client.putBlob({
    repository,
    what: 'the image config',
    source: bufferSource(image.config),
    ...withSignal(signal),
    ...stalls(options),
  });
  await client.putManifest(repository, tag, image.manifest, signal);
  return { digest: image.manifest.descriptor.digest, layerBytesSent: upload.bytesSent, chunkBytes: upload.chunkBytes };
}

function layerUpload(options: PushOptions): Omit<UploadOptions, 'source'> {
  const { repository, mountFrom, chunkBytes, memory, progress, signal } = options;
  return {
    repository,
    what: 'the layer',
    ...defined({ mountFrom, chunkBytes, memory, progress }),
    ...withSignal(signal),
    ...stalls(options),
  };
}

function withSignal(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return defined({ signal });
}

function stalls(options: PushOptions): { stallDelaysMs?: number[] } {
  return defined({ stallDelaysMs: options.stallDelaysMs });
}

const READ_BYTES = 256 * 1024;

/** A layer file as source; chunks are read from disk while they are sent. */
export function fileSource(layer: Layer): BlobSource {
  return {
    digest: layer.digest,
    size: layer.size,
    // `end` of a read stream is inclusive.
    open: (start, end) =>
      start === end ? Buffer.alloc(0) : createReadStream(layer.path, { start, end: end - 1, highWaterMark: READ_BYTES }),
  };
}

export function bufferSource(blob: Blob): BlobSource {
  return {
    digest: blob.descriptor.digest,
    size: blob.bytes.length,
    open: (start, end) => blob.bytes.subarray(start, end),
  };
}
