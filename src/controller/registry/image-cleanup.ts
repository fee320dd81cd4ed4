// Images of deleted apps, and so of deleted spaces and orgs, go from the in-cluster registry. Its gate knows what is stored, the API server what lives.

import type { RepositoryPage } from '../../lib/api/gate-status.ts';
import { keeperUser, registryPassword } from '../../lib/api/registry-credentials.ts';
import { kinds } from '../../lib/api/group.ts';
import { appOfRepository, setupScope } from '../../lib/api/repositories.ts';
import type { CFApp, CFSpace } from '../../lib/api/types.generated.ts';
import { messageOf } from '../../lib/errors.ts';
import { basicAuthenticator } from '../../lib/oci/auth.ts';
import { directConnection, discard, readUpTo } from '../../lib/oci/http.ts';
import type { HttpSend } from '../../lib/oci/http.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import type { RegistryKeys } from './credentials.ts';

/** There is one registry. */
const onlyKey = '/registry';
/** Between two looks, however much is deleted. */
const pauseMs = 20_000;
const lookAnywayMs = 3_600_000;
const keeperSeconds = 3_600;
const callMs = 60_000;
/** Of a page; the gate's have less than one. */
const mostBytes = 4 * 1024 * 1024;

/** The gate's answers to its keeper. */
export interface ImageKeeper {
  /** The repositories behind `after`, or from the first one on. */
  list(signal: AbortSignal, after?: string): Promise<RepositoryPage>;
  remove(repository: string, signal: AbortSignal): Promise<void>;
}

/** @param send reaches the push port */
export function gateKeeper(send: HttpSend, key: Buffer, nowSeconds: number): ImageKeeper {
  const username = keeperUser(nowSeconds + keeperSeconds);
  const authenticator = basicAuthenticator({ username, password: registryPassword(key, username) }, 'direct');
  const headers = authenticator.headers({ repository: '', actions: 'pull' });
  const ask = async (method: string, path: string, signal: AbortSignal) => {
    const response = await send({ method, path, headers, signal });
    if (response.status < 300 || (method === 'DELETE' && response.status === 404)) return response;
    await discard(response);
    throw new Error(`the registry's gate answers ${method} ${path} with status ${response.status}`);
  };
  return {
    list: async (signal, after) => {
      const { body } = await ask('GET', `/kf/repositories${after === undefined ? '' : `?after=${after}`}`, signal);
      return JSON.parse((await readUpTo(body, mostBytes)).toString()) as RepositoryPage;
    },
    remove: async (repository, signal) => discard(await ask('DELETE', `/kf/repositories/${repository}`, signal)),
  };
}

const repositoryName = /^([a-z0-9][a-z0-9-]{0,62})\/[a-z0-9][a-z0-9._-]{0,254}$/;

/** What is known of the cluster, and what can be asked. */
export interface Living {
  hasApp: (space: string, app: string) => boolean;
  hasSpace: (space: string) => boolean;
  appsOf: (space: string) => Promise<string[]>;
  spaces: () => Promise<string[]>;
}

/**
 * Those repositories whose app is gone, and those with other names, as a push of an earlier version could make them, whose space is gone. What the
 * caches do not know is looked up at the API server, since a cache may be late; a list that fails, as without the kind, ends it all.
 */
export async function orphansOf(repositories: readonly string[], { hasApp, hasSpace, appsOf, spaces }: Living): Promise<string[]> {
  const unknown = new Map<string, { app: string; repository: string }[]>();
  const unnamed: { space: string; repository: string }[] = [];
  for (const repository of repositories) {
    const space = repositoryName.exec(repository)?.[1];
    if (space === undefined || space === setupScope) continue;
    const app = appOfRepository(repository)?.app;
    if (app === undefined) unnamed.push({ space, repository });
    else if (!hasApp(space, app)) unknown.set(space, [...(unknown.get(space) ?? []), { app, repository }]);
  }
  const orphans: string[] = [];
  for (const [space, candidates] of unknown) {
    const living = new Set(await appsOf(space));
    orphans.push(...candidates.filter(({ app }) => !living.has(app)).map(({ repository }) => repository));
  }
  const spaceless = unnamed.filter(({ space }) => !hasSpace(space));
  const living = new Set(spaceless.length === 0 ? [] : await spaces());
  return [...orphans, ...spaceless.filter(({ space }) => !living.has(space)).map(({ repository }) => repository)];
}

/** Page by page: what spaces may hold in all need not fit into memory. Gives back how many repositories went. */
export async function removeOrphans(keeper: ImageKeeper, living: Living, signal: AbortSignal): Promise<number> {
  let removed = 0;
  let page = await keeper.list(signal);
  for (;;) {
    const { repositories, next } = page;
    for (const repository of await orphansOf(repositories, living)) {
      await keeper.remove(repository, signal);
      removed += 1;
    }
    if (next === undefined) return removed;
    page = await keeper.list(signal, next);
  }
}

async function clear(context: Context, key: Buffer, signal: AbortSignal): Promise<number> {
  const connection = directConnection(context.info().registry.pushHost, { insecure: true });
  try {
    const keeper = gateKeeper(connection.send, key, Math.floor(context.now() / 1000));
    const apps = context.stores.of(kinds.app);
    const appsOf = async (ns: string): Promise<string[]> =>
      (await context.cluster.list(kinds.app, { ns, signal })).items.map(({ metadata }) => metadata.name);
    const known = new Set(
      context.stores
        .of(kinds.space)
        .list()
        .map(({ metadata }) => metadata.name),
    );
    const living: Living = {
      hasApp: (space, app) => apps.get(space, app) !== undefined,
      hasSpace: (space) => known.has(space),
      appsOf,
      spaces: async () => (await context.cluster.list(kinds.space, { signal })).items.map(({ metadata }) => metadata.name),
    };
    return await removeOrphans(keeper, living, signal);
  } finally {
    connection.close();
  }
}

/** Looks when apps or spaces change, and now and then. @param keys shared with the reconcilers of spaces and builds */
export function imagesReconciler(keys: RegistryKeys): Reconciler {
  let lookedAt = -Infinity;
  return {
    name: 'images',
    workers: 1,
    watches: [watch<CFApp>(kinds.app, () => [onlyKey]), watch<CFSpace>(kinds.space, () => [onlyKey])],
    reconcile: async (_, context) => {
      const key = await keys.read(context);
      // An outside registry is not ours to clear.
      if (key === undefined) return undefined;
      const left = lookedAt + pauseMs - context.now();
      if (left > 0) return { requeueAfterMs: left };
      const outcome = context.outside('images of deleted apps', callMs, (signal) => clear(context, key, signal));
      if (outcome === undefined) return undefined;
      lookedAt = context.now();
      if (!outcome.ok) context.log.warn('images of deleted apps stay for now', { error: messageOf(outcome.error) });
      else if (outcome.value > 0) context.log.info('removed images of deleted apps', { repositories: outcome.value });
      return { requeueAfterMs: outcome.ok ? lookAnywayMs : pauseMs * 3 };
    },
  };
}
