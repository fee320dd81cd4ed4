// The output of `prune`.

import { formatBytes } from '../api/sizes.ts';
import { line, table, type Block } from './block.ts';

/** The part of the op's result that is shown. */
export interface PruneView {
  dryRun: boolean;
  apps: readonly { app: string; org?: string; space?: string; deleted: boolean; images: number; bytes: number }[];
  inUse: readonly string[];
  failed: readonly { repository: string }[];
  bytes: number;
  room: { total: number; free: number };
}

const placeOf = ({ org, space }: PruneView['apps'][number]): string =>
  org === undefined || space === undefined ? 'deleted space' : `${org}/${space}`;

function inUseLines({ inUse }: PruneView, bin: string): Block[] {
  if (inUse.length === 0) return [];
  const what = inUse.length === 1 ? 'A push uses 1 repository' : `Pushes use ${inUse.length} repositories`;
  return [line(`${what} now. Later: ${bin} prune`)];
}

export function renderPrune(view: PruneView, bin: string): Block[] {
  const { dryRun, apps, bytes, room } = view;
  const rows = apps.map((one) => [
    one.deleted ? `${one.app} (deleted)` : one.app,
    placeOf(one),
    one.deleted ? 'all' : String(one.images),
    formatBytes(one.bytes),
  ]);
  const free = `${formatBytes(room.free)} of ${formatBytes(room.total)} are free.`;
  return [
    ...(rows.length === 0
      ? [line(view.failed.length === 0 ? 'Nothing is unused.' : 'Nothing else is unused.')]
      : [table(['app', 'org/space', 'images', 'frees'], rows)]),
    line(),
    line(dryRun ? `Would free ${formatBytes(bytes)}; ${free}` : `Freed ${formatBytes(bytes)}; ${free}`),
    ...inUseLines(view, bin),
    ...view.failed.map(({ repository }) => line(`Left as it is, because the registry failed there: ${repository}`)),
  ];
}
