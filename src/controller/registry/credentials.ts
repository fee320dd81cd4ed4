// Registry credentials of spaces and builds. For the in-cluster registry they are signed with the gate's key; those of an outside registry are copied from
// the root namespace.

import { secretType } from '../../lib/api/core.ts';
import type { Secret } from '../../lib/api/core.ts';
import { labels, places } from '../../lib/api/group.ts';
import { pullUser, pushUser, registryKeyFields, registryKeySecretName, registryPassword } from '../../lib/api/registry-credentials.ts';
import { pullSecret, pushSecret } from '../../templates/registry-secret.ts';
import type { BasicCredential } from '../../templates/registry-secret.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { ensureSecret } from '../runtime/secrets.ts';
import { defined } from '../../lib/defined.ts';

/**
 * Seconds that a credential lives; one that has less than `renewBelow` left is renewed. A push that is refused reads its Secret again. A kubelet may have
 * to pull while the controller is away, so its credential lives longer.
 */
export const lifetimes = {
  push: { seconds: 3_600, renewBelow: 1_800 },
  pull: { seconds: 72 * 3_600, renewBelow: 60 * 3_600 },
} as const;
/** How long a key that was read is used: a new key signs after this time at the latest. */
const keyTrustMs = 15_000;

export interface RegistryKeys {
  /** The gate's key, or undefined when the installation uses an outside registry. */
  read(context: Context): Promise<Buffer | undefined>;
}

/** A reader of the gate's key that asks the API server at most every {@link keyTrustMs}. */
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

function sign(key: Buffer, username: string): BasicCredential {
  return { username, password: registryPassword(key, username) };
}

/** How the controller writes and reads one Secret of a space with a credential of the in-cluster registry. */
interface SpaceCredential {
  lifetime: { seconds: number; renewBelow: number };
  user: (untilSeconds: number) => string;
  secret: (credential: BasicCredential) => Secret;
  /** Reads the user's name from the Secret's data. */
  userOf: (data: Record<string, string>) => string | undefined;
}

const decoded = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString('utf8');

/** Whether a Secret can stay: it has enough time left, and it is what the present key signs for this space and the end that it names. */
export function isGoodCredential(live: Secret, credential: SpaceCredential, key: Buffer, nowSeconds: number): boolean {
  const until = Number(/\.([1-9][0-9]{0,11})$/.exec(credential.userOf(live.data ?? {}) ?? '')?.[1]);
  const left = until - nowSeconds;
  const { seconds, renewBelow } = credential.lifetime;
  const hasTime = left >= renewBelow && left <= seconds;
  return hasTime && isEqual(live.data ?? {}, credential.secret(sign(key, credential.user(until))).data ?? {});
}

function userOfPullSecret(data: Record<string, string>): string | undefined {
  return /"username":"([^"]{1,300})"/.exec(decoded(data['.dockerconfigjson']))?.[1];
}

/** The credentials of a space: the kubelet's for pulls and the developers' for pushes. */
export function spaceCredentials(space: string, pullPrefix: string): SpaceCredential[] {
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

/** Writes `image-registry-credentials` and `kf-registry-push` of one space; renews them before they end and when another key signs. */
export async function ensureRegistrySecrets(context: Context, keys: RegistryKeys, space: string): Promise<void> {
  const key = await keys.read(context);
  if (key === undefined) {
    await copyRegistrySecrets(context, space);
    return;
  }
  const now = Math.floor(context.now() / 1000);
  for (const credential of spaceCredentials(space, context.info().registry.pullPrefix)) {
    const wanted = credential.secret(sign(key, credential.user(now + credential.lifetime.seconds)));
    await ensureSecret(context, wanted, (live) => isGoodCredential(live, credential, key, now));
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
    const metadata = { name, namespace: space, labels: { [labels.managedBy]: 'kf' } };
    await ensureSecret(context, { apiVersion: 'v1', kind: 'Secret', metadata, ...defined({ type, data }) });
  }
}

/** The credential of one build. The in-cluster registry gets one for `user` only; an outside registry gets the space's own. */
export async function buildCredential(context: Context, keys: RegistryKeys, space: string, user: string): Promise<BasicCredential> {
  const key = await keys.read(context);
  if (key !== undefined) return sign(key, user);
  const secret = await context.cluster.get(secretType, space, places.pushSecret, context.signal);
  if (secret === undefined)
    throw new WaitingError('RegistryCredentialsMissing', `The Secret ${places.pushSecret} does not exist yet.`, 1_000);
  return { username: decoded(secret.data?.['username']), password: decoded(secret.data?.['password']) };
}
