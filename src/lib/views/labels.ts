// `labels`.

import { line, table, type Block } from './block.ts';

export function renderLabels(labels: Readonly<Record<string, string>>): Block[] {
  const rows = Object.entries(labels);
  return rows.length === 0 ? [line('No labels found.')] : [table(['key', 'value'], rows)];
}
