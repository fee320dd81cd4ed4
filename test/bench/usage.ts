// What the controller and the API server use, by their own counters.

import { kubectl } from '../support/kf.ts';

export interface Usage {
  residentBytes: number;
  cpuSeconds: number;
}

async function usageAt(metrics: string): Promise<Usage> {
  const text = await kubectl('get', '--raw', metrics);
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1] ?? NaN);
  return { residentBytes: value('process_resident_memory_bytes'), cpuSeconds: value('process_cpu_seconds_total') };
}

/** The counters of the process itself, read through the service proxy. */
export const controllerUsage = (): Promise<Usage> => usageAt('/api/v1/namespaces/kf-system/services/http:kf-controller:8080/proxy/metrics');

/** What counts against the limit of its container: the working set, as `kubectl top` prints it, for example `97Mi`. */
export async function controllerWorkingSet(): Promise<string> {
  const line = await kubectl('top', 'pod', '-n', 'kf-system', '-l', 'app=kf-controller', '--no-headers');
  return /(\d+Mi)\s*$/.exec(line)?.[1] ?? 'unknown';
}

/** The API server's own counters: etcd's are not among them. */
export const apiServerUsage = (): Promise<Usage> => usageAt('/metrics');

export const mebibytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(0)} MiB`;
