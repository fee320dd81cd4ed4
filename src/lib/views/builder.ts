// `stacks`, `stack`, `buildpacks`.

import type { BuildpackSummary, StackSummary } from '../api/results.ts';
import { line, pairs, table, type Block } from './block.ts';

export function renderStacks(stacks: readonly StackSummary[]): Block[] {
  return [
    table(
      ['name', 'description'],
      stacks.map(({ name, description }) => [name, description]),
    ),
  ];
}

export const renderStack = ({ name, description }: StackSummary): Block[] => [pairs(['name:', name], ['description:', description])];

/** All of a builder's buildpacks can be used, and none can be changed alone: their version stands where cf has the name of a file. */
export function renderBuildpacks(buildpacks: readonly BuildpackSummary[]): Block[] {
  if (buildpacks.length === 0) return [line('No buildpacks found')];
  const rows = buildpacks.map(({ position, name, stack, version }) => [
    ...[String(position), name, stack, 'true', 'true', 'READY'],
    ...[version === '' ? '' : `${name}@${version}`, 'cnb'],
  ]);
  return [table(['position', 'name', 'stack', 'enabled', 'locked', 'state', 'filename', 'lifecycle'], rows)];
}
