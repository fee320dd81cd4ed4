// The connections that an app and a build step of one space can open: with kf's policies, and, to show that the attempts work, with an admin's policy
// that allows everything.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditEnd, auditFrom, kindOf } from '../../support/audit.ts';
import type { Place } from '../../support/developer.ts';
import { get } from '../../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { applyAsAdmin, TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';
import { firstNode, npmMirrorPort, registryPort } from '../../../tools/cluster/addresses.ts';
import { readState } from '../../../tools/cluster/state.ts';

type Outcomes = Record<string, string>;
type Targets = Record<string, { host: string; port?: number }>;

const execute = promisify(execFile);
const world = new TestWorld();
const app = 'network-attempts';
/** On the node, as in a cloud: the address of its metadata, and one that replaces the internet. */
const outside = { metadata: '169.254.169.254', internet: '203.0.113.7' };
/** Not 80: the gateway's host port uses that at every address of the node. */
const outsidePort = 8099;
const node = firstNode.address;
let folder: string;
let place: Place;
let foreign: Place;
let attacker: Member;
let listener: ChildProcess | undefined;
let targets: Targets;

/** Runs a command in the network of the cluster's node. */
function onNode(...command: string[]): [string, string[]] {
  const init = readState(ringEnv('KF_CLUSTER_NAME'))?.init;
  return ['nsenter', ['--target', String(init?.pid), '--net', '--', ...command]];
}

async function listenOutside(): Promise<ChildProcess> {
  for (const address of Object.values(outside)) await execute(...onNode('ip', 'address', 'replace', `${address}/32`, 'dev', 'lo'));
  const listen = Object.values(outside).map(
    (address) => `require('node:net').createServer((s) => s.end()).listen(${String(outsidePort)}, '${address}', () => console.log('up'));`,
  );
  const child = spawn(...onNode(process.execPath, '-e', listen.join('\n')), { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  await until('listeners outside', () => Promise.resolve(said.split('up').length === 3));
  return child;
}

/** A pod with a listener, which an admin creates in a space: other users may run the same. */
async function neighbour(space: string): Promise<string> {
  const settings = await readFile(ringEnv('KF_TEST_SETUP_FILE'), 'utf8');
  const security = {
    allowPrivilegeEscalation: false,
    runAsNonRoot: true,
    runAsUser: 1000,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const container = {
    name: 'listens',
    image: /node: (\S+)/.exec(settings)?.[1],
    command: ['node', '-e', "require('node:net').createServer((s) => s.end()).listen(8080)"],
    resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { cpu: '1', memory: '64Mi' } },
    securityContext: security,
  };
  await applyAsAdmin({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'neighbour', namespace: space },
    spec: { automountServiceAccountToken: false, containers: [container] },
  });
  await kubectl('wait', '-n', space, '--for=condition=Ready', 'pod/neighbour', '--timeout=120s');
  return kubectl('get', 'pod', 'neighbour', '-n', space, '-o', 'jsonpath={.status.podIP}');
}

const spaces = (): string[] => [place.space, foreign.space];

/** Policies that allow everything, in addition to those of kf: the result without any policy. */
async function allowEverything(): Promise<void> {
  const spec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{}], egress: [{}] };
  const policies = [...spaces(), 'kf-system', 'kf-node'].map((namespace) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'allow-everything', namespace },
    spec,
  }));
  await applyAsAdmin(...policies);
}

async function forbidAgain(): Promise<void> {
  for (const namespace of [...spaces(), 'kf-system', 'kf-node'])
    await kubectl('delete', 'networkpolicy', 'allow-everything', '-n', namespace, '--ignore-not-found');
}

async function push(): Promise<Outcomes> {
  const { code, stdout, stderr } = await attacker.kf.run(['push', app, '-p', folder, '-m', '128M', '--force']);
  expect(code, stdout + stderr).toBe(0);
  return JSON.parse(/ATTEMPTS (\{.*\})/.exec(stdout)?.[1] ?? '{}') as Outcomes;
}

const inApp = async (): Promise<Outcomes> => JSON.parse((await get(`${app}.apps.localhost`, '/attempts')).body) as Outcomes;

const opened = (outcomes: Outcomes): string[] =>
  Object.keys(targets)
    .filter((name) => outcomes[name] === 'open')
    .sort();

beforeAll(async () => {
  [place, foreign] = [await world.space(), await world.space()];
  attacker = await world.member('spaceDeveloper', place);
  listener = await listenOutside();
  const gateway = await kubectl('get', 'pods', '-n', 'kf-node', '-l', 'app=kf-gateway', '-o', 'jsonpath={.items[0].status.podIP}');
  targets = {
    'pod of the own space': { host: await neighbour(place.space), port: 8080 },
    'pod of another space': { host: await neighbour(foreign.space), port: 8080 },
    'name of a Service': { host: 'kf-registry.kf-system.svc' },
    internet: { host: outside.internet, port: outsidePort },
    metadata: { host: outside.metadata, port: outsidePort },
    kubelet: { host: node, port: 10_250 },
    'API server': { host: 'kubernetes.default.svc', port: 443 },
    'API server on its node': { host: node, port: 6443 },
    scheduler: { host: node, port: 10_259 },
    'controller manager': { host: node, port: 10_257 },
    etcd: { host: node, port: 2379 },
    'metrics of the controller': { host: 'kf-controller.kf-system.svc', port: 8080 },
    'push port': { host: 'kf-registry.kf-system.svc', port: 5000 },
    'pull port': { host: 'kf-registry-pull.kf-system.svc', port: 5001 },
    'pull port on the node': { host: node, port: 32_500 },
    'entry of the gateway': { host: 'kf-gateway.kf-node.svc', port: 80 },
    'entry of the gateway on the node': { host: node, port: 80 },
    'admin port of the gateway': { host: gateway, port: 8080 },
    'registry of the images': { host: node, port: registryPort },
    'mirror of buildEnv': { host: node, port: npmMirrorPort },
  };
  folder = await mkdtemp(path.join(tmpdir(), 'kf-network-'));
  await cp(path.resolve('test/fixtures/apps/network-attempts'), folder, { recursive: true });
  await writeFile(path.join(folder, 'targets.json'), JSON.stringify(targets));
});

afterAll(async () => {
  listener?.kill();
  for (const address of Object.values(outside))
    await execute(...onNode('ip', 'address', 'delete', `${address}/32`, 'dev', 'lo')).catch(() => undefined);
  await forbidAgain();
  await world.remove();
  await rm(folder, { recursive: true, force: true });
});

/** The connections that an app needs. */
const forApps = ['entry of the gateway', 'entry of the gateway on the node', 'internet', 'name of a Service', 'pod of the own space'];
const forBuilds = ['mirror of buildEnv', 'name of a Service', 'push port', 'registry of the images'];

describe('connections from code in a space', () => {
  test('a build step reaches DNS, the push port, the registries of the images and the hosts of buildEnv, and nothing else', async () => {
    const outcomes = await push();
    expect(opened(outcomes), JSON.stringify(outcomes)).toEqual(forBuilds);
  });

  test('an app reaches DNS, its own space, the gateway and the internet, and nothing else', async () => {
    const looks: string[][] = [];
    await until('all that an app needs to be open', async () => {
      const open = opened(await inApp());
      looks.push(open);
      return forApps.every((name) => open.includes(name));
    });
    expect(looks.flat().filter((name) => !forApps.includes(name))).toEqual([]);
  });

  test('with a policy that allows everything the same attempts succeed, so the policies of kf stop them', async () => {
    await allowEverything();
    // etcd listens on its own node only.
    const all = Object.keys(targets)
      .filter((name) => name !== 'etcd')
      .sort();
    await until('everything to be open', async () => opened(await inApp()).length === all.length);
    expect(opened(await inApp())).toEqual(all);
    expect(opened(await push())).toEqual(all);
    await forbidAgain();
    await until('what was open to be closed again', async () => opened(await inApp()).length === forApps.length);
  });
});

describe('a network policy of kf', () => {
  const port = 8080;
  const backend = 'backend';
  let victim: Member;
  let admin: Kf;
  let guid = '';
  let host = '';
  const uidOf = (name: string, ns: string): Promise<string> => kubectl('get', 'cfapp', name, '-n', ns, '-o', 'jsonpath={.metadata.uid}');
  const connection = async (): Promise<string> => (await get(`${app}.apps.localhost`, `/connect/${host}/${String(port)}`)).body;
  const elsewhere = async (): Promise<string[]> => [
    '-s',
    await kubectl('get', 'cfspace', '-n', foreign.org, foreign.space, '-o', 'jsonpath={.spec.displayName}'),
    '-o',
    await kubectl('get', 'cforg', '-n', 'cf', foreign.org, '-o', 'jsonpath={.spec.displayName}'),
  ];
  /** What the attacker can do alone: his own space has its half of the policy. */
  const claim = async (): Promise<void> => {
    const own = (await attacker.kf.run(['app', app, '--guid'])).stdout.trim();
    const peer = { space: foreign.space, app: guid, uid: await uidOf(guid, foreign.space) };
    const half = (namespace: string, spec: object): object => ({
      apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
      kind: 'CFNetworkPolicy',
      metadata: { name: 'attempt', namespace },
      spec: { protocol: 'tcp', port, ...spec },
    });
    const connects = half(place.space, { appRef: { name: own }, direction: 'connects', peer });
    expect(await attacker.kubectl(['create', '-f', '-'], connects)).toMatchObject({ code: 0 });
    const back = { space: place.space, app: own, uid: await uidOf(own, place.space) };
    const accepts = half(foreign.space, { appRef: { name: guid }, direction: 'accepts', peer: back });
    expect(await attacker.kubectl(['create', '-f', '-'], accepts)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot create resource "cfnetworkpolicies"') as string,
    });
  };

  beforeAll(async () => {
    victim = await world.member('spaceDeveloper', foreign);
    admin = await Kf.as(ringEnv('KF_TEST_KUBECONFIG'), {
      KF_ORG: await kubectl('get', 'cforg', '-n', 'cf', place.org, '-o', 'jsonpath={.spec.displayName}'),
      KF_SPACE: await kubectl('get', 'cfspace', '-n', place.org, place.space, '-o', 'jsonpath={.spec.displayName}'),
    });
    const image = `${process.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:1`;
    expect(await victim.kf.run(['push', backend, '-o', image, '-m', '128M', '--no-route'])).toMatchObject({ code: 0 });
    guid = (await victim.kf.run(['app', backend, '--guid'])).stdout.trim();
    host = `${backend}.apps.internal`;
    expect(await victim.kf.run(['map-route', backend, 'apps.internal', '-n', backend])).toMatchObject({ code: 0 });
  });
  afterAll(() => admin.remove());

  test('cannot be made by the developers of one of the two spaces alone', async () => {
    const command = ['add-network-policy', app, backend, ...(await elsewhere())];
    expect(await attacker.kf.run(command)).toMatchObject({ code: 1, stderr: expect.stringContaining('may not') as string });
    await claim();
    // Neither ENOTFOUND nor open: the name leads to the app, and the network refuses.
    expect(['ECONNREFUSED', 'timeout', 'EHOSTUNREACH']).toContain(await connection());
  });

  test('allows the connection, and its removal forbids it again', async () => {
    const flags = await elsewhere();
    expect(await admin.run(['add-network-policy', app, backend, ...flags])).toMatchObject({ code: 0 });
    await until('the connection to be allowed', async () => (await connection()) === 'open');
    // Each write makes the network of a node be set up again.
    const offset = await auditEnd();
    await sleep(3_000);
    const written = (await auditFrom(offset)).filter(
      ({ verb, objectRef }) => verb === 'patch' && objectRef?.resource === 'networkpolicies',
    );
    expect(written.map(kindOf)).toEqual([]);
    expect(await admin.run(['remove-network-policy', app, backend, ...flags, '--protocol', 'tcp', '--port', String(port)])).toMatchObject({
      code: 0,
    });
    await until('the connection to be denied again', async () => (await connection()) !== 'open');
  });
});

describe('the NetworkPolicies of a space', () => {
  test('cannot be changed, deleted or extended by its developers', async () => {
    const refused = async (args: string[], input?: object): Promise<void> => {
      const { code, stderr } = await attacker.kubectl([...args, '-n', place.space], input);
      expect([code, stderr]).toEqual([1, expect.stringContaining('networkpolicies')]);
    };
    await refused(['delete', 'networkpolicy', 'kf-apps']);
    await refused(['patch', 'networkpolicy', 'kf-builds', '--type=merge', '-p', '{"spec":{"egress":[{}]}}']);
    const spec = { podSelector: {}, policyTypes: ['Egress'], egress: [{}] };
    const metadata = { name: 'mine', namespace: place.space };
    await refused(['create', '-f', '-'], { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec });
  });

  test('are restored after an admin has changed them by accident', async () => {
    const specs = async (): Promise<string> =>
      JSON.stringify(
        (await kubectlJson<{ items: { spec: object }[] }>('get', 'networkpolicies', '-n', place.space)).items.map(({ spec }) => spec),
      );
    const before = await specs();
    await kubectl('patch', 'networkpolicy', 'kf-builds', '-n', place.space, '--type=merge', '-p', '{"spec":{"ingress":[{}]}}');
    await kubectl('delete', 'networkpolicy', 'kf-apps', '-n', place.space);
    await until('both to be as they were', async () => (await specs()) === before);
  });
});
