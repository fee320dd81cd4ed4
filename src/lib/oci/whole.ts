// Whether a registry has all parts of an image: a manifest can be there while a blob that it names is lost.

import { type Digest, isDigest } from './descriptor.ts';
import type { RegistryClient } from './registry.ts';

/** Requests for blobs at a time. */
const mostAtOnce = 8;

type Named = { digest?: unknown } | null | undefined;

/** The blobs that a manifest names; none for an index. */
function blobsIn(bytes: Buffer): Digest[] {
  const { config, layers } = (JSON.parse(bytes.toString()) ?? {}) as { config?: Named; layers?: unknown };
  const named: Named[] = [config, ...(Array.isArray(layers) ? (layers as Named[]) : [])];
  return [...new Set(named.map((one) => String(one?.digest)).filter(isDigest))];
}

/**
 * Whether the registry has the manifest, its config and its layers. The images of an index are not looked for: no build makes an index.
 * @throws RegistryError, or that of the connection, when the registry does not say it
 */
export async function isWhole(client: RegistryClient, repository: string, digest: string, signal: AbortSignal): Promise<boolean> {
  const manifest = await client.getManifest(repository, digest, signal);
  if (manifest === undefined) return false;
  const { default: pLimit } = await import('p-limit');
  const sizes = await pLimit(mostAtOnce).map(blobsIn(manifest.bytes), (blob) => client.headBlob(repository, blob, signal));
  return !sizes.includes(undefined);
}
