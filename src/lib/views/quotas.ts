// `org-quotas`, `org-quota` and the same of spaces: cf's layout.

import type { QuotaSummary } from '../api/results.ts';
import { formatMegabytes } from '../api/sizes.ts';
import { line, pairs, table, type Block } from './block.ts';

const count = (limit: number | null): string => (limit === null ? 'unlimited' : String(limit));
const memory = (limit: number | null): string => (limit === null ? 'unlimited' : limit === 0 ? '0' : formatMegabytes(limit));

/** kf has no plans to pay for, no TCP routes, and no limit of logs. */
const columns: [title: string, text: (limits: QuotaSummary['limits']) => string][] = [
  ['total memory', ({ totalMemoryMB }) => memory(totalMemoryMB)],
  ['instance memory', ({ instanceMemoryMB }) => memory(instanceMemoryMB)],
  ['routes', ({ routes }) => count(routes)],
  ['service instances', ({ serviceInstances }) => count(serviceInstances)],
  ['paid service plans', () => 'disallowed'],
  ['app instances', ({ appInstances }) => count(appInstances)],
  ['route ports', () => '0'],
  ['log volume per second', () => 'unlimited'],
];

/** @param none cf's text when there are none */
export function renderQuotas(quotas: readonly QuotaSummary[], none: string): Block[] {
  if (quotas.length === 0) return [line(none)];
  return [
    table(
      ['name', ...columns.map(([title]) => title)],
      quotas.map(({ name, limits }) => [name, ...columns.map(([, text]) => text(limits))]),
    ),
  ];
}

export function renderQuota({ limits }: QuotaSummary): Block[] {
  return [pairs(...columns.map(([title, text]): [string, string] => [`${title}:`, text(limits)]))];
}
