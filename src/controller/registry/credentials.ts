// Registry credentials of spaces: minted from the gate's key, or copied from the root namespace when the registry is an outside one.

import { secretType } from '../../lib/api/core.ts';
import type { Secret } from '../../lib/api/core.ts';
import { places } from '../../lib/api/group.ts';
import { pullUser, pushUser, registryKeyFields, registryKeySecretName, registryPassword } from '../../lib/api/registry-credentials.ts';
import { pullSecret, pushSecret } from '../../templates/registry-secret.ts';
import type { BasicCredential } from '../../templates/registry-secret.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { ensureSecret } from '../runtime/secrets.ts';
import { defined } from '../../lib/defined.ts';

/**
 * Seconds that a credential lives, and how much of it has to be left; with less it is renewed. A push reads its Secret anew when it is refused. A kubelet
 * may have to pull while the controller is away, so that its credential lives longer.
 */
export const lifetimes = {
  push: { seconds: 3_600, renewBelow: 1_800 },
  pull: { seconds: 72 * 3_600, renewBelow: 60 * 3_600 },
} as const;
const keyTrustMs = 15_000;

export interface RegistryKeys {
  /** The gate's key, or undefined when the installation uses an outside registry. */
  read(context: Context): Promise<Buffer | undefined>;
}

/** Reads the key at most every quarter of a minute: a new one signs soon. */
export function registryKeys(): RegistryKeys {
  let known: { key: Buffer | undefined; at: number } | undefined;
  return {
    read: async (context) => {
      if (known !== undefined && context.now() - known.at < keyTrustMs) return known.key;
      const secret = await context.cluster.get(secretType, context.info().controller.namespace, registryKeySecretName, context.signal);
      const encoded = secret?.data?.[registryKeyFields.current];
      known = { key: encoded === undefined ? undefined : Buffer.from(encoded, 'base64'), at: context.now() };
      return known.key;
    },
  };
}

function mint(key: Buffer, username: string): BasicCredential {
  return { username, password: registryPassword(key, username) };
}

/** A Secret of a space that holds a credential of the in-cluster registry. */
interface Kept {
  lifetime: { seconds: number; renewBelow: number };
  user: (untilSeconds: number) => string;
  secret: (credential: BasicCredential) => Secret;
  /** Where the user's name stands in the Secret's data. */
  userOf: (data: Record<string, string>) => string | undefined;
}

const decoded = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString('utf8');

/** Signed by the key of now, for this space, with time left: exactly what would be written for the end that it names. */
export function isGoodCredential(live: Secret, kept: Kept, key: Buffer, nowSeconds: number): boolean {
  const until = Number(/\.([1-9][0-9]{0,11})$/.exec(kept.userOf(live.data ?? {}) ?? '')?.[1]);
  const { seconds, renewBelow } = kept.lifetime;
  if (!(until - nowSeconds >= renewBelow && until - nowSeconds <= seconds)) return false;
  return isEqual(live.data ?? {}, kept.secret(mint(key, kept.user(until))).data ?? {});
}

function userOfPullSecret(data: Record<string, string>): string | undefined {
  return /"username":"([^"]{1,300})"/.exec(decoded(data['.dockerconfigjson']))?.[1];
}

/** What the controller keeps in a space, each with its own end. */
export function keptCredentials(space: string, pullPrefix: string): Kept[] {
  return [
    {
      lifetime: lifetimes.pull,
      user: (until) => pullUser(space, until),
      secret: (credential) => pullSecret(space, pullPrefix, credential),
      userOf: userOfPullSecret,
    },
    {
      lifetime: lifetimes.push,
      user: (until) => pushUser(space, until),
      secret: (credential) => pushSecret(space, credential),
      userOf: (data) => decoded(data['username']),
    },
  ];
}

/** `image-registry-credentials` and `kf-registry-push` of one space, renewed when they near their end or when another key signs. */
export async function ensureRegistrySecrets(context: Context, keys: RegistryKeys, space: string): Promise<void> {
  const key = await keys.read(context);
  if (key === undefined) {
    await copyRegistrySecrets(context, space);
    return;
  }
  const now = Math.floor(context.now() / 1000);
  for (const kept of keptCredentials(space, context.info().registry.pullPrefix)) {
    const wanted = kept.secret(mint(key, kept.user(now + kept.lifetime.seconds)));
    await ensureSecret(context, wanted, (live) => isGoodCredential(live, kept, key, now));
  }
}

async function copyRegistrySecrets(context: Context, space: string): Promise<void> {
  const { root } = context.info();
  for (const name of [places.pullSecret, places.pushSecret]) {
    const original = await context.cluster.get(secretType, root, name, context.signal);
    if (original === undefined)
      throw new WaitingError(
        'RegistryCredentialsMissing',
        `The registry's credentials are missing: neither the Secret ${registryKeySecretName} nor ${root}/${name} exists.`,
        5_000,
      );
    const { type, data } = original;
    await ensureSecret(context, {
      ...defined({ type, data }),
      ...metadataOf(name, space),
    });
  }
}

function metadataOf(name: string, ns: string): Secret {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: ns, labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } };
}

/** The credential of one build: limited to its app and its time with the gate, else the space's own. */
export async function buildCredential(context: Context, keys: RegistryKeys, space: string, user: string): Promise<BasicCredential> {
  const key = await keys.read(context);
  if (key !== undefined) return mint(key, user);
  const secret = await context.cluster.get(secretType, space, places.pushSecret, context.signal);
  const read = (name: string): string => Buffer.from(secret?.data?.[name] ?? '', 'base64').toString('utf8');
  if (secret === undefined)
    throw new WaitingError('RegistryCredentialsMissing', `The Secret ${places.pushSecret} is not there yet.`, 1_000);
  return { username: read('username'), password: read('password') };
}
