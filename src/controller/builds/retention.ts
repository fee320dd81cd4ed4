// Deletes old packages and builds of an app. The newest five stay, and so does what the current droplet, the newest revisions or the next build need.

import { findCondition } from '../../lib/api/conditions.ts';
import { annotations, conditionTypes, kinds } from '../../lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { neededPackages } from '../../lib/api/packages.ts';
import type { CFApp, CFBuild, CFPackage } from '../../lib/api/types.generated.ts';
import { buildsByApp, byAge } from '../relations.ts';
import { index, watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { isFinal } from './build.ts';

export const keptPerApp = 5;
/** Younger builds and packages are never deleted: the push that made or chose one may not have made it the app's droplet yet. */
const graceMs = 2 * 60_000;
/** A package without its source is deleted after this time. No requeue waits for that: the next change of the app, or a resync, finds it. */
const uploadMs = 24 * 3_600_000;
const packagesByApp = 'app';
const appKey = (object: Stored<CFBuild> | Stored<CFPackage>): string => `${object.metadata.namespace}/${object.spec.appRef.name}`;

export const retentionReconciler: Reconciler = {
  name: 'retention',
  workers: 1,
  watches: [
    watch<CFBuild>(kinds.build, (build) => [appKey(build)]),
    watch<CFPackage>(kinds.package, (source) => [appKey(source)]),
    watch<CFApp>(kinds.app),
  ],
  indexes: [buildsByApp, index(kinds.package, packagesByApp, (source) => [appKey(source)])],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const app = context.stores.of(kinds.app).get(ns, name);
    if (app === undefined || app.metadata.deletionTimestamp !== undefined) return undefined;
    const builds = context.stores.of(kinds.build).by(buildsByApp.name, keyOf(app));
    const packages = context.stores.of(kinds.package).by(packagesByApp, keyOf(app));
    const surplus = surplusOf(app, builds, packages, context.now());
    // The cache may not have the droplet yet that somebody has just set.
    const current = surplus.builds.length === 0 ? undefined : await context.cluster.get(kinds.app, ns, name, context.signal);
    const kept = current === undefined ? [] : keptDroplets(current);
    for (const build of surplus.builds) if (!kept.includes(build.metadata.name)) await remove(context, kinds.build, build);
    for (const source of surplus.packages) await remove(context, kinds.package, source);
    return surplus.waits ? { requeueAfterMs: graceMs } : undefined;
  },
};

/** The current droplet, and those to which a rollback can return. */
const keptDroplets = ({ spec, status }: CFApp): string[] => [spec.currentDropletRef?.name ?? '', ...(status?.revision?.droplets ?? [])];

const newestFirst = <T extends Stored>(objects: readonly T[]): T[] => objects.toSorted((a, b) => byAge(b, a));

export interface Surplus {
  builds: Stored<CFBuild>[];
  packages: Stored<CFPackage>[];
  /** True when more will be deleted as soon as it is old enough. */
  waits: boolean;
}

/** Milliseconds since a build ended, or since a package was created. */
function ageMs(object: Stored<CFBuild> | Stored<CFPackage>, now: number): number {
  const since = findCondition(object, conditionTypes.succeeded)?.lastTransitionTime || object.metadata.creationTimestamp || '';
  return now - Date.parse(since);
}

const isReady = (source: Stored<CFPackage>): boolean => findCondition(source, conditionTypes.ready)?.status === 'True';

/** The builds and packages of an app that are to be deleted. Droplets and failed builds are counted separately; running builds always stay. */
export function surplusOf(
  app: Stored<CFApp>,
  builds: readonly Stored<CFBuild>[],
  packages: readonly Stored<CFPackage>[],
  now: number,
): Surplus {
  const current = app.spec.currentDropletRef?.name;
  const pushId = app.metadata.annotations?.[annotations.pushId];
  // A push that is under way may switch the app to its build only long after the build has ended.
  const isOfPush = ({ metadata }: KubeObject): boolean => pushId !== undefined && metadata.annotations?.[annotations.pushId] === pushId;
  const final = newestFirst(builds.filter((build) => isFinal(build) && build.metadata.deletionTimestamp === undefined));
  const staged = final.filter((build) => build.status?.state === 'STAGED');
  const failed = final.filter((build) => build.status?.state !== 'STAGED');
  const kept = new Set(keptDroplets(app));
  const oldBuilds = [...staged.slice(keptPerApp), ...failed.slice(keptPerApp)].filter(
    (build) => !kept.has(build.metadata.name) && !isOfPush(build),
  );
  const present = packages.filter((source) => source.metadata.deletionTimestamp === undefined);
  const [ready, empty] = [present.filter(isReady), present.filter((source) => !isReady(source))];
  const isPastGrace = (object: Stored<CFBuild> | Stored<CFPackage>): boolean => ageMs(object, now) > graceMs;
  const surplusBuilds = oldBuilds.filter(isPastGrace);
  const inUse = builds.filter((build) => build.metadata.name === current || !isFinal(build));
  const needed = new Set([...neededPackages(app), ...inUse.map((build) => build.spec.packageRef.name)]);
  const mayGo = (source: Stored<CFPackage>): boolean => !needed.has(source.metadata.name) && !isOfPush(source);
  const oldPackages = newestFirst(ready).slice(keptPerApp).filter(mayGo);
  const surplusPackages = oldPackages.filter(isPastGrace);
  const abandoned = empty.filter((source) => mayGo(source) && ageMs(source, now) > uploadMs);
  return {
    builds: surplusBuilds,
    packages: [...surplusPackages, ...abandoned],
    waits: surplusBuilds.length < oldBuilds.length || surplusPackages.length < oldPackages.length,
  };
}

async function remove(context: Context, type: ResourceType, object: Stored<CFBuild> | Stored<CFPackage>): Promise<void> {
  const { namespace, name, uid } = object.metadata;
  await context.cluster.delete(type, namespace, name, { uid, propagation: 'Background', signal: context.signal });
}
