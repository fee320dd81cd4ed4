// Credentials of the in-cluster registry: the scope is the user name and its HMAC the password, so the gate needs no store (docs/internals.md).

import { createHash, createHmac } from 'node:crypto';

/** Secret `kf-registry-push` of a space. */
export const pushSecretName = 'kf-registry-push';

/** Secret in the system namespace with the gate's keys: the signing one, and during a rotation the next and the previous one. */
export const registryKeySecretName = 'kf-registry-key';
/** Keys of that Secret. `previous` is valid until `previousUntil` (Unix seconds as text), by the gate's clock. */
export const registryKeyFields = { current: 'key', next: 'next', previous: 'previous', previousUntil: 'previous-until' } as const;

/** Reads of one space at the pull port, with an expiry in Unix seconds. */
export function pullUser(space: string, untilSeconds: number): string {
  return `pull.${space}.${untilSeconds}`;
}

/** Reads and uploads of one space at the push port, with an expiry in Unix seconds. */
export function pushUser(space: string, untilSeconds: number): string {
  return `push.${space}.${untilSeconds}`;
}

/** Reads and uploads of one app's repositories at the push port, with an expiry in Unix seconds. */
export function buildUser(space: string, app: string, untilSeconds: number): string {
  return `build.${space}.${app}.${untilSeconds}`;
}

/** Requests for the gate's state and contents, and the removal of the remains of deleted apps, with an expiry in Unix seconds. */
export function keeperUser(untilSeconds: number): string {
  return `keeper.${untilSeconds}`;
}

/** Identifies a key without revealing it. */
export function registryKeyId(key: Buffer): string {
  return createHash('sha256').update('kf-registry-key-id').update(key).digest('hex').slice(0, 12);
}

/** Password of a scope: base64url of HMAC-SHA256 over the user's name. */
export function registryPassword(key: Buffer, user: string): string {
  return createHmac('sha256', key).update(user).digest('base64url');
}

/** The same document with one more registry, or with a new credential of it. @param text what is there, which may be anything */
export function withRegistry(text: string, host: string, user: string, password: string): string {
  const { auths } = JSON.parse(dockerConfigJson(host, user, password)) as DockerConfig;
  return JSON.stringify({ auths: { ...authsIn(text), ...auths } });
}

/** The name of the user for a registry. */
export function userIn(text: string, host: string): string | undefined {
  const username: unknown = (authsIn(text)[host] as { username?: unknown } | null | undefined)?.username;
  return typeof username === 'string' ? username : undefined;
}

/** User and password for a registry. */
export function credentialIn(text: string, host: string): { username: string; password: string } | undefined {
  const { username, password } = (authsIn(text)[host] ?? {}) as { username?: unknown; password?: unknown };
  return typeof username === 'string' && typeof password === 'string' ? { username, password } : undefined;
}

interface DockerConfig {
  auths: Record<string, unknown>;
}

/** A developer may have written the text. */
function authsIn(text: string): DockerConfig['auths'] {
  try {
    const { auths } = JSON.parse(text) as Partial<DockerConfig>;
    return typeof auths === 'object' ? auths : {};
  } catch {
    return {};
  }
}

/** The `auths` document for a kubelet, the CNB lifecycle and docker. */
export function dockerConfigJson(host: string, user: string, password: string): string {
  const auth = Buffer.from(`${user}:${password}`).toString('base64');
  return JSON.stringify({ auths: { [host]: { username: user, password, auth } } });
}
