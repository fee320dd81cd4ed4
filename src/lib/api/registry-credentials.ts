// Credentials of the in-cluster registry: a scope as user, its HMAC as password, so that the gate needs no store (docs/internals.md).

import { createHmac } from 'node:crypto';

/** Where and what: Secret `kf-registry-push` of a space and its keys. */
export const pushSecretName = 'kf-registry-push';

/** Reads of one space at the pull door. */
export function pullUser(space: string): string {
  return `pull.${space}`;
}

/** Reads and uploads of one space at the push door. */
export function pushUser(space: string): string {
  return `push.${space}`;
}

/** Reads and uploads of one app's repositories at the push door, until a moment (Unix seconds). */
export function buildUser(space: string, app: string, untilSeconds: number): string {
  return `build.${space}.${app}.${untilSeconds}`;
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
