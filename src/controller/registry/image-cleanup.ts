// Removes images that nothing refers to from the in-cluster registry: those of deleted apps, and so of deleted spaces and orgs, and old ones of apps that
// exist. The registry's gate knows which images are stored, the API server knows which objects exist.

import { kinds } from '../../lib/api/group.ts';
import type { ImageReferences } from '../../lib/api/image-references.ts';
import { readImageReferences } from '../../lib/kube/image-references.ts';
import type { Stored } from '../../lib/api/object.ts';
import { appOfRepository, setupScope } from '../../lib/api/repositories.ts';
import type { CFApp, CFSpace } from '../../lib/api/types.generated.ts';
import { messageOf } from '../../lib/errors.ts';
import { gateKeeper, repositoryPages, type GateKeeper } from '../../lib/gate/keeper.ts';
import { directConnection } from '../../lib/oci/http.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import type { RegistryKeys } from './credentials.ts';

/** The reconciler's only key: there is one registry. */
const onlyKey = '/registry';
/** The shortest time between two cleanups, however much is deleted. */
const pauseMs = 20_000;
/** The longest time between two cleanups when nothing changes. */
const intervalMs = 3_600_000;
/** When the next collection comes after one that had to leave something. */
const retryMs = 600_000;
/** What was stored, found by a push or referenced within this time before the references were read stays. */
const keptSeconds = 3_600;
const cleanupTimeoutMs = 600_000;

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

export interface Removed {
  repositories: number;
  /** Repositories that could not be removed now; they must not keep the others. */
  left: number;
  /** Why the last of those could not be removed. */
  error?: string;
}

/** Removes all orphans. */
export async function removeOrphans(keeper: GateKeeper, living: Living, signal: AbortSignal): Promise<Removed> {
  const total: Removed = { repositories: 0, left: 0 };
  for await (const { repositories } of repositoryPages(keeper, signal)) {
    for (const repository of await orphansOf(repositories, living)) {
      try {
        await keeper.remove(repository, signal);
        total.repositories += 1;
      } catch (error) {
        signal.throwIfAborted();
        total.left += 1;
        total.error = `${repository}: ${messageOf(error)}`;
      }
    }
  }
  return total;
}

export interface Collection {
  /** Images that were removed. */
  images: number;
  /** Repositories that could not be collected now: a push used them, or something in them could not be read. */
  left: number;
  /** Why the last of those could not be read. */
  error?: string;
}

/** How far a collection has come. The next one goes on after that repository, so that none whose images take long to read keeps all later ones full. */
export interface Progress {
  after?: string | undefined;
}

/**
 * Removes the old images of the apps that exist.
 * @param references what the objects of a space refer to, by the API server
 * @param progress is kept up to date, and empty when the last repository was reached
 */
export async function collectImages(
  keeper: GateKeeper,
  references: (space: string) => Promise<ImageReferences>,
  signal: AbortSignal,
  progress: Progress = {},
): Promise<Collection> {
  const total: Collection = { images: 0, left: 0 };
  for await (const { now, repositories } of repositoryPages(keeper, signal, progress.after)) {
    const bySpace = Map.groupBy(repositories, (repository) => repositoryName.exec(repository)?.[1] ?? '');
    for (const [space, ofSpace] of bySpace) {
      if (space === '' || space === setupScope) continue;
      const kept = await references(space).catch((error: unknown) => {
        // The next collection skips this space, else it would never come further. A collection that has no time left begins with it.
        if (!signal.aborted) progress.after = ofSpace.at(-1);
        throw error;
      });
      for (const repository of ofSpace) {
        progress.after = repository;
        const request = { keep: [...(kept.get(repository) ?? [])], unusedSince: now - keptSeconds };
        // What cannot be read in one repository must not keep the others full.
        const collected = await keeper.collect(repository, request, signal).catch((error: unknown) => {
          total.error = messageOf(error);
          return { manifests: 0, isUsed: true };
        });
        total.images += collected?.manifests ?? 0;
        total.left += collected?.isUsed === true ? 1 : 0;
      }
    }
  }
  progress.after = undefined;
  return total;
}

interface Cleaned {
  removed: Removed;
  collection?: Collection;
}

interface Collecting {
  isDue: boolean;
  progress: Progress;
}

async function cleanUp(context: Context, key: Buffer, { isDue, progress }: Collecting, signal: AbortSignal): Promise<Cleaned> {
  const connection = directConnection(context.info().registry.pushHost, { insecure: true });
  try {
    const keeper = gateKeeper(connection.send, { key, nowSeconds: Math.floor(context.now() / 1000), via: 'direct' });
    const apps = context.stores.of(kinds.app);
    const knownSpaces = new Set(namesOf(context.stores.of(kinds.space).list()));
    const living: Living = {
      hasApp: (space, app) => apps.get(space, app) !== undefined,
      hasSpace: (space) => knownSpaces.has(space),
      appsOf: async (ns) => namesOf((await context.cluster.list(kinds.app, { ns, signal })).items),
      spaces: async () => namesOf((await context.cluster.list(kinds.space, { signal })).items),
    };
    const removed = await removeOrphans(keeper, living, signal);
    if (!isDue) return { removed };
    const references = (space: string): Promise<ImageReferences> => readImageReferences(context.cluster, space, signal);
    return { removed, collection: await collectImages(keeper, references, signal, progress) };
  } finally {
    connection.close();
  }
}

/** Logs what was done, and returns when the next collection is due. */
function report(context: Context, { removed, collection }: Cleaned): number | undefined {
  if (removed.repositories + removed.left > 0) context.log.info('removed images of deleted apps', { ...removed });
  if (collection === undefined) return undefined;
  if (collection.images + collection.left > 0) context.log.info('removed images that nothing uses', { ...collection });
  return context.now() + (collection.left > 0 ? retryMs : intervalMs);
}

/** Removes orphans when apps or spaces change, and everything that nothing uses every hour. @param keys shared with the reconcilers of spaces and builds */
export function imagesReconciler(keys: RegistryKeys): Reconciler {
  let cleanedAt = -Infinity;
  let collectsAt = -Infinity;
  const progress: Progress = {};
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
      const outcome = context.outside('images that nothing uses', cleanupTimeoutMs, (signal) =>
        cleanUp(context, key, { isDue: context.now() >= collectsAt, progress }, signal),
      );
      if (outcome === undefined) {
        changesBefore ??= changes;
        return undefined;
      }
      // What changed after the cleanup had begun may have come too late for it. The event of such a change and the end of the cleanup can lead to the
      // same one reconcile, so reconciles do not tell.
      const isLate = changes !== changesBefore;
      [changesBefore, cleanedAt] = [undefined, context.now()];
      if (!outcome.ok) {
        context.log.warn('images that nothing uses could not be deleted yet', { error: messageOf(outcome.error) });
        return { requeueAfterMs: pauseMs * 3 };
      }
      collectsAt = report(context, outcome.value) ?? collectsAt;
      const nextMs = outcome.value.removed.left > 0 ? pauseMs * 3 : Math.min(intervalMs, collectsAt - context.now());
      return { requeueAfterMs: isLate ? pauseMs : nextMs };
    },
  };
}
