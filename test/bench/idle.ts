// The resources that the installation needs after twenty pushes, and the activity of the controller when there are no requests.

import { setTimeout as sleep } from 'node:timers/promises';
import { kubectl, kubectlJson } from '../support/kf.ts';
import { auditEnd, auditFrom, listed, tally } from '../support/audit.ts';
import type { Scene } from './scene.ts';
import type { Row } from './table.ts';
import { controllerUsage, mebibytes } from './usage.ts';

const apps = 20;
const atOnce = 2;
const system = 'kf-system';
/** The namespaces of kf's programs: controller and registry; the gateway. */
const installation = [system, 'kf-node'];

const nameOf = (index: number): string => `bench-idle-${index}`;

async function each(act: (index: number) => Promise<unknown>): Promise<void> {
  const left = Array.from({ length: apps }, (_, index) => index);
  const worker = async (): Promise<void> => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) await act(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Mebibytes of `96Mi`, millicores of `3m`. */
const amount = (text = ''): number => Number(/^\d+/.exec(text)?.[0] ?? NaN);

/** `kubectl top` of the containers of the installation, including the gateway; metrics-server measures every 15 s. */
async function workingSets(): Promise<{ sum: string; each: string }> {
  await sleep(20_000);
  const tops = await Promise.all(installation.map((ns) => kubectl('top', 'pods', '-n', ns, '--containers', '--no-headers')));
  const rows = tops.flatMap((text) => text.trim().split('\n')).map((line) => line.split(/\s+/).slice(1));
  const sum = rows.reduce((all, [, , memory]) => all + amount(memory), 0);
  return { sum: `${sum} MiB`, each: rows.map(([container, cpu, memory]) => `${container} ${memory} ${cpu}`).join(', ') };
}

interface Pods {
  items: { spec: { containers: { name: string; resources?: { requests?: { cpu?: string; memory?: string } } }[] } }[];
}

/** The resources that the same containers request. */
async function requested(): Promise<{ sum: string; each: string }> {
  const lists = await Promise.all(installation.map((ns) => kubectlJson<Pods>('get', 'pods', '-n', ns)));
  const containers = lists.flatMap(({ items }) => items.flatMap(({ spec }) => spec.containers));
  const sum = containers.reduce((all, { resources }) => all + amount(resources?.requests?.memory ?? '0'), 0);
  const each = containers.map(
    ({ name, resources: { requests } = {} }) => `${name} ${requests?.cpu ?? 'no cpu'}/${requests?.memory ?? 'no memory'}`,
  );
  return { sum: `${sum} MiB`, each: each.join(', ') };
}

async function watchIdle(minutes: number): Promise<Row> {
  const [start, before] = [await auditEnd(), await controllerUsage()];
  const began = performance.now();
  await sleep(minutes * 60_000);
  const elapsed = (performance.now() - began) / 1000;
  const [after, entries] = [await controllerUsage(), await auditFrom(start)];
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

/** @param minutes duration of the idle time */
export async function benchIdle({ developer, sample }: Scene, minutes: number): Promise<Row[]> {
  await each((index) => developer.ok('push', nameOf(index), '-o', sample(1), '-m', '32M'));
  const [sets, requests] = [await workingSets(), await requested()];
  const rows = [
    {
      what: `working set of ${installation.join(' and ')} after ${apps} pushes`,
      reach: `≤ what they request, and that ≤ 256 MiB`,
      measured: `${sets.sum}: ${sets.each}`,
      beside: `requested ${requests.sum}: ${requests.each}`,
    },
    await watchIdle(minutes),
  ];
  await each((index) => developer.ok('delete', nameOf(index), '-f', '-r'));
  return rows;
}
