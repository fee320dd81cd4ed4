// Service instances whose credentials are in a Secret that a database operator or a secret store maintains.

import { whyNotFollowed } from '../../api/credentials.ts';
import { secretType } from '../../api/core.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';

/**
 * Reads the Secret before an instance follows it.
 * @returns whether it exists
 * @throws KfError `conflict` for Secrets that no service can have
 */
export async function assertFollowable({ cluster, space, signal }: SpaceSession, name: string): Promise<boolean> {
  const secret = await cluster.get(secretType, space.guid, name, signal);
  const refusal = secret === undefined ? undefined : whyNotFollowed(secret);
  if (refusal === undefined) return secret !== undefined;
  throw new KfError('conflict', `${refusal}.`, { hints: [howToLook(name, space.guid)] });
}

/** @throws KfError as {@link assertFollowable}, and `not-found` */
export async function requireFollowable(session: SpaceSession, name: string): Promise<void> {
  if (await assertFollowable(session, name)) return;
  const { space } = session;
  throw new KfError('not-found', `Secret '${name}' does not exist in space '${space.name}' (namespace ${space.guid}).`, {
    hints: [howToLook(name, space.guid)],
  });
}

/** The user's own rights decide what kubectl shows. */
const howToLook = (name: string, namespace: string): string => `kubectl get secret ${name} -n ${namespace}`;
