// A build as the CLI asks for it, and its pod as the Job controller and the kubelet run it, on a cluster in memory.

import { expect } from 'vitest';
import { jobType, namespaceType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { ContainerState } from '../../../src/lib/api/pod.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import type { CFBuild } from '../../../src/lib/api/types.generated.ts';
import { buildBuild, buildBuildEnvSecret, buildPackage } from '../../../src/templates/build.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';
import { app, type BuildScene } from './build-scene.ts';

export const author = { changedBy: 'alice', now: new Date() };
export const digest = `sha256:${'e'.repeat(64)}`;

export const ended = (exitCode: number, message = ''): ContainerState => ({
  terminated: { exitCode, message, finishedAt: '2026-01-01T00:00:00Z' },
});

/** A space, with the variables of its app. */
export async function makeSpace(cluster: MemoryCluster): Promise<void> {
  await cluster.create(namespaceType, { metadata: { name: 's-1', labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } });
  await cluster.create(secretType, { metadata: { name: 'a-1-env', namespace: 's-1' } });
}

export interface AskedBuild {
  guid?: string;
  buildpacks?: string[];
  env?: Record<string, string>;
  /** The Secret with the environment is made later. */
  late?: boolean;
}

/** Asks for a build of the app, which is made with the first one. */
export async function startBuild(cluster: MemoryCluster, options: AskedBuild = {}): Promise<Stored<CFBuild>> {
  const { guid = 'b-1', buildpacks } = options;
  const owner = cluster.peek(kinds.app, 's-1', 'a-1') ?? (await cluster.create(kinds.app, app('a-1')));
  await cluster.create(
    kinds.package,
    buildPackage({ guid, app: owner, type: 'bits', image: `kf-registry.kf-system.svc:5000/s-1/a-1-packages@${digest}` }, author),
  );
  const lifecycle = { type: 'buildpack' as const, data: { stack: '', ...(buildpacks === undefined ? {} : { buildpacks }) } };
  const input = {
    guid,
    app: owner,
    packageGuid: guid,
    lifecycle,
    stagingMemoryMB: 0,
    stagingDiskMB: 0,
    ...(options.env === undefined ? {} : { envSecretName: `${guid}-env` }),
  };
  const made = await cluster.create(kinds.build, buildBuild(input, author));
  if (options.env !== undefined && options.late !== true) await cluster.create(secretType, buildBuildEnvSecret(made, options.env, author));
  return made;
}

/** The state of each container. */
export type Containers = Partial<Record<string, ContainerState>>;

/** Acts as the Job controller and the kubelet. A container that only waits has no id. */
export async function runPod(
  { cluster, until }: BuildScene,
  containers: Containers,
  status: Pod['status'] = {},
  name = 'b-1',
): Promise<void> {
  const job = () => cluster.peek(jobType, 's-1', name);
  await until(() => expect(job()).toBeDefined());
  const present = cluster.peek(podType, 's-1', `${name}-x`);
  const labels = job()?.metadata.labels ?? {};
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name, uid: job()?.metadata.uid ?? '' };
  const made =
    present ?? (await cluster.create(podType, { metadata: { name: `${name}-x`, namespace: 's-1', labels, ownerReferences: [owner] } }));
  const containerStatuses = Object.entries(containers).map(([lane, state]) => ({
    name: lane,
    image: 'i',
    imageID: '',
    ready: false,
    restartCount: 0,
    ...(state === undefined ? {} : { state }),
    ...(state === undefined || state.waiting !== undefined ? {} : { containerID: `containerd://${name}-${lane}` }),
  }));
  await cluster.mergePatch(
    podType,
    's-1',
    `${name}-x`,
    { metadata: { uid: made.metadata.uid }, status: { phase: 'Running', containerStatuses, ...status } },
    { subresource: 'status' },
  );
}
