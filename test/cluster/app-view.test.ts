// The instances in `kf app`: their usage, and how often and why they were restarted.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { countRequests } from '../support/audit.ts';
import { get } from '../support/http.ts';
import { Kf } from '../support/kf.ts';
import { until } from '../support/until.ts';

interface Instance {
  state: string;
  cpu?: number;
  memoryBytes?: number;
  restarts?: number;
  pod?: string;
  lastEnd?: { exitCode?: number; reason?: string; at?: string };
}

const app = 'watched';
const server = `require('node:http')
  .createServer((request, response) => (request.url === '/fall' ? process.exit(7) : response.end('up')))
  .listen(process.env.PORT);`;
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-watched-'));
  await writeFile(path.join(folder, 'package.json'), JSON.stringify({ name: app, scripts: { start: 'node server.js' } }));
  await writeFile(path.join(folder, 'server.js'), server);
  await kf.ok('push', app, '-p', folder, '-m', '128M');
});
afterAll(async () => {
  await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

async function instance(): Promise<Instance> {
  const { processes } = await kf.json<{ processes: { instanceDetails: Instance[] }[] }>('app', app);
  return processes[0]?.instanceDetails[0] ?? { state: 'none' };
}

test('kf app shows CPU and memory as the cluster measures them, with one request', async () => {
  await until('figures of the metrics server', async () => (await instance()).memoryBytes !== undefined);
  const { result, requests } = await countRequests(() => kf.ok('app', app));
  expect(requests.byKind.get('list pods')).toBe(2);
  expect(requests.api).toBeLessThanOrEqual(8);
  expect(result.stdout).toMatch(/^#0 +running +\S+Z +\d+\.\d% +[\d.]+[KM] of 128M +- of 1G /m);
});

test('rows fit into a terminal of 80 columns', async () => {
  const { screen } = await kf.onTerminal(['app', app], 80);
  const rows = screen.split(/\r?\n/).filter((row) => row.includes('#0') || row.includes('since'));
  expect(rows).toHaveLength(2);
  for (const row of rows) expect(row.replace(/\u001b\[[0-9;]*m/g, '').length).toBeLessThanOrEqual(80);
});

test('an instance that crashed is shown with the number and the cause of its crashes', async () => {
  await get(`${app}.apps.localhost`, '/fall').catch(() => undefined);
  const fell = await until('the restart', async () => {
    const seen = await instance();
    return (seen.restarts ?? 0) > 0 && seen.state === 'running' ? seen : undefined;
  });
  expect(fell.lastEnd).toMatchObject({ exitCode: 7, reason: 'Error' });
  expect((await kf.ok('app', app)).stdout).toMatch(/^#0: +restarted (once|\d+ times); the last time it ended with exit code 7 at \S+Z$/m);
});
