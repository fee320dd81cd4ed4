// Commands in a pod and a port of it, with the shipped code: no command of kf uses it yet, so its modules are bundled as in the CLI.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type * as ClientModule from '../../src/lib/kube/client.ts';
import type * as ExecModule from '../../src/lib/kube/exec.ts';
import type * as PortForwardModule from '../../src/lib/kube/port-forward.ts';
import type { Cluster } from '../../src/lib/kube/cluster.ts';
import { kubectl, ringEnv } from '../support/kf.ts';

const root = path.join(import.meta.dirname, '../..');
const ns = 'kf-system';
let folder: string;
let built: Pick<typeof ClientModule, 'connect'> & typeof ExecModule & typeof PortForwardModule;
let cluster: Cluster;
/** The controller's pod: a container with Node, and one port. */
let pod: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-exec-'));
  const sources = ['client', 'exec', 'port-forward'].map((name) => `src/lib/kube/${name}.ts`);
  await promisify(execFile)(process.execPath, ['tools/bundle.mjs', '--modules', folder, ...sources], { cwd: root });
  const [client, exec, portForward] = (await Promise.all(
    ['client', 'exec', 'port-forward'].map((name) => import(path.join(folder, `${name}.mjs`))),
  )) as [typeof ClientModule, typeof ExecModule, typeof PortForwardModule];
  built = { ...client, ...exec, ...portForward };
  cluster = await built.connect({ kubeconfig: ringEnv('KF_TEST_KUBECONFIG'), env: process.env });
  pod = (await kubectl('get', 'pods', '-n', ns, '-l', 'app=kf-controller', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
});
afterAll(async () => {
  cluster.close();
  await kubectl('delete', 'pod', '-n', ns, 'kf-attach', '--ignore-not-found', '--wait=false');
  await rm(folder, { recursive: true, force: true });
});

const node = (script: string): string[] => ['node', '-e', script];

test('a command gets its input, and returns two outputs and an exit code', async () => {
  const script = `let n = 0; process.stdin.on('data', (chunk) => (n += chunk.length));
    process.stdin.on('end', () => { console.log('read', n); console.error('and', process.argv[1]); process.exitCode = 7; });`;
  const command = [...node(script), '--', 'a b&c=d'];
  const { stdin, stdout, stderr, exitCode } = await built.exec(cluster, { ns, pod, container: 'controller', stdin: true, command });
  stdin?.end(Buffer.alloc(3_000_000, 'x'));
  expect(await Promise.all([text(stdout), text(stderr), exitCode])).toEqual(['read 3000000\n', 'and a b&c=d\n', 7]);
});

test('a command that succeeds returns 0, and large output arrives completely', async () => {
  const { stdout, exitCode } = await built.exec(cluster, { ns, pod, command: node("process.stdout.write('y'.repeat(5e6))") });
  const output = await text(stdout);
  expect([output.length, /^y+$/.test(output), await exitCode]).toEqual([5_000_000, true, 0]);
});

test('a command in a terminal gets the size of the terminal', async () => {
  const script = `process.stdout.on('resize', () => { console.log(process.stdout.columns + 'x' + process.stdout.rows); process.exit(); }); console.log('up'); setInterval(() => {}, 1000)`;
  const process = await built.exec(cluster, { ns, pod, tty: true, stdin: true, command: node(script) });
  process.stdout.once('data', () => void process.resize({ columns: 101, rows: 33 }));
  expect(await text(process.stdout)).toContain('101x33');
  expect(await process.exitCode).toBe(0);
});

test('a missing program and a missing pod are reported', async () => {
  const { exitCode } = await built.exec(cluster, { ns, pod, command: ['no-such-program'] });
  await expect(exitCode).rejects.toThrow(/no-such-program.*executable file not found/);
  await expect(built.exec(cluster, { ns, pod: 'no-such-pod', command: ['x'] })).rejects.toMatchObject({ code: 'not-found' });
});

test('a user without the right gets the name of the missing right', async () => {
  const developer = await built.connect({ kubeconfig: ringEnv('KF_TEST_DEVELOPER'), env: process.env });
  const refused = built.exec(developer, { ns, pod, command: ['node', '--version'] });
  await expect(refused).rejects.toMatchObject({ code: 'forbidden', missingRight: { resource: 'pods/exec', ns } });
  developer.close();
});

test('the main program of a container can be attached to', async () => {
  const image = (await kubectl('get', 'pod', '-n', ns, pod, '-o', 'jsonpath={.spec.containers[0].image}')).trim();
  const context = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    runAsUser: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const command = node("process.stdin.once('data', (chunk) => { process.stdout.write('got ' + chunk); process.exit(); })");
  const container = {
    name: 'program',
    image,
    imagePullPolicy: 'IfNotPresent',
    command,
    stdin: true,
    stdinOnce: true,
    securityContext: context,
  };
  const spec = { restartPolicy: 'Never', automountServiceAccountToken: false, containers: [container] };
  await kubectl('run', 'kf-attach', '-n', ns, `--image=${image}`, '--restart=Never', `--overrides=${JSON.stringify({ spec })}`);
  await kubectl('wait', '-n', ns, 'pod/kf-attach', '--for=condition=Ready', '--timeout=120s');
  const { stdin, stdout, exitCode } = await built.attach(cluster, { ns, pod: 'kf-attach', stdin: true });
  stdin?.write('a line\n');
  expect([await text(stdout), await exitCode]).toEqual(['got a line\n', 0]);
});

test('a port of a pod answers HTTP, and a port without a listener is reported', async () => {
  const open = await built.portForward(cluster, { ns, pod, port: 8080 });
  open.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await text(open)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  const closed = await built.portForward(cluster, { ns, pod, port: 9 });
  await expect(text(closed)).rejects.toThrow(/port 9 of pod .*refused/);
});
