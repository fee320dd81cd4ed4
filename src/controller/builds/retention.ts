// Old packages and builds go: the newest five of an app stay, and whatever its current droplet or its next build needs.

import { findCondition } from '../../lib/api/conditions.ts';
import { annotations, conditionTypes, kinds } from '../../lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { neededPackages } from '../../lib/api/packages.ts';
import type { CFApp, CFBuild, CFPackage } from '../../lib/api/types.generated.ts';
import { index, watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { isFinal } from './build.ts';

export const keptPerApp = 5;
/** What is younger stays: the push that made it, or chose it, may not have made it the app's droplet yet. */
const graceMs = 2 * 60_000;
/** A package whose source has not come after so long gets none any more; nothing comes back to look for it before the next change or resync. */
const uploadMs = 24 * 3_600_000;
const byApp = 'retention-by-app';
const appKey = (object: Stored<CFBuild> | Stored<CFPackage>): string => `${object.metadata.namespace}/${object.spec.appRef.name}`;

export const retentionReconciler: Reconciler = {
  name: 'retention',
  workers: 1,
  watches: [
    watch<CFBuild>(kinds.build, (build) => [appKey(build)]),
    watch<CFPackage>(kinds.package, (source) => [appKey(source)]),
    watch<CFApp>(kinds.app),
  ],
  indexes: [index(kinds.build, byApp, (build) => [appKey(build)]), index(kinds.package, byApp, (source) => [appKey(source)])],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const app = context.stores.of(kinds.app).get(ns, name);
    if (app === undefined || app.metadata.deletionTimestamp !== undefined) return undefined;
    const builds = context.stores.of(kinds.build).by(byApp, keyOf(app));
    const packages = context.stores.of(kinds.package).by(byApp, keyOf(app));
    const surplus = surplusOf(app, builds, packages, context.now());
    for (const build of surplus.builds) await remove(context, kinds.build, build);
    for (const source of surplus.packages) await remove(context, kinds.package, source);
    return surplus.waits ? { requeueAfterMs: graceMs } : undefined;
  },
};

const newestFirst = <T extends KubeObject>(objects: readonly T[]): T[] =>
  objects.toSorted((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''));

export interface Surplus {
  builds: Stored<CFBuild>[];
  packages: Stored<CFPackage>[];
  /** More will go once it is old enough. */
  waits: boolean;
}

/** When the object became what it is: a build by its end, a package by its creation. */
function ageMs(object: Stored<CFBuild> | Stored<CFPackage>, now: number): number {
  const ended = findCondition(object, conditionTypes.succeeded)?.lastTransitionTime || object.metadata.creationTimestamp || '';
  return now - Date.parse(ended);
}

const isReady = (source: Stored<CFPackage>): boolean => findCondition(source, conditionTypes.ready)?.status === 'True';

/** What of an app's builds and packages may go. Failed builds are counted apart from droplets, running ones never go. */
export function surplusOf(
  app: Stored<CFApp>,
  builds: readonly Stored<CFBuild>[],
  packages: readonly Stored<CFPackage>[],
  now: number,
): Surplus {
  const current = app.spec.currentDropletRef?.name;
  const pushId = app.metadata.annotations?.[annotations.pushId];
  // The push that has the app may take its time between the build and the switch.
  const isOfPush = ({ metadata }: KubeObject): boolean => pushId !== undefined && metadata.annotations?.[annotations.pushId] === pushId;
  const final = newestFirst(builds.filter((build) => isFinal(build) && build.metadata.deletionTimestamp === undefined));
  const staged = final.filter((build) => build.status?.state === 'STAGED');
  const failed = final.filter((build) => build.status?.state !== 'STAGED');
  const oldBuilds = [...staged.slice(keptPerApp), ...failed.slice(keptPerApp)].filter(
    (build) => build.metadata.name !== current && !isOfPush(build),
  );
  const present = packages.filter((source) => source.metadata.deletionTimestamp === undefined);
  const [ready, empty] = [present.filter(isReady), present.filter((source) => !isReady(source))];
  const going = oldBuilds.filter((build) => ageMs(build, now) > graceMs);
  const inUse = builds.filter((build) => build.metadata.name === current || !isFinal(build));
  const stays = new Set([...neededPackages(app), ...inUse.map((build) => build.spec.packageRef.name)]);
  const mayGo = (source: Stored<CFPackage>): boolean => !stays.has(source.metadata.name) && !isOfPush(source);
  const oldPackages = newestFirst(ready).slice(keptPerApp).filter(mayGo);
  const leaving = oldPackages.filter((source) => ageMs(source, now) > graceMs);
  const abandoned = empty.filter((source) => mayGo(source) && ageMs(source, now) > uploadMs);
  return {
    builds: going,
    packages: [...leaving, ...abandoned],
    waits: going.length < oldBuilds.length || leaving.length < oldPackages.length,
  };
}

async function remove<T extends KubeObject>(context: Context, type: ResourceType<T>, object: T): Promise<void> {
  const { namespace, name = '', uid } = object.metadata;
  if (uid === undefined) return;
  await context.cluster.delete(type, namespace, name, { uid, propagation: 'Background', signal: context.signal });
}
