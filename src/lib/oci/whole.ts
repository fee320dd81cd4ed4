// Whether a registry has all parts of an image: a manifest can be there while a blob that it names is lost.

import { KfError } from '../errors.ts';
import { type Digest, isDigest } from './descriptor.ts';
import type { RegistryClient } from './registry.ts';

/** Requests for blobs at a time. */
const mostAtOnce = 8;

/** A registry takes manifests of any number of layers, and a container has at most 127. */
const mostBlobs = 1_000;

type Named = { digest?: unknown } | null | undefined;

function parsed(bytes: Buffer, image: string): { config?: Named; layers?: unknown } {
  try {
    return (JSON.parse(bytes.toString()) ?? {}) as { config?: Named; layers?: unknown };
  } catch (error) {
    throw new KfError('upload', `The registry sent a manifest of ${image} that is not valid JSON.`, { cause: error });
  }
}

/** The blobs that a manifest names; none for an index. */
function blobsIn(bytes: Buffer, image: string): Digest[] {
  const { config, layers } = parsed(bytes, image);
  const named: Named[] = [config, ...(Array.isArray(layers) ? (layers as Named[]) : [])];
  const blobs = [...new Set(named.map((one) => String(one?.digest)).filter(isDigest))];
  if (blobs.length <= mostBlobs) return blobs;
  throw new KfError('upload', `The manifest of ${image} names ${blobs.length} blobs; kf looks for at most ${mostBlobs}.`);
}

/**
 * Whether the registry has the manifest, its config and its layers. The images of an index are not looked for: no build makes an index.
 * @throws KfError for a manifest that is not one; RegistryError, or that of the connection, when the registry does not say it
 */
export async function isWhole(client: RegistryClient, repository: string, digest: string, signal: AbortSignal): Promise<boolean> {
  const manifest = await client.getManifest(repository, digest, signal);
  if (manifest === undefined) return false;
  const { default: pLimit } = await import('p-limit');
  const sizes = await pLimit(mostAtOnce).map(blobsIn(manifest.bytes, `'${repository}' ${digest}`), (blob) =>
    client.headBlob(repository, blob, signal),
  );
  return !sizes.includes(undefined);
}
