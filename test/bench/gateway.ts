// What connections that begin requests and cancel them take of the gateway: Traefik with kf's middlewares and settings, without a cluster and without a
// limit of memory, so that the figure shows how much it would take.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { progressOutput } from '../../tools/cluster/build-progress.ts';
import { buildParts, partPath } from '../../tools/cluster/parts.ts';
import { resolvePlan } from '../../src/lib/ops/install/request.ts';
import { buildGateway, entryPorts } from '../../src/templates/setup/gateway.ts';
import { gatewayFiles } from '../../src/templates/setup/gateway-plugins.ts';
import { connectionAttack } from '../support/connection-attack.ts';
import { median, type Row } from './table.ts';

/** Mode of the attack, connections, seconds of connecting again. */
const attacks: [string, number, number][] = [
  ['cancels', 20, 0],
  ['cancels', 200, 0],
  ['cancels', 600, 0],
  ['cancels', 600, 10],
  ['held', 600, 10],
  ['wide', 600, 10],
  ['together-cancels', 2_000, 0],
  ['together-held', 2_000, 10],
];

/** The limit of the gateway's container. */
const limitMiB = 1024;
const host = 'app.localhost';

interface Container {
  args: string[];
  env: { name: string; value: string }[];
}

function container(): Container {
  const objects = buildGateway(resolvePlan({ https: 'off' }, '0.1.0', 'hostport')) as unknown as {
    kind: string;
    spec: { template: { spec: { containers: Container[] } } };
  }[];
  const found = objects.find(({ kind }) => kind === 'Deployment')?.spec.template.spec.containers[0];
  if (found === undefined) throw new Error('Setup has no gateway.');
  return found;
}

/** Writes what the ConfigMap has, with a route to the app. */
function configure(folder: string, app: number): void {
  for (const { path: name, text } of gatewayFiles) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, name === 'dynamic.yml' ? `${text}${route(app)}` : text);
  }
}

const route = (app: number): string => `    app: { rule: 'Host(\`${host}\`)', service: app }
  services:
    app: { loadBalancer: { servers: [{ url: 'http://127.0.0.3:${app}' }] } }
`;

/** One program of the gateway. */
async function startGateway(binary: string, folder: string): Promise<ChildProcess> {
  const { args, env } = container();
  const own = args
    .filter((one) => !one.startsWith('--providers.kubernetesgateway'))
    .map((one) => (one.startsWith('--providers.file.filename') ? `--providers.file.filename=${folder}/dynamic.yml` : one));
  const gateway = spawn(binary, own, {
    cwd: folder,
    env: { ...process.env, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  for (let left = 300; ; left--) {
    const status = await ask('127.0.0.2').catch(() => 0);
    if (status === 200) break;
    if (left === 0 || gateway.exitCode !== null) throw new Error('The gateway does not start.');
    await sleep(100);
  }
  // The guard sets the limits with its first request, which it sends a second after the start.
  await sleep(3_000);
  return gateway;
}

function ask(localAddress: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asking = request(
      { host: '127.0.0.1', port: entryPorts.web, localAddress, headers: { host }, agent: false, timeout: 10_000 },
      (answer) => answer.resume().on('close', () => resolve(answer.statusCode ?? 0)),
    );
    asking.on('timeout', () => asking.destroy(new Error('no answer')));
    asking.on('error', reject).end();
  });
}

const mebibytesOf = (pid: number, name: string): number => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024);
};

async function measure(binary: string, app: number, [mode, count, seconds]: [string, number, number]): Promise<Row> {
  const folder = mkdtempSync(path.join(tmpdir(), 'kf-gateway-'));
  configure(folder, app);
  const gateway = await startGateway(binary, folder);
  const pid = gateway.pid ?? 0;
  try {
    const attacker = spawn(
      process.execPath,
      ['-e', connectionAttack, mode, host, String(count), '127.0.0.1', String(entryPorts.web), String(seconds)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let [said, isOver] = ['', false];
    attacker.stdout.on('data', (text) => (said += String(text)));
    const ended = once(attacker, 'exit').then(() => (isOver = true));
    const statuses = new Map<string, number>();
    const times: number[] = [];
    const begun = performance.now();
    while (!isOver && gateway.exitCode === null && performance.now() - begun < 60_000) {
      const at = performance.now();
      const status = String(await ask('127.0.0.2').catch((error: unknown) => (error as Error).message));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      times.push(performance.now() - at);
      await sleep(50);
    }
    const lasted = performance.now() - begun;
    if (!isOver) attacker.kill('SIGKILL');
    await ended;
    const peak = gateway.exitCode === null ? mebibytesOf(pid, 'VmHWM') : NaN;
    return {
      what: `${count} connections to the gateway, ${mode}${seconds > 0 ? `, ${seconds} s` : ''}`,
      reach: `≤ ${limitMiB} MiB`,
      measured: `${peak} MiB; another address's median ${median(times).toFixed(0)} ms, most ${Math.max(...times).toFixed(0)} ms`,
      beside: `${JSON.stringify(Object.fromEntries(statuses))} in ${(lasted / 1000).toFixed(1)} s; ${said.trim()}`,
    };
  } finally {
    gateway.kill('SIGKILL');
    if (gateway.exitCode === null && gateway.signalCode === null) await once(gateway, 'exit');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Rows of all attacks, or of those in KF_BENCH_ATTACKS (`cancels:600:20,held:600:20`). */
export async function benchGateway(): Promise<Row[]> {
  const wanted = process.env['KF_BENCH_ATTACKS'];
  const list =
    wanted === undefined
      ? attacks
      : wanted.split(',').map((one): [string, number, number] => {
          const [mode = '', count, seconds] = one.split(':');
          return [mode, Number(count), Number(seconds ?? 0)];
        });
  const binary = partPath(await buildParts(['traefik'], progressOutput(console.log)), 'traefik');
  const app = createServer((incoming, answer) => {
    if (incoming.method === 'GET') answer.end('ok');
  }).listen(0, '127.0.0.3');
  await once(app, 'listening');
  const rows: Row[] = [];
  try {
    for (const attack of list) rows.push(await measure(binary, (app.address() as AddressInfo).port, attack));
  } finally {
    app.closeAllConnections();
    app.close();
  }
  return rows;
}
