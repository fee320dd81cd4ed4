// api, auth, login, logout: choose the context and the kubeconfig user of the next commands. kf keeps no credentials of its own.

import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { readKubeconfig } from '../../kube/kubeconfig.ts';
import type { Session } from '../../session/session.ts';
import { readState, saveState, withoutStateHint, type TargetState } from '../../session/state.ts';

type Env = Readonly<Record<string, string | undefined>>;

const withoutSlash = (url: string): string => url.replace(/\/$/, '');

/** True for the URL itself. As in cf, a text without a scheme means https; a host alone also fits a server with another port. */
function isServer(server: string, given: string): boolean {
  const url = URL.parse(server);
  if (given.includes('://') || url === null) return withoutSlash(server) === withoutSlash(given);
  const wanted = withoutSlash(given).toLowerCase();
  return url.protocol === 'https:' && (url.host === wanted || url.hostname === wanted || withoutSlash(server) === `https://${wanted}`);
}

/** The context of that name, or the first one whose cluster has that URL or host. @throws KfError `usage` naming the existing ones */
export async function contextFor(env: Env, nameOrUrl: string): Promise<string> {
  const config = await readKubeconfig({ env });
  if (config.contexts.has(nameOrUrl)) return nameOrUrl;
  const byUrl = [...config.contexts].find(([, { cluster }]) => {
    const server = config.clusters.get(cluster)?.server;
    return server !== undefined && isServer(server, nameOrUrl);
  });
  if (byUrl !== undefined) return byUrl[0];
  const names = [...config.contexts.keys()].map((name) => `'${name}'`).join(', ');
  throw new KfError(
    'usage',
    `The kubeconfig has neither a context nor a cluster '${nameOrUrl}'. Contexts: ${names === '' ? 'none' : names}.`,
    {
      hints: ['kubectl config get-contexts'],
    },
  );
}

/** Deletes the saved context, org, space and user. @throws KfError `failed` when the state cannot be written */
export function forgetTarget(env: Env): void {
  const problem = saveState(env, {});
  if (problem !== undefined) throw new KfError('failed', problem, { hints: [withoutStateHint] });
}

/** Forgets the chosen user, org and space, and keeps the cluster, as cf does. Returns the user's name if it was known. */
export function logOut(env: Env): { user?: string } {
  const { context, server, user } = readState(env);
  const problem = saveState(env, defined({ context, server }));
  if (problem !== undefined) throw new KfError('failed', problem, { hints: [withoutStateHint] });
  return defined({ user });
}

/** What stays of the stored target: never org and space, as in cf, and of another cluster nothing. */
function withoutPlace(
  { org: _org, space: _space, ...stored }: TargetState,
  { identity: { context, server } }: Session['cluster'],
): TargetState {
  return stored.context === context && stored.server === server ? stored : { context, server };
}

/** Saves the session's context; org and space are deleted, as in cf. */
export function pinContext(session: Session): void {
  const { user, userOf } = session.state;
  const kept = withoutPlace(readState(session.env), session.cluster);
  session.save({ ...kept, ...(user === undefined || userOf === undefined ? {} : { user, userOf }) });
}

/** Uses another user of the kubeconfig from now on, after the API server has accepted it; org and space are deleted, as in cf. Returns its name there. */
export async function chooseUser(session: Session, kubeconfigUser: string): Promise<string> {
  const user = await session.cluster.whoAmI(session.signal);
  session.save({ ...withoutPlace(readState(session.env), session.cluster), kubeconfigUser, user, userOf: kubeconfigUser });
  return user;
}
