// Fetches a source image in the build: manifest by digest, then its layers, verified and unpacked.

import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';
import { isDigest } from '../oci/descriptor.ts';
import type { Manifest } from '../oci/image.ts';
import type { RegistryClient } from '../oci/registry.ts';
import { extractLayer, type ExtractResult } from './extract.ts';

export interface FetchOptions {
  client: RegistryClient;
  repository: string;
  /** Digest of the manifest. With a tag, the source could change during a build. */
  digest: string;
  /** Real path of an existing, empty folder. */
  target: string;
  signal?: AbortSignal;
}

/** Throws KfError `not-found` when the image is gone, `upload` for everything else. */
export async function fetchSource(options: FetchOptions): Promise<ExtractResult> {
  const { client, repository, digest, target, signal } = options;
  if (!isDigest(digest)) throw new KfError('usage', `The source image is named by '${digest}', which is not a digest.`);
  const found = await client.getManifest(repository, digest, signal);
  if (!found) throw new KfError('not-found', `The source image '${repository}@${digest}' is not in the registry.`);
  const { layers } = JSON.parse(found.bytes.toString()) as Manifest;
  const total: ExtractResult = { files: 0, bytes: 0 };
  for (const layer of layers) {
    const body = await client.getBlob(repository, layer.digest, signal);
    const part = await extractLayer(body, { mediaType: layer.mediaType, target, ...defined({ signal }) });
    total.files += part.files;
    total.bytes += part.bytes;
  }
  return total;
}
