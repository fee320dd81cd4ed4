// Removes the images of deleted apps, and so of deleted spaces and orgs, from the in-cluster registry. The registry's gate knows which images are stored,
// the API server knows which apps and spaces exist.

import type { RepositoryPage } from '../../lib/api/gate-status.ts';
import { keeperUser, registryPassword } from '../../lib/api/registry-credentials.ts';
import { kinds } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import { appOfRepository, setupScope } from '../../lib/api/repositories.ts';
import type { CFApp, CFSpace } from '../../lib/api/types.generated.ts';
import { messageOf } from '../../lib/errors.ts';
import { basicAuthenticator } from '../../lib/oci/auth.ts';
import { directConnection, discard, readUpTo } from '../../lib/oci/http.ts';
import type { HttpSend } from '../../lib/oci/http.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import type { RegistryKeys } from './credentials.ts';

/** The reconciler's only key: there is one registry. */
const onlyKey = '/registry';
/** The shortest time between two cleanups, however much is deleted. */
const pauseMs = 20_000;
/** The longest time between two cleanups when nothing changes. */
const intervalMs = 3_600_000;
/** How long the credential of one cleanup is valid. */
const keeperSeconds = 3_600;
const cleanupTimeoutMs = 60_000;
/** The most bytes that are read of a page. The gate's pages have less than a megabyte. */
const mostPageBytes = 4 * 1024 * 1024;

/** Requests of the user `keeper`, which the gate lets list and remove repositories. */
export interface ImageKeeper {
  /** A page of the repositories that follow `after`, or the first page. */
  list(signal: AbortSignal, after?: string): Promise<RepositoryPage>;
  remove(repository: string, signal: AbortSignal): Promise<void>;
}

/** @param send sends a request to the gate's push port */
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
      return JSON.parse((await readUpTo(body, mostPageBytes)).toString()) as RepositoryPage;
    },
    remove: async (repository, signal) => discard(await ask('DELETE', `/kf/repositories/${repository}`, signal)),
  };
}

const namesOf = (objects: readonly Stored[]): string[] => objects.map(({ metadata }) => metadata.name);

const repositoryName = /^([a-z0-9][a-z0-9-]{0,62})\/[a-z0-9][a-z0-9._-]{0,254}$/;

/** Which apps and spaces exist. */
export interface Living {
  /** Whether the cache has the app. */
  hasApp: (space: string, app: string) => boolean;
  /** Whether the cache has the space. */
  hasSpace: (space: string) => boolean;
  /** The space's apps, by the API server. */
  appsOf: (space: string) => Promise<string[]>;
  /** All spaces, by the API server. */
  spaces: () => Promise<string[]>;
}

/**
 * The repositories whose app is gone. A push of an earlier version could give a repository another name, which tells no app: such a one is an orphan when
 * its space is gone. A cache may be late, so the API server is asked for apps and spaces that the caches do not have. When it cannot list them (its kinds
 * may be missing), nothing counts as an orphan: the error is thrown.
 */
export async function orphansOf(repositories: readonly string[], { hasApp, hasSpace, appsOf, spaces }: Living): Promise<string[]> {
  const withUnknownApp = new Map<string, { app: string; repository: string }[]>();
  const withoutApp: { space: string; repository: string }[] = [];
  for (const repository of repositories) {
    const space = repositoryName.exec(repository)?.[1];
    if (space === undefined || space === setupScope) continue;
    const app = appOfRepository(repository)?.app;
    if (app === undefined) withoutApp.push({ space, repository });
    else if (!hasApp(space, app)) withUnknownApp.set(space, [...(withUnknownApp.get(space) ?? []), { app, repository }]);
  }
  const orphans: string[] = [];
  for (const [space, candidates] of withUnknownApp) {
    const living = new Set(await appsOf(space));
    orphans.push(...candidates.filter(({ app }) => !living.has(app)).map(({ repository }) => repository));
  }
  const withUnknownSpace = withoutApp.filter(({ space }) => !hasSpace(space));
  const living = new Set(withUnknownSpace.length === 0 ? [] : await spaces());
  return [...orphans, ...withUnknownSpace.filter(({ space }) => !living.has(space)).map(({ repository }) => repository)];
}

/** Removes all orphans and returns how many there were. Works page by page: the list of all repositories need not fit into memory. */
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

async function cleanUp(context: Context, key: Buffer, signal: AbortSignal): Promise<number> {
  const connection = directConnection(context.info().registry.pushHost, { insecure: true });
  try {
    const keeper = gateKeeper(connection.send, key, Math.floor(context.now() / 1000));
    const apps = context.stores.of(kinds.app);
    const knownSpaces = new Set(namesOf(context.stores.of(kinds.space).list()));
    const living: Living = {
      hasApp: (space, app) => apps.get(space, app) !== undefined,
      hasSpace: (space) => knownSpaces.has(space),
      appsOf: async (ns) => namesOf((await context.cluster.list(kinds.app, { ns, signal })).items),
      spaces: async () => namesOf((await context.cluster.list(kinds.space, { signal })).items),
    };
    return await removeOrphans(keeper, living, signal);
  } finally {
    connection.close();
  }
}

/** Cleans up when apps or spaces change, and every hour. @param keys shared with the reconcilers of spaces and builds */
export function imagesReconciler(keys: RegistryKeys): Reconciler {
  let cleanedAt = -Infinity;
  let changes = 0;
  /** {@link changes} when the cleanup began that runs, or whose outcome was not read yet. */
  let changesBefore: number | undefined;
  const countChange = (): string[] => {
    changes += 1;
    return [onlyKey];
  };
  return {
    name: 'images',
    workers: 1,
    watches: [watch<CFApp>(kinds.app, countChange), watch<CFSpace>(kinds.space, countChange)],
    reconcile: async (_, context) => {
      const key = await keys.read(context);
      // Other users may have images in an outside registry: only the in-cluster one is cleaned up.
      if (key === undefined) return undefined;
      const left = cleanedAt + pauseMs - context.now();
      if (left > 0) return { requeueAfterMs: left };
      const outcome = context.outside('images of deleted apps', cleanupTimeoutMs, (signal) => cleanUp(context, key, signal));
      if (outcome === undefined) {
        changesBefore ??= changes;
        return undefined;
      }
      // What changed after the cleanup had begun may have come too late for it. The event of such a change and the end of the cleanup can lead to the
      // same one reconcile, so reconciles do not tell.
      const isLate = changes !== changesBefore;
      [changesBefore, cleanedAt] = [undefined, context.now()];
      if (!outcome.ok) context.log.warn('images of deleted apps could not be deleted yet', { error: messageOf(outcome.error) });
      else if (outcome.value > 0) context.log.info('removed images of deleted apps', { repositories: outcome.value });
      if (!outcome.ok) return { requeueAfterMs: pauseMs * 3 };
      return { requeueAfterMs: isLate ? pauseMs : intervalMs };
    },
  };
}
