// An OCI image layout in one tar file, as `ctr images import` and `skopeo copy oci-archive:` read it.

import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type Descriptor, type Digest, jsonBlob, MEDIA_TYPES } from './descriptor.ts';
import type { Image } from './image.ts';
import { type LayerEntry, tarBlocks } from './tar.ts';

/** Writes one image under `name` (a full reference with tag, e.g. `kf.local/node:24`); containerd takes that name over. */
export async function writeLayout(archivePath: string, image: Image, name: string): Promise<void> {
  await pipeline(tarBlocks(layoutEntries(image, name)), createWriteStream(archivePath));
}

function layoutEntries(image: Image, name: string): LayerEntry[] {
  const manifest: Descriptor = {
    ...image.manifest.descriptor,
    annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name },
  };
  const index = jsonBlob(MEDIA_TYPES.index, { schemaVersion: 2, mediaType: MEDIA_TYPES.index, manifests: [manifest] });
  const blobs = new Map<Digest, Buffer | string>([
    [image.manifest.descriptor.digest, image.manifest.bytes],
    [image.config.descriptor.digest, image.config.bytes],
  ]);
  for (const layer of image.layers) blobs.set(layer.digest, layer.path);
  return [
    { type: 'file', name: 'oci-layout', source: Buffer.from('{"imageLayoutVersion":"1.0.0"}') },
    { type: 'file', name: 'index.json', source: index.bytes },
    { type: 'directory', name: 'blobs' },
    { type: 'directory', name: 'blobs/sha256' },
    ...[...blobs].map(([digest, source]): LayerEntry => ({ type: 'file', name: `blobs/sha256/${digest.slice('sha256:'.length)}`, source })),
  ];
}
