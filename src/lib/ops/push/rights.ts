// Checks the rights that a push needs before work begins.

import { randomUUID } from 'node:crypto';
import { kinds, places } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { isInClusterRegistry, repositoryPath } from '../../api/repositories.ts';
import { assertAccess } from '../../kube/access.ts';
import type { AccessQuestion } from '../../kube/cluster.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import { RegistryError } from '../../oci/errors.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import type { SpaceSession } from '../../session/session.ts';
import { openSpaceRegistry, withNamedRegistry } from '../registry/access.ts';

const { group } = kinds.app;

const creates = (plural: string, ns: string): AccessQuestion => ({ verb: 'create', group, resource: plural, ns });

const uploads = ({ registry }: KfInfo): AccessQuestion => ({
  verb: 'create',
  resource: 'services',
  subresource: 'proxy',
  ns: registry.namespace,
  name: `http:${places.registryService}:${registry.port}`,
});

/** For a new build of an existing app. @throws KubeError `forbidden` naming the missing right */
export function assertMayBuild(session: SpaceSession, info: KfInfo, plan: AppPlan): Promise<void> {
  const build = creates(kinds.build.plural, session.space.guid);
  return assertAccess(session.cluster, plan.lifecycle === 'docker' ? [build] : [build, uploads(info)], session.signal);
}

/** For a new app: one request for the space. @param builds false: only its settings. @throws KubeError `forbidden` naming the missing right */
export function assertMayPush(session: SpaceSession, plan: AppPlan, builds = true): Promise<void> {
  const ns = session.space.guid;
  const { app, build, package: source, process, route, serviceBinding } = kinds;
  const parts = builds ? [app, build, source, process] : [app, process];
  const plurals = [...parts, ...(plan.noRoute ? [] : [route]), ...(plan.services.length === 0 ? [] : [serviceBinding])];
  return assertAccess(
    session.cluster,
    plurals.map(({ plural }) => creates(plural, ns)),
    session.signal,
  );
}

/**
 * Tests the installation's own registry with one request: it is running, accepts the space's credential, and the user may reach it. The request is
 * the one that begins an upload, for a repository that does not exist.
 * @throws KubeError `forbidden`, KfError `upload` when the registry does not answer, RegistryError
 */
export async function openRegistry(session: SpaceSession, info: KfInfo): Promise<RegistryClient> {
  const { cluster, space, signal } = session;
  const client = await openSpaceRegistry(cluster, info, space.guid, signal);
  // Outside registries give different answers for a repository that does not exist yet.
  if (!isInClusterRegistry(info.registry)) return client;
  const repository = repositoryPath(info.registry, space.guid, randomUUID(), 'packages');
  try {
    await withNamedRegistry(info, () => client.headManifest(repository, 'latest', signal), 'Push again when it answers.');
  } catch (error) {
    // The refusal of the API server's proxy looks like the registry's own.
    if (error instanceof RegistryError && error.answer.status === 403) await assertAccess(cluster, [uploads(info)], signal);
    throw error;
  }
  return client;
}
