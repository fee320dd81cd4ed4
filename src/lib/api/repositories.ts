// Where an app's images lie: the same path behind the push port (CLI and builds) and behind the prefix that the kubelet pulls (docs/internals.md).

import type { KfInfo } from './kf-info.ts';

export type ImageKind = 'packages' | 'droplets' | 'cache';
type Registry = Pick<KfInfo['registry'], 'pushHost' | 'pullPrefix'>;

/** In place of a space where setup tries the registry; no space can have this name. */
export const setupScope = 'kf-setup';

const ofApp = /^([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9.-]{0,252})-(packages|droplets|cache)$/;

/** Whose repository of the in-cluster registry this is; undefined where its name is not one that kf gives. */
export function appOfRepository(repository: string): { space: string; app: string } | undefined {
  const [, space, app] = ofApp.exec(repository) ?? [];
  return space === undefined || app === undefined ? undefined : { space, app };
}

/** Path within the registry: `<prefix><space>/<app>-<kind>`; an in-cluster registry has no prefix. */
export function repositoryPath(registry: Registry, space: string, app: string, kind: ImageKind): string {
  const slash = registry.pullPrefix.indexOf('/');
  return `${slash < 0 ? '' : registry.pullPrefix.slice(slash + 1)}${space}/${app}-${kind}`;
}

/** The repository as pods and the CLI reach it, for uploads and for reads of builds. */
export function pushRepository(registry: Registry, space: string, app: string, kind: ImageKind): string {
  return `${registry.pushHost}/${repositoryPath(registry, space, app, kind)}`;
}

/** The repository as the kubelet pulls it. */
export function pullRepository(registry: Registry, space: string, app: string, kind: ImageKind): string {
  return `${registry.pullPrefix.split('/', 1)[0] ?? ''}/${repositoryPath(registry, space, app, kind)}`;
}

/** A reference below the pull prefix as the push port knows it; undefined when it lies elsewhere. */
export function pushReference(registry: Registry, image: string): string | undefined {
  if (!image.startsWith(registry.pullPrefix)) return undefined;
  return `${registry.pushHost}/${image.slice(image.indexOf('/') + 1)}`;
}

/** True for the in-cluster registry, which speaks plain HTTP within the cluster. */
export function isInClusterRegistry(registry: Pick<Registry, 'pushHost'>): boolean {
  return /\.svc(:\d+)?$/.test(registry.pushHost);
}

/** All registries that builds ask over plain HTTP. */
export function insecureRegistries(info: Pick<KfInfo, 'registry' | 'builder'>): string[] {
  const named = info.builder.insecureRegistries ?? [];
  const own = isInClusterRegistry(info.registry) ? [info.registry.pushHost] : [];
  return [...new Set([...own, ...named])];
}
