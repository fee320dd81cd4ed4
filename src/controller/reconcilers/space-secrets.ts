// Registry credentials of spaces: minted from the gate's key, or copied from the root namespace when the registry is an outside one.

import { secretType } from '../../lib/api/core.ts';
import type { Secret } from '../../lib/api/core.ts';
import { places } from '../../lib/api/group.ts';
import { pullUser, pushUser, registryPassword } from '../../lib/api/registry-credentials.ts';
import { pullSecret, pushSecret } from '../../templates/registry-secret.ts';
import type { Credential } from '../../templates/registry-secret.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';

/** Where the key of the in-cluster registry's gate lies. */
export const registryKeySecret = { name: 'kf-registry-key', key: 'key' } as const;
const keyTrustMs = 30_000;

/** Secrets are never watched, so they are looked at again and again; this many looks per second at most, over all of them. */
const looksPerSecond = 4;
const shortestPaceMs = 3_500;

/** How long to wait before the Secrets of one of `owners` objects, `each` per object, are looked at again. */
export function paceMs(owners: number, each: number): number {
  return Math.max(shortestPaceMs, (owners * each * 1_000) / looksPerSecond);
}

export interface RegistryKeys {
  /** The gate's key, or undefined when the installation uses an outside registry. */
  read(context: Context): Promise<Buffer | undefined>;
}

/** Reads the key at most every half minute. */
export function registryKeys(): RegistryKeys {
  let known: { key: Buffer | undefined; at: number } | undefined;
  return {
    read: async (context) => {
      if (known !== undefined && context.now() - known.at < keyTrustMs) return known.key;
      const secret = await context.cluster.get(secretType, context.info().controller.namespace, registryKeySecret.name, context.signal);
      const encoded = secret?.data?.[registryKeySecret.key];
      known = { key: encoded === undefined ? undefined : Buffer.from(encoded, 'base64'), at: context.now() };
      return known.key;
    },
  };
}

/** The Secret as wanted; deleted and made again where its type or its immutability forbids a change. */
export async function ensureSecret(context: Context, wanted: Secret): Promise<Secret> {
  const { namespace, name = '' } = wanted.metadata;
  const { signal } = context;
  const live = await context.cluster.get(secretType, namespace, name, signal);
  if (live === undefined) return createSecret(context, wanted);
  const isSameType = (live.type ?? 'Opaque') === (wanted.type ?? 'Opaque');
  if (isSameType && isEqual(live.data ?? {}, wanted.data ?? {})) return live;
  const { uid = '', resourceVersion = '' } = live.metadata;
  if (!isSameType || live.immutable === true) {
    await context.cluster.delete(secretType, namespace, name, { uid, signal });
    return createSecret(context, wanted);
  }
  // A replacement, not a patch: keys that are wanted no longer have to go.
  return context.cluster.replace(
    secretType,
    { ...live, data: wanted.data ?? {}, metadata: { ...live.metadata, uid, resourceVersion } },
    { signal },
  );
}

async function createSecret(context: Context, wanted: Secret): Promise<Secret> {
  try {
    return await context.cluster.create(secretType, wanted, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    throw new WaitingError('SecretInMotion', `The Secret ${wanted.metadata.name ?? ''} is being replaced.`, 300);
  }
}

function mint(key: Buffer, username: string): Credential {
  return { username, password: registryPassword(key, username) };
}

/** `image-registry-credentials` and `kf-registry-push` of one space. */
export async function ensureRegistrySecrets(context: Context, keys: RegistryKeys, space: string): Promise<void> {
  const key = await keys.read(context);
  const info = context.info();
  if (key === undefined) {
    await copyRegistrySecrets(context, space);
    return;
  }
  await ensureSecret(context, pullSecret(space, info.registry.pullPrefix, mint(key, pullUser(space))));
  await ensureSecret(context, pushSecret(space, mint(key, pushUser(space))));
}

async function copyRegistrySecrets(context: Context, space: string): Promise<void> {
  const { root } = context.info();
  for (const name of [places.pullSecret, places.pushSecret]) {
    const original = await context.cluster.get(secretType, root, name, context.signal);
    if (original === undefined)
      throw new WaitingError(
        'RegistryCredentialsMissing',
        `The registry's credentials are missing: neither the Secret ${registryKeySecret.name} nor ${root}/${name} exists.`,
        5_000,
      );
    const { type, data } = original;
    await ensureSecret(context, {
      ...(type === undefined ? {} : { type }),
      ...(data === undefined ? {} : { data }),
      ...metadataOf(name, space),
    });
  }
}

function metadataOf(name: string, ns: string): Secret {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: ns, labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } };
}

/** The credential of one build: limited to its app and its time with the gate, else the space's own. */
export async function buildCredential(context: Context, keys: RegistryKeys, space: string, user: string): Promise<Credential> {
  const key = await keys.read(context);
  if (key !== undefined) return mint(key, user);
  const secret = await context.cluster.get(secretType, space, places.pushSecret, context.signal);
  const read = (name: string): string => Buffer.from(secret?.data?.[name] ?? '', 'base64').toString('utf8');
  if (secret === undefined)
    throw new WaitingError('RegistryCredentialsMissing', `The Secret ${places.pushSecret} is not there yet.`, 1_000);
  return { username: read('username'), password: read('password') };
}
