// The repositories of an app's images: the same path behind the push port (CLI and builds) and behind the kubelet's pull prefix
// (docs/internals.md).

import type { KfInfo } from './kf-info.ts';

export type ImageKind = 'packages' | 'droplets' | 'cache';
type Registry = Pick<KfInfo['registry'], 'pushHost' | 'pullPrefix'>;

/** Replaces the space when setup tests the registry; no space can have this name. */
export const setupScope = 'kf-setup';

const ofApp = /^([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9.-]{0,252})-(packages|droplets|cache)$/;

/** The app of a repository of the in-cluster registry; undefined when the name is not one of kf's. */
export function appOfRepository(repository: string): { space: string; app: string } | undefined {
  const [, space, app] = ofApp.exec(repository) ?? [];
  return space === undefined || app === undefined ? undefined : { space, app };
}

/** Path within the registry: `<prefix><space>/<app>-<kind>`; an in-cluster registry has no prefix. */
export function repositoryPath(registry: Registry, space: string, app: string, kind: ImageKind): string {
  const slash = registry.pullPrefix.indexOf('/');
  return `${slash < 0 ? '' : registry.pullPrefix.slice(slash + 1)}${space}/${app}-${kind}`;
}

/** The repository for pods and the CLI: for uploads, and for reads of builds. */
export function pushRepository(registry: Registry, space: string, app: string, kind: ImageKind): string {
  return `${registry.pushHost}/${repositoryPath(registry, space, app, kind)}`;
}

/** The repository for the kubelet. */
export function pullRepository(registry: Registry, space: string, app: string, kind: ImageKind): string {
  return `${registry.pullPrefix.split('/', 1)[0] ?? ''}/${repositoryPath(registry, space, app, kind)}`;
}

/** Turns a reference below the pull prefix into one for the push port; undefined for other references. */
export function pushReference(registry: Registry, image: string): string | undefined {
  if (!image.startsWith(registry.pullPrefix)) return undefined;
  return `${registry.pushHost}/${image.slice(image.indexOf('/') + 1)}`;
}

/** True for the in-cluster registry, which uses plain HTTP within the cluster. */
export function isInClusterRegistry(registry: Pick<Registry, 'pushHost'>): boolean {
  return /\.svc(:\d+)?$/.test(registry.pushHost);
}

/** All registries that builds reach over plain HTTP. */
export function insecureRegistries(info: Pick<KfInfo, 'registry' | 'builder'>): string[] {
  const named = info.builder.insecureRegistries ?? [];
  const own = isInClusterRegistry(info.registry) ? [info.registry.pushHost] : [];
  return [...new Set([...own, ...named])];
}
