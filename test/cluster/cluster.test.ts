// The cluster itself, on which the other tests depend.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { reportTime } from '../support/figures.ts';
import { startsClusters } from '../support/starts-clusters.ts';
import { until } from '../support/until.ts';
import { hostLink, nodeRegistry } from '../../tools/cluster/addresses.ts';
import { cgroupName, processesInCgroups } from '../../tools/cluster/cgroups.ts';
import { processesInNamespaces } from '../../tools/cluster/namespaces.ts';
import { isRunning, tryRun } from '../../tools/cluster/process.ts';
import { clusterPaths, readState } from '../../tools/cluster/state.ts';
import type { ClusterState } from '../../tools/cluster/state.ts';

startsClusters();

interface Result {
  code: number | null;
  output: string;
  seconds: number;
}

const program = join(import.meta.dirname, '../../tools/cluster/cli.ts');
const sample = `${nodeRegistry}/kf/sample:1`;

async function cluster(...args: string[]): Promise<Result> {
  const started = Date.now();
  const { code, stdout, stderr } = await tryRun(process.execPath, [program, ...args]);
  return { code, output: stdout + stderr, seconds: (Date.now() - started) / 1000 };
}

function stateOf(name: string): ClusterState {
  const state = readState(name);
  if (!state) throw new Error(`no cluster ${name}`);
  return state;
}

function kubectl(name: string, ...args: string[]): string {
  const state = stateOf(name);
  return execFileSync(state.parts['kubectl'] ?? '', ['--kubeconfig', clusterPaths(name).adminKubeconfig, ...args], { encoding: 'utf8' });
}

/** Everything that a cluster leaves on the host if it is not removed, as text. */
function traces(name: string, number: number): string[] {
  const cgroups = ['', ...readdirSync('/sys/fs/cgroup')].map((hierarchy) => join('/sys/fs/cgroup', hierarchy, cgroupName(name)));
  return [
    ...cgroups.filter((path) => existsSync(path)),
    ...processesInCgroups(name).map((pid) => `process ${String(pid)}`),
    ...readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(clusterPaths(name).folder)),
    ...readdirSync('/sys/class/net').filter((device) => device === hostLink(number).device),
    ...(existsSync(clusterPaths(name).folder) ? [clusterPaths(name).folder] : []),
  ];
}

async function hostFirewall(): Promise<string> {
  const { stdout } = await tryRun('iptables-save', []);
  return stdout
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n');
}

describe('a control plane without nodes', () => {
  const names = ['test-plane-a', 'test-plane-b'] as const;
  afterAll(() => Promise.all(names.map((name) => cluster('down', '--name', name))));

  test('two clusters start in parallel and do not affect each other', async () => {
    const results = await Promise.all(names.map((name) => cluster('up', '--name', name, '--control-plane-only', '--kwok', '2')));
    expect(results.map((result) => result.code)).toEqual([0, 0]);
    for (const { seconds } of results) reportTime('two control planes at once', seconds * 1_000);
    kubectl(names[0], 'create', 'namespace', 'only-here');
    expect(kubectl(names[1], 'get', 'namespaces', '-o', 'name')).not.toContain('only-here');
  });

  test('its kwok nodes run pods', () => {
    kubectl(names[0], 'create', 'deployment', 'many', '--image=none', '--replicas=50');
    kubectl(names[0], 'wait', '--for=condition=Available', 'deployment/many', '--timeout=120s');
    const nodes = kubectl(names[0], 'get', 'pods', '-o', 'jsonpath={.items[*].spec.nodeName}').split(' ');
    expect(new Set(nodes)).toEqual(new Set(['kwok-0', 'kwok-1']));
  });

  test('the other mode is refused under the same name', async () => {
    const result = await cluster('up', '--name', names[0]);
    expect(result.code).toBe(1);
    expect(result.output).toContain('down --name test-plane-a');
  });
});

describe('a whole cluster', () => {
  const name = 'test-whole';
  let firewall = '';
  beforeAll(async () => {
    firewall = await hostFirewall();
    const up = await cluster('up', '--name', name);
    expect(up.output).toContain(`cluster ${name} is ready`);
    reportTime('a whole cluster', up.seconds * 1_000);
  });
  afterAll(() => cluster('down', '--name', name));

  test('`up` on a healthy cluster changes nothing and says so', async () => {
    const before = stateOf(name);
    const again = await cluster('up', '--name', name);
    expect(again.output).toContain('nothing to do');
    expect(stateOf(name)).toEqual(before);
  });

  test('a pod in a user namespace, with seccomp and a volume, is reached by DNS name, NodePort and host port', async () => {
    execFileSync(stateOf(name).parts['kubectl'] ?? '', ['--kubeconfig', clusterPaths(name).adminKubeconfig, 'apply', '-f', '-'], {
      input: JSON.stringify(everything()),
    });
    kubectl(name, 'wait', '--for=condition=Ready', 'pod/server', '--timeout=120s');
    const { number, httpPort } = stateOf(name);
    for (const url of [`http://${hostLink(number).clusterAddress}:32123/`, `http://127.0.0.1:${String(httpPort)}/`]) {
      await until(`an answer from ${url}`, async () => (await fetch(url)).status === 200);
    }
    // The kubelet pulls from registries at such an address.
    const onNode = [
      'nsenter',
      '--target',
      String(stateOf(name).init?.pid),
      '--net',
      '--',
      'curl',
      '-sfo',
      '/dev/null',
      'http://localhost:32123/',
    ];
    expect((await tryRun('/usr/bin/env', onNode)).code).toBe(0);
    const inside = kubectl(name, 'exec', 'server', '--', 'node', '-e', insideProbe);
    expect(JSON.parse(inside)).toEqual({ byName: 200, seccomp: '2', rootOutside: false, volume: 'kept' });
  });

  test('metrics can be read through the aggregation layer', async () => {
    const figures = await until('figures of the node', async () => {
      const top = await tryRun(stateOf(name).parts['kubectl'] ?? '', [
        '--kubeconfig',
        clusterPaths(name).adminKubeconfig,
        'top',
        'nodes',
        '--no-headers',
      ]);
      return top.code === 0 && top.stdout;
    });
    expect(figures).toMatch(/^kf-node-0 +\d+m /);
  });

  test('the audit log contains who did what, and how long it took', async () => {
    kubectl(name, 'create', 'configmap', 'seen-by-audit');
    const created = await until('the line of the audit log', () => {
      const lines = readFileSync(clusterPaths(name).auditLog, 'utf8').split('\n').slice(0, -1);
      const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      const isIt = (entry: Record<string, unknown>): boolean => JSON.stringify(entry['objectRef']).includes('seen-by-audit');
      return Promise.resolve(entries.find((entry) => entry['verb'] === 'create' && isIt(entry)));
    });
    expect(created).toMatchObject({
      level: 'Metadata',
      user: { username: 'kf-admin' },
      objectRef: { resource: 'configmaps', namespace: 'default' },
      responseStatus: { code: 201 },
    });
    expect(Date.parse(created['stageTimestamp'] as string)).toBeGreaterThanOrEqual(
      Date.parse(created['requestReceivedTimestamp'] as string),
    );
  });

  test('a program that ends is started again', async () => {
    const pid = (): string => readFileSync(join(clusterPaths(name).pids, 'kube-scheduler'), 'utf8').trim();
    const before = pid();
    const init = stateOf(name).init;
    await tryRun('nsenter', ['--target', String(init?.pid), '--mount', '--pid', '--', 'kill', '-9', before]);
    await until('another scheduler', () => Promise.resolve(pid() !== before));
  });

  test('after all programs were killed `up` starts them again, and the objects are still there', async () => {
    const { init, forwarder } = stateOf(name);
    const all = [...(init ? processesInNamespaces(init) : []), forwarder].filter((mark) => mark !== undefined);
    for (const { pid } of all) await tryRun('kill', ['-9', String(pid)]);
    const up = await cluster('up', '--name', name);
    expect(up.code).toBe(0);
    reportTime('a killed cluster comes back', up.seconds * 1_000);
    expect(kubectl(name, 'get', 'configmap', 'seen-by-audit', '-o', 'name')).toContain('seen-by-audit');
    kubectl(name, 'delete', 'pod', 'server', '--wait=true', '--grace-period=0', '--force');
    kubectl(name, 'run', 'after', `--image=${sample}`);
    kubectl(name, 'wait', '--for=condition=Ready', 'pod/after', '--timeout=120s');
  });

  test('`up` can be run again after it was killed at any moment, and `down` leaves nothing', async () => {
    for (const afterMs of [500, 2500]) {
      await cluster('down', '--name', name);
      const child = spawn(process.execPath, [program, 'up', '--name', name], { stdio: 'ignore' });
      await sleep(afterMs);
      child.kill('SIGKILL');
    }
    expect((await cluster('up', '--name', name)).code).toBe(0);
    const { number, forwarder } = stateOf(name);
    expect(traces(name, number)).not.toEqual([]);
    expect((await cluster('down', '--name', name)).code).toBe(0);
    expect(traces(name, number)).toEqual([]);
    expect(isRunning(forwarder)).toBe(false);
    expect(await hostFirewall()).toBe(firewall);
  });
});

/** Runs in the pod: prints the values that the test checks, as JSON. */
const insideProbe = `
const fs = require('node:fs');
fetch('http://server.default.svc.cluster.local/').then(({ status: byName }) => {
  const [inside, outside] = fs.readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\\s+/);
  const seccomp = /^Seccomp:\\s+(\\d)/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1];
  fs.writeFileSync('/data/file', 'kept');
  console.log(JSON.stringify({ byName, seccomp, rootOutside: inside === outside, volume: fs.readFileSync('/data/file', 'utf8') }));
});`;

function everything(): object {
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const container = {
    name: 'server',
    image: sample,
    env: [{ name: 'PORT', value: '8080' }],
    ports: [{ containerPort: 8080, hostPort: 80 }],
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  };
  const spec = {
    hostUsers: false,
    securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } },
    terminationGracePeriodSeconds: 1,
    containers: [container],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
  };
  const service = { type: 'NodePort', selector: { app: 'server' }, ports: [{ port: 80, targetPort: 8080, nodePort: 32123 }] };
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' }, spec: claim },
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'server', labels: { app: 'server' } }, spec },
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'server' }, spec: service },
    ],
  };
}
