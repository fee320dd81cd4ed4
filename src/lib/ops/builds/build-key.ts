// The build key: builds with equal inputs have the same key.

import { createHash } from 'node:crypto';
import { findCondition } from '../../api/conditions.ts';
import { annotations, conditionTypes } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { CFBuild, CFServiceBinding } from '../../api/types.generated.ts';

export interface BuildInputs {
  contentHash: string;
  buildpacks: readonly string[];
  stack: string;
  env: Readonly<Record<string, string>>;
  /** The app's bindings. */
  bindings: readonly Stored<CFServiceBinding>[];
}

/** The part of the app's services that a build can see. Credentials count by the version of their Secret: readers of a hash could guess them. */
function seenOf(bindings: readonly Stored<CFServiceBinding>[]): string[][] {
  return bindings
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .filter((binding) => findCondition(binding, conditionTypes.claimed)?.status !== 'False')
    .map(({ metadata, spec }) => [metadata.name, spec.displayName ?? '', metadata.annotations?.[annotations.instanceVersion] ?? ''])
    .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

/** Hash of everything that a build depends on; equal keys mean equal droplets. */
export function buildKey(info: KfInfo, inputs: BuildInputs): string {
  const { builder } = info;
  const bindings = seenOf(inputs.bindings);
  const parts = [
    inputs.contentHash,
    builder.digest ?? builder.image,
    builder.runImage ?? '',
    inputs.buildpacks,
    inputs.stack,
    Object.entries({ ...builder.env, ...inputs.env }).sort(([a], [b]) => (a < b ? -1 : 1)),
    ...(builder.envRevision === undefined ? [] : [builder.envRevision]),
    ...(bindings.length === 0 ? [] : [{ bindings }]),
  ];
  return `sha256:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}

const isOf = (build: Stored<CFBuild>, key: string): boolean =>
  build.metadata.annotations?.[annotations.buildKey] === key && build.metadata.deletionTimestamp === undefined;

/** A successful build with this key, otherwise one that is still running (of a push that was cancelled). */
export function reusableBuild(builds: readonly Stored<CFBuild>[], key: string): Stored<CFBuild> | undefined {
  const same = builds.filter((build) => isOf(build, key));
  return same.find((build) => build.status?.state === 'STAGED') ?? same.find((build) => build.status?.state !== 'FAILED');
}
