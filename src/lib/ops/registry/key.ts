// The keys of the registry's gate in their Secret: created once, changed by `kf rotate registry-key`.

import { randomBytes } from 'node:crypto';
import { secretType, type Secret } from '../../api/core.ts';
import type { Stored } from '../../api/object.ts';
import { registryKeyFields, registryKeySecretName } from '../../api/registry-credentials.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import { partOfLabel, systemNamespace } from '../../../templates/setup/options.ts';

/** A new signing key: 32 random bytes as text, so that it can be read and copied. */
export const newRegistryKey = (): string => randomBytes(32).toString('hex');

function keySecret(data: Record<string, string>): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: registryKeySecretName, namespace: systemNamespace, labels: { [partOfLabel]: 'setup' } },
    type: 'Opaque',
    data,
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

const readSecret = (cluster: Cluster): Promise<Stored<Secret> | undefined> =>
  cluster.get(secretType, systemNamespace, registryKeySecretName);

/** The key in the Secret. @throws KfError when it is missing or empty: everybody can sign with an empty key */
function keyIn({ data }: Secret): Buffer {
  const key = Buffer.from(data?.[registryKeyFields.current] ?? '', 'base64');
  if (key.length > 0) return key;
  const secret = `${systemNamespace}/${registryKeySecretName}`;
  throw new KfError('failed', `The Secret '${secret}' has no '${registryKeyFields.current}'.`, {
    hints: [`kubectl -n ${systemNamespace} delete secret ${registryKeySecretName}`, 'kf setup'],
  });
}

/** The signing key; created if it does not exist. @throws KfError when the Secret has none */
export async function ensureRegistryKey(cluster: Cluster): Promise<Buffer> {
  const found = await readSecret(cluster);
  if (found !== undefined) return keyIn(found);
  try {
    return keyIn(await cluster.create(secretType, keySecret({ [registryKeyFields.current]: base64(newRegistryKey()) })));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    // Another setup was faster: its key counts.
    const other = await readSecret(cluster);
    if (other === undefined) throw error;
    return keyIn(other);
  }
}

/**
 * Replaces the immutable Secret of 0.1.0 by one that `kf rotate registry-key` can change and the kubelet reads again. Call it before the gate's
 * pod is replaced. If setup is interrupted between the two writes, the next setup makes a new key, and the controller renews all credentials.
 */
export async function replaceImmutableKeySecret(cluster: Cluster): Promise<void> {
  const found = await readSecret(cluster);
  if (found?.immutable !== true) return;
  const { uid } = found.metadata;
  await cluster.delete(secretType, systemNamespace, registryKeySecretName, { uid });
  await cluster.create(secretType, keySecret(found.data ?? {}));
}
