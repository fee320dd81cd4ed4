// Digests, media types and descriptors of the OCI image specification.

import { createHash } from 'node:crypto';

/** https://github.com/opencontainers/image-spec/blob/v1.1.1/media-types.md, and Docker's names for the same things. */
export const MEDIA_TYPES = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
  layerGzip: 'application/vnd.oci.image.layer.v1.tar+gzip',
  layerZstd: 'application/vnd.oci.image.layer.v1.tar+zstd',
  dockerIndex: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
} as const;

/** `sha256:` and 64 hex digits. */
export type Digest = `sha256:${string}`;

/** https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md; `size` in bytes. */
export interface Descriptor {
  mediaType: string;
  digest: Digest;
  size: number;
  annotations?: Record<string, string>;
  platform?: { architecture: string; os: string; variant?: string };
}

/** A small blob held in memory (a config or a manifest). */
export interface Blob {
  bytes: Buffer;
  descriptor: Descriptor;
}

export function isDigest(text: string): text is Digest {
  return /^sha256:[0-9a-f]{64}$/.test(text);
}

export function digestOf(bytes: Buffer | string): Digest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** JSON without insignificant whitespace, keys in the order given, so that equal values have equal digests. */
export function jsonBlob(mediaType: string, value: unknown): Blob {
  const bytes = Buffer.from(JSON.stringify(value));
  return { bytes, descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length } };
}
