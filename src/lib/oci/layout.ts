// An OCI image layout in one tar file, as `ctr images import` and `skopeo copy oci-archive:` read it.

import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type Descriptor, type Digest, jsonBlob, MEDIA_TYPES } from './descriptor.ts';
import type { Image } from './image.ts';
import { type LayerEntry, tarBlocks } from './tar.ts';

/** An image and its full reference with tag, e.g. `kf.local/node:24`; containerd uses that name. */
export interface NamedImage {
  image: Image;
  name: string;
}

/** Writes one image under `name`. */
export function writeLayout(archivePath: string, image: Image, name: string): Promise<void> {
  return writeLayouts(archivePath, [{ image, name }]);
}

/** Writes several images into one archive; a common layer is written once. */
export async function writeLayouts(archivePath: string, images: NamedImage[]): Promise<void> {
  await pipeline(tarBlocks(layoutEntries(images)), createWriteStream(archivePath));
}

function layoutEntries(images: NamedImage[]): LayerEntry[] {
  const manifests = images.map(({ image, name }): Descriptor => ({
    ...image.manifest.descriptor,
    annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name },
  }));
  const index = jsonBlob(MEDIA_TYPES.index, { schemaVersion: 2, mediaType: MEDIA_TYPES.index, manifests });
  const blobs = new Map<Digest, Buffer | string>();
  for (const { image } of images) {
    for (const blob of [image.manifest, image.config]) blobs.set(blob.descriptor.digest, blob.bytes);
    for (const layer of image.layers) blobs.set(layer.digest, layer.path);
  }
  return [
    { type: 'file', name: 'oci-layout', source: Buffer.from('{"imageLayoutVersion":"1.0.0"}') },
    { type: 'file', name: 'index.json', source: index.bytes },
    { type: 'directory', name: 'blobs' },
    { type: 'directory', name: 'blobs/sha256' },
    ...[...blobs].map(([digest, source]): LayerEntry => ({ type: 'file', name: `blobs/sha256/${digest.slice('sha256:'.length)}`, source })),
  ];
}
