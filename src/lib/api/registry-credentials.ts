// Credentials of the in-cluster registry: a scope as user, its HMAC as password, so that the gate needs no store (docs/internals.md).

import { createHash, createHmac } from 'node:crypto';

/** Where and what: Secret `kf-registry-push` of a space and its keys. */
export const pushSecretName = 'kf-registry-push';

/** Secret in the system namespace with the gate's keys: one that signs, and beside it, while keys change, the next and the one before. */
export const registryKeySecretName = 'kf-registry-key';
/** Keys of that Secret. `previous` counts until `previousUntil` (Unix seconds as text), by the gate's clock. */
export const registryKeyFields = { current: 'key', next: 'next', previous: 'previous', previousUntil: 'previous-until' } as const;

/** Reads of one space at the pull port, until a moment (Unix seconds). */
export function pullUser(space: string, untilSeconds: number): string {
  return `pull.${space}.${untilSeconds}`;
}

/** Reads and uploads of one space at the push port, until a moment (Unix seconds). */
export function pushUser(space: string, untilSeconds: number): string {
  return `push.${space}.${untilSeconds}`;
}

/** Reads and uploads of one app's repositories at the push port, until a moment (Unix seconds). */
export function buildUser(space: string, app: string, untilSeconds: number): string {
  return `build.${space}.${app}.${untilSeconds}`;
}

/** The gate's own questions (its state, what it stores) and the removal of what is left of deleted apps, until a moment (Unix seconds). */
export function keeperUser(untilSeconds: number): string {
  return `keeper.${untilSeconds}`;
}

/** Names a key without telling it. */
export function registryKeyId(key: Buffer): string {
  return createHash('sha256').update('kf-registry-key-id').update(key).digest('hex').slice(0, 12);
}

/** Password of a scope: base64url of HMAC-SHA256 over the user's name. */
export function registryPassword(key: Buffer, user: string): string {
  return createHmac('sha256', key).update(user).digest('base64url');
}

/** Value of the `auths` document that a kubelet, the CNB lifecycle and docker read. */
export function dockerConfigJson(host: string, user: string, password: string): string {
  const auth = Buffer.from(`${user}:${password}`).toString('base64');
  return JSON.stringify({ auths: { [host]: { username: user, password, auth } } });
}
