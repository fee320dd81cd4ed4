// Switching https on and off while requests run: none is lost. Behind a load balancer the gateway's pod stays; with ports of the nodes a second gateway
// answers while the pod is replaced.

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reportTime } from '../support/figures.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { askNode, loadNode } from '../support/node-load.ts';
import { until } from '../support/until.ts';

const name = 'switched';
const hosts = [`${name}.apps.localhost`];
const file = ringEnv('KF_TEST_SETUP_FILE');
const node = ringEnv('KF_CLUSTER_ADDRESS');
let admin: Kf;
let kf: Kf;
let folder: string;

beforeAll(async () => {
  [admin, kf] = [await Kf.create('admin'), await Kf.create()];
  folder = await mkdtemp(path.join(tmpdir(), 'kf-https-'));
  await kf.ok('push', name, '-o', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`, '-m', '64M');
});
/** The gateway behind a load balancer stays when the choice changes, and the setups of other tests count their objects. */
const ofLoadBalancer = [
  'deployment/kf-gateway', 'service/kf-gateway', 'serviceaccount/kf-gateway', 'networkpolicy/kf-gateway', 'configmap/kf-gateway-request-id',
  'gateway/kf',
]; // prettier-ignore

afterAll(async () => {
  await admin.ok('setup', '-f', file);
  await kubectl('delete', '-n', 'kf-system', '--ignore-not-found', ...ofLoadBalancer);
  await kf.run(['delete', name, '-r', '-f']);
  await Promise.all([admin.remove(), kf.remove(), rm(folder, { recursive: true, force: true })]);
}, 300_000);

/** Settings of the ring with these changes. Clients connect to the node's own address and ports. @returns the arguments of kf */
async function setupWith(exposure: 'hostport' | 'loadbalancer', https: 'on' | 'off'): Promise<string[]> {
  const settings = (await readFile(file, 'utf8'))
    .replace(/^gatewayExposure: .*$/m, `gatewayExposure: ${exposure}\ngatewayAddress: ${node}`)
    .replace(/^gatewayPort: .*$/m, 'gatewayPort: 80')
    .replace(/^httpsPort: .*$/m, 'httpsPort: 443');
  const changed = path.join(folder, 'setup.yaml');
  await writeFile(changed, https === 'on' ? settings : settings.replace(/^httpsPort: .*$/m, 'https: off'));
  return ['setup', '-f', changed];
}

const setUp = async (exposure: 'hostport' | 'loadbalancer', https: 'on' | 'off'): Promise<void> =>
  void (await admin.ok(...(await setupWith(exposure, https))));

/** Kills a setup as soon as this object exists. */
async function killSetupAt(args: string[], kind: string, object: string): Promise<void> {
  const setup = admin.start(args);
  const ended = once(setup, 'exit');
  setup.stdout?.resume();
  setup.stderr?.resume();
  await until(`setup to make ${object}`, async () => (await kubectl('get', kind, object, '-n', 'kf-node', '--ignore-not-found')) !== '');
  setup.kill('SIGKILL');
  expect(await ended).toEqual([null, 'SIGKILL']);
}

const podOf = async (namespace: string): Promise<string> =>
  kubectl('get', 'pods', '-n', namespace, '-l', 'app=kf-gateway', '-o', 'jsonpath={.items[*].metadata.uid}');

test('with ports of the nodes no request is lost, although the pod is replaced', async () => {
  for (const https of ['off', 'on'] as const) {
    const before = await podOf('kf-node');
    const { sent, failures, gapMs } = await loadNode({ address: node, hosts }, () => setUp('hostport', https));
    reportTime(`without an answer of the gateway while https is switched ${https}`, gapMs);
    expect(sent).toBeGreaterThan(50);
    expect(failures).toEqual([]);
    await until('the second gateway to go', async () => (await podOf('kf-node')).split(' ').length === 1);
    expect(await podOf('kf-node')).not.toBe(before);
    expect(await kubectl('get', 'services', '-n', 'kf-node', '-o', 'name')).not.toContain('handover');
    expect(await askNode({ address: node, hosts })).toBe('200');
  }
}, 300_000);

test('with ports of the nodes no request is lost when setup is killed in the middle and runs again', async () => {
  const before = await podOf('kf-node');
  const { sent, failures } = await loadNode({ address: node, hosts }, async () => {
    await killSetupAt(await setupWith('hostport', 'off'), 'service', 'kf-gateway-handover');
    expect(await podOf('kf-node')).toContain(before);
    await setUp('hostport', 'off');
  });
  expect(sent).toBeGreaterThan(50);
  expect(failures).toEqual([]);
  await until('the second gateway to go', async () => (await podOf('kf-node')).split(' ').length === 1);
  expect(await podOf('kf-node')).not.toBe(before);
  expect(await kubectl('get', 'services', '-n', 'kf-node', '-o', 'name')).not.toContain('handover');
}, 300_000);

test('behind a load balancer no request is lost, and the pod stays', async () => {
  await setUp('loadbalancer', 'on');
  interface Service {
    spec: { ports: { port: number; nodePort: number }[] };
  }
  const ports = async (): Promise<Service['spec']['ports']> =>
    (await kubectlJson<Service>('get', 'service', 'kf-gateway', '-n', 'kf-system')).spec.ports;
  const { nodePort = 0 } = (await ports()).find(({ port }) => port === 80) ?? {};
  const behind = { address: node, port: nodePort, hosts };
  await until('the gateway behind its Service to answer', async () => (await askNode(behind)) === '200');
  const pod = await podOf('kf-system');
  for (const [https, listening] of [
    ['off', [80]],
    ['on', [80, 443]],
  ] as const) {
    const { sent, failures } = await loadNode(behind, () => setUp('loadbalancer', https));
    expect(sent).toBeGreaterThan(50);
    expect(failures).toEqual([]);
    expect((await ports()).map(({ port }) => port)).toEqual(listening);
  }
  expect(await podOf('kf-system')).toBe(pod);
}, 600_000);
