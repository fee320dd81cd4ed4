// When is a build the same build? When nothing that goes into it differs.

import { createHash } from 'node:crypto';
import { annotations } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { CFBuild } from '../../api/types.generated.ts';

export interface BuildInputs {
  contentHash: string;
  buildpacks: readonly string[];
  stack: string;
  env: Readonly<Record<string, string>>;
}

/** Hash of everything that a build depends on; equal keys mean equal droplets. */
export function buildKey(info: KfInfo, inputs: BuildInputs): string {
  const { builder } = info;
  const parts = [
    inputs.contentHash,
    builder.digest ?? builder.image,
    builder.runImage ?? '',
    inputs.buildpacks,
    inputs.stack,
    Object.entries({ ...builder.env, ...inputs.env }).sort(([a], [b]) => (a < b ? -1 : 1)),
    ...(builder.envRevision === undefined ? [] : [builder.envRevision]),
  ];
  return `sha256:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}

const isOf = (build: CFBuild, key: string): boolean =>
  build.metadata.annotations?.[annotations.buildKey] === key && build.metadata.deletionTimestamp === undefined;

/** A build with this key that has ended well, else one that still runs (of a push that was cancelled). */
export function reusableBuild(builds: readonly CFBuild[], key: string): CFBuild | undefined {
  const same = builds.filter((build) => isOf(build, key));
  return same.find((build) => build.status?.state === 'STAGED') ?? same.find((build) => build.status?.state !== 'FAILED');
}
