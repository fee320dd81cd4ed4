// `services`, as cf prints it.

import type { ServiceSummary } from '../api/results.ts';
import { line, table, type Block, type Cell } from './block.ts';

/** @param apps false drops the bound apps column (`--no-apps`) */
export function renderServices(services: readonly ServiceSummary[], { apps = true }: { apps?: boolean } = {}): Block[] {
  if (services.length === 0) return [line('No service instances found.')];
  const header = ['name', 'offering', 'plan', ...(apps ? ['bound apps'] : []), 'last operation', 'broker', 'upgrade available'];
  const rows = services.map((service): Cell[] => [
    service.name,
    service.offering,
    service.plan,
    ...(apps ? [service.boundApps.join(', ')] : []),
    service.lastOperation,
    service.broker,
    '',
  ]);
  return [table(header, rows)];
}
