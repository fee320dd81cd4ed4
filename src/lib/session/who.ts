// The user's name from one source for all messages and annotations: the API server's answer, requested once and saved with the target.

import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import { readState, saveState, type TargetState } from './state.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface Who {
  name: string;
  /** Saved by an earlier command; the owner of the credentials may have changed since. */
  isRemembered: boolean;
  /** Why the API server did not report the name; `name` is then the kubeconfig's. */
  cause?: KfError;
}

/** The name that is saved for these credentials, otherwise the one that the API server reports. */
export async function findUser(cluster: Cluster, { user, userOf }: TargetState, signal: AbortSignal): Promise<Who> {
  const kubeconfigUser = cluster.identity.user;
  if (userOf === kubeconfigUser && user !== undefined) return { name: user, isRemembered: true };
  try {
    const name = await cluster.whoAmI(signal);
    return { name: name === '' ? kubeconfigUser : name, isRemembered: false };
  } catch (error) {
    // A user without the right to this request may still have the right to read.
    if (!(error instanceof KfError) || (error.code !== 'forbidden' && error.code !== 'not-found')) throw error;
    return { name: kubeconfigUser, isRemembered: false, cause: error };
  }
}

/** Saves the name with the target of this cluster; without a target nothing is written. */
export function rememberUser(env: Env, cluster: Cluster, user: string): void {
  const { context, server, user: userOf } = cluster.identity;
  const stored = readState(env);
  if (stored.context !== context || stored.server !== server || (stored.user === user && stored.userOf === userOf)) return;
  saveState(env, { ...stored, user, userOf });
}

/** Explains a refusal when the saved name is no longer that of the credentials: the next command uses the new one. */
export async function hintOfOtherUser(env: Env, cluster: Cluster, who: Who, signal: AbortSignal): Promise<string | undefined> {
  if (!who.isRemembered) return undefined;
  const now = await cluster.whoAmI(signal).catch(() => who.name);
  if (now === who.name || now === '') return undefined;
  rememberUser(env, cluster, now);
  return `The API server calls you '${now}' now, and this command still took you for '${who.name}'. The same command again goes on as '${now}'.`;
}
