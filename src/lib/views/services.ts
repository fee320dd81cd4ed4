// `services` and `service`, as cf prints them.

import type { ServiceDetails, ServiceSummary } from '../api/results.ts';
import { line, pairs, table, type Block, type Cell } from './block.ts';

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

/** Of instances that follow a Secret. */
export const followNote = (bin: string): string =>
  `kf follows changes of the Secret. As with '${bin} uups', running apps get new credentials when they are restarted.`;

const indent = '   ';

/** One service: its properties, its last operation, and the apps bound to it. */
export function renderService(service: ServiceDetails): Block[] {
  const { name, guid, type, fromSecret, tags, routeServiceUrl, syslogDrainUrl, lastOperation, boundApps } = service;
  const { status, message, startedAt, updatedAt } = lastOperation;
  const bound = boundApps.map((app): Cell[] => [app.name, app.bindingName ?? '', app.status, app.message]);
  const operation: Cell[][] = [
    ['status:', status],
    ['message:', message],
    ['started:', startedAt],
    ['updated:', updatedAt],
  ];
  return [
    pairs(
      ['name:', name],
      ['guid:', guid],
      ['type:', type],
      ...(fromSecret === undefined ? [] : [['credentials:', `Secret ${fromSecret}`] as [string, string]]),
      ['tags:', tags.join(', ')],
      ['route service url:', routeServiceUrl],
      ['syslog drain url:', syslogDrainUrl],
    ),
    line(),
    line('Showing status of last operation:'),
    { type: 'table', header: false, indent, rows: operation },
    line(),
    line('Showing bound apps:'),
    bound.length === 0
      ? line(`${indent}There are no bound apps for this service instance.`)
      : { type: 'table', header: true, indent, rows: [['name', 'binding name', 'status', 'message'], ...bound] },
    line(),
  ];
}
