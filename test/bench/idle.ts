// What the installation costs after twenty pushes, and what the controller does when nobody asks for anything.

import { setTimeout as sleep } from 'node:timers/promises';
import { kubectl } from '../support/kf.ts';
import { auditEnd, auditFrom, listed, tally } from '../support/audit.ts';
import type { Scene } from './scene.ts';
import type { Row } from './table.ts';

const apps = 20;
const atOnce = 2;
const system = 'kf-system';

const nameOf = (index: number): string => `bench-idle-${index}`;

async function each(act: (index: number) => Promise<unknown>): Promise<void> {
  const left = Array.from({ length: apps }, (_, index) => index);
  const worker = async (): Promise<void> => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) await act(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

interface Usage {
  residentBytes: number;
  cpuSeconds: number;
}

/** As the process itself counts; read through the service proxy. */
async function usageOfController(): Promise<Usage> {
  const text = await kubectl('get', '--raw', `/api/v1/namespaces/${system}/services/http:kf-controller:8080/proxy/metrics`);
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1] ?? NaN);
  return { residentBytes: value('process_resident_memory_bytes'), cpuSeconds: value('process_cpu_seconds_total') };
}

const mebibytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(0)} MiB`;

/** `kubectl top` of the system's containers; metrics-server looks every 15 s. */
async function workingSets(): Promise<string> {
  await sleep(20_000);
  const lines = (await kubectl('top', 'pods', '-n', system, '--containers', '--no-headers')).trim().split('\n');
  return lines
    .map((line) => line.split(/\s+/).slice(1))
    .map(([container, cpu, memory]) => `${container} ${memory} ${cpu}`)
    .join(', ');
}

async function requested(): Promise<string> {
  const jsonPath = '{range .items[*]}{range .spec.containers[*]}{.name} {.resources.requests.cpu}/{.resources.requests.memory}, {end}{end}';
  return (await kubectl('get', 'pods', '-n', system, '-o', `jsonpath=${jsonPath}`)).replace(/, $/, '');
}

async function watchIdle(minutes: number): Promise<Row> {
  const [start, before] = [await auditEnd(), await usageOfController()];
  const began = performance.now();
  await sleep(minutes * 60_000);
  const elapsed = (performance.now() - began) / 1000;
  const [after, entries] = [await usageOfController(), await auditFrom(start)];
  const own = entries.filter(({ user }) => user.username === `system:serviceaccount:${system}:kf-controller`);
  const writes = own.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb));
  const leases = writes.filter(({ objectRef }) => objectRef?.resource === 'leases' && objectRef.namespace === system);
  const others = writes.filter((entry) => !leases.includes(entry));
  const millicores = ((after.cpuSeconds - before.cpuSeconds) / elapsed) * 1000;
  const every = leases.length === 0 ? 'none' : `one per ${(elapsed / leases.length).toFixed(1)} s`;
  return {
    what: `controller idle with ${apps} apps, ${minutes} min`,
    reach: 'RSS ≤ 128 MiB, ≤ 10m CPU, no write but its Lease (≤ 1 per 5 s)',
    measured: `RSS ${mebibytes(after.residentBytes)}, ${millicores.toFixed(1)}m CPU, ${others.length} writes, Lease ${every}`,
    beside:
      others.length === 0 ? `reads: ${listed(tally(own.filter((entry) => !writes.includes(entry)))) || 'none'}` : listed(tally(others)),
  };
}

/** @param minutes of idleness */
export async function benchIdle({ developer, sample }: Scene, minutes: number): Promise<Row[]> {
  await each((index) => developer.ok('push', nameOf(index), '-o', sample(1), '-m', '32M'));
  const sets = await workingSets();
  const rows = [
    {
      what: `working set of ${system} after ${apps} pushes`,
      reach: '256 MiB requested',
      measured: sets,
      beside: `requests: ${await requested()}`,
    },
    await watchIdle(minutes),
  ];
  await each((index) => developer.ok('delete', nameOf(index), '-f', '-r'));
  return rows;
}
