// The keys of the registry's gate in their Secret: created once, changed by `kf rotate registry-key`.

import { randomBytes } from 'node:crypto';
import { secretType, type Secret } from '../../api/core.ts';
import { registryKeyFields, registryKeySecretName } from '../../api/registry-credentials.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { partOfLabel, systemNamespace } from '../../../templates/setup/options.ts';

/** A string, so that it can be read and copied. */
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

/** The signing key; created if it does not exist. */
export async function ensureRegistryKey(cluster: Cluster): Promise<Buffer> {
  const found = await cluster.get(secretType, systemNamespace, registryKeySecretName);
  const present = found?.data?.[registryKeyFields.current];
  if (present !== undefined) return Buffer.from(present, 'base64');
  const key = newRegistryKey();
  await cluster.create(secretType, keySecret({ [registryKeyFields.current]: base64(key) }));
  return Buffer.from(key);
}

/**
 * Replaces the Secret of 0.1.0, which is immutable: it could not be changed, and a kubelet would never read it again. Call it before the gate's
 * pod is replaced. If it ends between the two writes, the next setup makes a new key, and the controller renews all credentials.
 */
export async function openRegistryKey(cluster: Cluster): Promise<void> {
  const found = await cluster.get(secretType, systemNamespace, registryKeySecretName);
  if (found?.immutable !== true) return;
  const { uid } = found.metadata;
  await cluster.delete(secretType, systemNamespace, registryKeySecretName, { uid });
  await cluster.create(secretType, keySecret(found.data ?? {}));
}
