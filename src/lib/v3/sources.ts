// What apps are made from: packages, builds, droplets.

import { annotations } from '../api/group.ts';
import type { Stored } from '../api/object.ts';
import type { CFBuild, CFPackage } from '../api/types.generated.ts';
import { findCondition } from '../api/conditions.ts';
import { presentLifecycle } from './apps.ts';
import { identityOf, metadataOf, toOne, type LinkTo, type V3Resource } from './resource.ts';

const checksumOf = (hash: string | undefined): { type: 'sha256'; value: string | null } => ({
  type: 'sha256',
  value: hash?.replace(/^sha256:/, '') ?? null,
});

export function presentPackage(source: Stored<CFPackage>, link: LinkTo): V3Resource {
  const { spec, metadata } = source;
  const image = spec.source?.registry.image ?? '';
  const bits = { error: null, checksum: checksumOf(metadata.annotations?.[annotations.contentHash]) };
  return {
    ...identityOf(source),
    type: spec.type,
    data: spec.type === 'docker' ? { image, username: null, password: null } : bits,
    state: image === '' ? 'AWAITING_UPLOAD' : 'READY',
    relationships: { app: toOne(spec.appRef.name) },
    metadata: metadataOf(source),
    links: { self: link(`/v3/packages/${metadata.name}`), app: link(`/v3/apps/${spec.appRef.name}`) },
  };
}

const stateOf = ({ status }: CFBuild): 'STAGING' | 'STAGED' | 'FAILED' => status?.state ?? 'STAGING';

export function presentBuild(build: Stored<CFBuild>, link: LinkTo): V3Resource {
  const { spec, metadata, status } = build;
  const app = spec.appRef.name;
  const state = stateOf(build);
  const failure = findCondition(build, 'Succeeded')?.message ?? status?.failure?.reason ?? 'StagingError';
  const droplet = state === 'STAGED' ? { guid: metadata.name } : null;
  return {
    ...identityOf(build),
    state,
    error: state === 'FAILED' ? failure : null,
    staging_memory_in_mb: spec.stagingMemoryMB,
    staging_disk_in_mb: spec.stagingDiskMB,
    lifecycle: presentLifecycle(spec.lifecycle),
    package: { guid: spec.packageRef.name },
    droplet,
    created_by: {
      guid: metadata.annotations?.[annotations.changedBy] ?? null,
      name: metadata.annotations?.[annotations.changedBy] ?? null,
    },
    relationships: { app: toOne(app) },
    metadata: metadataOf(build),
    links: {
      self: link(`/v3/builds/${metadata.name}`),
      app: link(`/v3/apps/${app}`),
      ...(droplet === null ? {} : { droplet: link(`/v3/droplets/${metadata.name}`) }),
    },
  };
}

/** The droplet of a build that succeeded; it has the build's GUID. */
export function presentDroplet(build: Stored<CFBuild>, link: LinkTo): V3Resource {
  const { spec, metadata, status } = build;
  const { stack, processTypes = [], buildpacks = [], registry } = status?.droplet ?? {};
  const isDocker = spec.lifecycle.type === 'docker';
  return {
    ...identityOf(build),
    state: 'STAGED',
    error: null,
    lifecycle: { type: spec.lifecycle.type, data: {} },
    execution_metadata: '',
    process_types: Object.fromEntries(processTypes.map(({ type, command }) => [type, command])),
    checksum: isDocker ? null : checksumOf(/@sha256:([0-9a-f]{64})$/.exec(registry?.image ?? '')?.[1]),
    buildpacks: buildpacks.map(({ name, version }) => ({ name, detect_output: null, buildpack_name: name, version: version ?? null })),
    stack: stack ?? null,
    image: isDocker ? (registry?.image ?? null) : null,
    relationships: { app: toOne(spec.appRef.name) },
    metadata: metadataOf(build),
    links: {
      self: link(`/v3/droplets/${metadata.name}`),
      package: link(`/v3/packages/${spec.packageRef.name}`),
      app: link(`/v3/apps/${spec.appRef.name}`),
    },
  };
}
