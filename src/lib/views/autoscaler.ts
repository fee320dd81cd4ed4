// `autoscale`.

import type { Autoscaler } from '../api/results.ts';
import { line, table, type Block } from './block.ts';

const header = ['process', 'instances', 'min', 'max', 'metric', 'target', 'now'];

/** A row for each metric; the process is named in its first one. */
function rowsOf({ process, instances, min, max, metrics }: Autoscaler): string[][] {
  const amount = (value: number | undefined, unit: '%' | 'MB'): string =>
    value === undefined ? 'n/a' : `${String(value)}${unit === 'MB' ? 'M' : unit}`;
  const first = [process, String(instances), String(min), String(max)];
  const rows = metrics.map(({ metric, target, unit, now }) => [metric, amount(target, unit), amount(now, unit)]);
  return (rows.length === 0 ? [['none', '', '']] : rows).map((row, at) => [...(at === 0 ? first : ['', '', '', '']), ...row]);
}

export function renderAutoscalers(autoscalers: readonly Autoscaler[]): Block[] {
  if (autoscalers.length === 0) return [line('No autoscaler found.')];
  const obstacles = autoscalers.flatMap(({ process, obstacle }) =>
    obstacle === undefined ? [] : [line(`Process '${process}' cannot be scaled now: ${obstacle}`)],
  );
  return [table(header, autoscalers.flatMap(rowsOf)), ...(obstacles.length === 0 ? [] : [line(''), ...obstacles])];
}
