// Packages and droplets, as cf prints them.

import type { DropletSummary, PackageSummary } from '../api/results.ts';
import { line, pairs, table, type Block } from './block.ts';
import { longDate } from './dates.ts';

const header = ['guid', 'state', 'created'];

/** @param timeZone default: the local one */
export function renderPackages(packages: readonly PackageSummary[], timeZone?: string): Block[] {
  if (packages.length === 0) return [line('No packages found.')];
  const rows = packages.map(({ guid, state, created }) => [guid, state, longDate(created, timeZone)]);
  return [table(header, rows)];
}

/** @param timeZone default: the local one */
export function renderDroplets(droplets: readonly DropletSummary[], timeZone?: string): Block[] {
  if (droplets.length === 0) return [line('No droplets found')];
  const rows = droplets.map(({ guid, state, created, current }) => [
    current ? `${guid} (current)` : guid,
    state,
    longDate(created, timeZone),
  ]);
  return [table(header, rows)];
}

/** The end of `stage-package`. @param timeZone default: the local one */
export function renderStaged({ guid, state, created }: DropletSummary, timeZone?: string): Block[] {
  return [line(), line('Package staged'), pairs(['droplet guid:', guid], ['state:', state], ['created:', longDate(created, timeZone)])];
}
