// The user's name, from one source for every sentence and for what is written: the API server's answer, asked once and remembered with the target.

import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import { readState, saveState, type TargetState } from './state.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface Who {
  name: string;
  /** Remembered from an earlier command: whoever the credentials belong to may have changed since. */
  isRemembered: boolean;
  /** Why the API server did not tell; `name` is the kubeconfig's then. */
  cause?: KfError;
}

/** The name as it is remembered for these credentials, else as the API server tells it. */
export async function findUser(cluster: Cluster, { user, userOf }: TargetState, signal: AbortSignal): Promise<Who> {
  const kubeconfigUser = cluster.identity.user;
  if (userOf === kubeconfigUser && user !== undefined) return { name: user, isRemembered: true };
  try {
    const name = await cluster.whoAmI(signal);
    return { name: name === '' ? kubeconfigUser : name, isRemembered: false };
  } catch (error) {
    // Who may not even ask that may still read.
    if (!(error instanceof KfError) || (error.code !== 'forbidden' && error.code !== 'not-found')) throw error;
    return { name: kubeconfigUser, isRemembered: false, cause: error };
  }
}

/** Keeps the name beside the target that is stored for this cluster; without one, nothing is written. */
export function rememberUser(env: Env, cluster: Cluster, user: string): void {
  const { context, server, user: userOf } = cluster.identity;
  const stored = readState(env);
  if (stored.context !== context || stored.server !== server || (stored.user === user && stored.userOf === userOf)) return;
  saveState(env, { ...stored, user, userOf });
}

/** What a refusal means when the remembered name is not that of the credentials any more: the next command takes the new one. */
export async function hintOfOtherUser(env: Env, cluster: Cluster, who: Who, signal: AbortSignal): Promise<string | undefined> {
  if (!who.isRemembered) return undefined;
  const now = await cluster.whoAmI(signal).catch(() => who.name);
  if (now === who.name || now === '') return undefined;
  rememberUser(env, cluster, now);
  return `The API server calls you '${now}' now, and this command still took you for '${who.name}'. The same command again goes on as '${now}'.`;
}
