// Which images the installation's registry has lost: its volume may be new, or somebody removed them there.

import type { KfInfo } from '../../api/kf-info.ts';
import { parseReference } from '../../oci/reference.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import { isWhole } from '../../oci/whole.ts';
import type { SpaceSession } from '../../session/session.ts';
import { openSpaceRegistry } from './access.ts';

/** A registry that does not answer in this time keeps no push waiting. */
const timeoutMs = 5_000;

const isIn = ({ pushHost, pullPrefix }: KfInfo['registry'], image: string): boolean =>
  (image.startsWith(`${pushHost}/`) || image.startsWith(pullPrefix)) && image.includes('@');

type InSpace = Pick<SpaceSession, 'cluster' | 'space' | 'signal'>;

export interface Look {
  /** The registry, if it is open already. */
  open?: RegistryClient | undefined;
  /** True: an image of which the config or a layer is missing is lost too. That takes more requests. */
  inside?: boolean;
}

/**
 * Those of the images that the installation's registry says it does not have. The images of other registries are not looked for, and nothing counts as
 * lost when the registry does not answer. What is found is not collected for an hour (decision 76).
 */
export async function lostImages(
  session: InSpace,
  info: KfInfo,
  images: readonly (string | undefined)[],
  look: Look = {},
): Promise<Set<string>> {
  const limited = AbortSignal.any([session.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    return await findLost({ cluster: session.cluster, space: session.space, signal: limited }, info, images, look);
  } catch (error) {
    if (session.signal.aborted) throw error;
    return new Set();
  }
}

/** The same. @throws RegistryError, or that of the connection, when the registry does not say it */
export async function findLost(
  { cluster, space, signal }: InSpace,
  info: KfInfo,
  images: readonly (string | undefined)[],
  { open, inside = false }: Look = {},
): Promise<Set<string>> {
  const own = [...new Set(images)].filter((image) => image !== undefined && isIn(info.registry, image)) as string[];
  if (own.length === 0) return new Set();
  const client = open ?? (await openSpaceRegistry(cluster, info, space.guid, signal));
  const lost = new Set<string>();
  for (const image of own) {
    const { repository, digest = '' } = parseReference(image);
    const isThere = inside
      ? await isWhole(client, repository, digest, signal)
      : (await client.headManifest(repository, digest, signal)) !== undefined;
    if (!isThere) lost.add(image);
  }
  return lost;
}
