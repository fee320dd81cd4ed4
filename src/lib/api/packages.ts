// Decides which package of an app is built next: the one that was pushed last, whether it waits for its first build or not. The app's annotations
// name it. Tenants can write them, so a name counts only if it is one of the app's packages.

import { annotations } from './group.ts';
import type { CFApp, CFPackage } from './types.generated.ts';

/** Packages of the app whose source is uploaded, newest first. @param packages of the app's namespace */
export function packagesOf<P extends CFPackage>(app: CFApp, packages: readonly P[]): P[] {
  return packages
    .filter(({ metadata, spec }) => metadata.deletionTimestamp === undefined && spec.appRef.name === app.metadata.name)
    .filter(({ spec }) => (spec.source?.registry.image ?? '') !== '')
    .toSorted((a, b) => compare(b.metadata.creationTimestamp, a.metadata.creationTimestamp) || compare(b.metadata.name, a.metadata.name));
}

/** Value of annotation `package` after a push of `chosen`; null when it is the newest package, which needs no annotation. */
export function packageMark(chosen: string, newestFirst: readonly CFPackage[]): string | null {
  const newest = newestFirst[0]?.metadata.name ?? chosen;
  return newest === chosen ? null : `${chosen}/${newest}`;
}

/** Value of annotation `unstaged` after a push of `chosen` without a build. */
export function unstagedMark(chosen: string, app: CFApp): string {
  return `${chosen}/${dropletOf(app)}`;
}

/**
 * Value of annotation `unstaged` when `droplet`, made again of package `built`, replaces the app's droplet: another package that waits goes on
 * waiting.
 */
export function waitingMark(app: CFApp, { built, droplet }: { built: string; droplet: string }): string | null {
  const { waiting } = unstaged(app);
  return isUnstaged(app) && waiting !== built ? `${waiting}/${droplet}` : null;
}

/** True when the next start builds this package. */
export function isAwaited(guid: string, app: CFApp): boolean {
  return isUnstaged(app) && unstaged(app).waiting === guid;
}

/** True when a package was pushed and not built since; the next start builds it. Setting another droplet ends this state. */
export function isUnstaged(app: CFApp): boolean {
  const { waiting, droplet } = unstaged(app);
  return waiting !== '' && droplet === dropletOf(app);
}

/**
 * The package for start, restart and restage: the newest one, or the older one that was pushed again if no newer one came since. @param
 * newestFirst as {@link packagesOf} returns them
 */
export function packageToBuild<P extends CFPackage>(app: CFApp, newestFirst: readonly P[]): P | undefined {
  const [newest] = newestFirst;
  const { chosen, newestThen } = pushedAgain(app);
  return newest?.metadata.name === newestThen ? (named(chosen, newestFirst) ?? newest) : newest;
}

/** Names of packages that the app will need again, according to its annotations. */
export function neededPackages(app: CFApp): string[] {
  return [unstaged(app).waiting, pushedAgain(app).chosen].filter((name) => name !== '');
}

/** Annotation `package`: the package that was pushed again, and the newest one at that time. */
function pushedAgain(app: CFApp): { chosen: string; newestThen: string } {
  const [chosen = '', newestThen = ''] = (app.metadata.annotations?.[annotations.package] ?? '').split('/');
  return { chosen, newestThen };
}

/** Annotation `unstaged`: the waiting package, and the droplet at that time. */
function unstaged(app: CFApp): { waiting: string; droplet: string } {
  const [waiting = '', droplet = ''] = (app.metadata.annotations?.[annotations.unstaged] ?? '').split('/');
  return { waiting, droplet };
}

const dropletOf = ({ spec }: CFApp): string => spec.currentDropletRef?.name ?? '';
const named = <P extends CFPackage>(name: string, packages: readonly P[]): P | undefined =>
  packages.find(({ metadata }) => metadata.name === name);
const compare = (a = '', b = ''): number => (a < b ? -1 : a > b ? 1 : 0);
