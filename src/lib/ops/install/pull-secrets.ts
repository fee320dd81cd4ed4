// Pull credentials of spaces that must stay valid without the controller, which renews them otherwise.

import { configMapType, secretType } from '../../api/core.ts';
import { kinds, places } from '../../api/group.ts';
import { parseKfInfo } from '../../api/kf-info.ts';
import { pullUser, registryKeyFields, registryKeySecretName, registryPassword } from '../../api/registry-credentials.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { pullSecret } from '../../../templates/registry-secret.ts';
import { rootNamespace, systemNamespace } from '../../../templates/setup/options.ts';

const yearSeconds = 365 * 24 * 3_600;

/**
 * Gives every space a pull credential for a year. Call it when the controller is gone, because it would replace the credential with a short one,
 * as the next setup's controller will. Push credentials simply expire: without a controller nobody pushes.
 * @returns the expiry as Unix seconds; undefined for an outside registry, whose credentials the operator provides
 */
export async function extendPullSecrets(cluster: Cluster, nowMs: number): Promise<number | undefined> {
  const [secret, config] = await Promise.all([
    cluster.get(secretType, systemNamespace, registryKeySecretName),
    cluster.get(configMapType, rootNamespace, places.info),
  ]);
  const [encoded, text] = [secret?.data?.[registryKeyFields.current], config?.data?.['info.json']];
  if (encoded === undefined || text === undefined) return undefined;
  const { pullPrefix } = parseKfInfo(text).registry;
  const until = Math.floor(nowMs / 1000) + yearSeconds;
  const { items } = await cluster.list(kinds.space);
  for (const { metadata } of items) {
    const space = metadata.name;
    // A space that is not ready yet has no credential, and no app.
    if ((await cluster.get(secretType, space, places.pullSecret)) === undefined) continue;
    const username = pullUser(space, until);
    const { data } = pullSecret(space, pullPrefix, { username, password: registryPassword(Buffer.from(encoded, 'base64'), username) });
    await cluster.mergePatch(secretType, space, places.pullSecret, { data });
  }
  return items.length === 0 ? undefined : until;
}
