// What the controller's process uses, by its own counters.

import { kubectl } from '../support/kf.ts';

export interface Usage {
  residentBytes: number;
  cpuSeconds: number;
}

/** The counters of the process itself, read through the service proxy. */
export async function controllerUsage(): Promise<Usage> {
  const text = await kubectl('get', '--raw', '/api/v1/namespaces/kf-system/services/http:kf-controller:8080/proxy/metrics');
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1] ?? NaN);
  return { residentBytes: value('process_resident_memory_bytes'), cpuSeconds: value('process_cpu_seconds_total') };
}

export const mebibytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(0)} MiB`;
