// Nodes that are lost, emptied or full, on a cluster of two real nodes: the gateway, the registry and the controller are on the first one.

import { execFile, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import type { WhyDetails } from '../../src/lib/api/results.ts';
import { nodePlace } from '../../tools/cluster/addresses.ts';
import { restartProgram } from '../../tools/cluster/namespaces.ts';
import { initOf, nodePaths, readState } from '../../tools/cluster/state.ts';
import { reportFigure, reportTime } from '../support/figures.ts';
import { get, type Answer } from '../support/http.ts';
import { Kf, kubectl } from '../support/kf.ts';
import { startTarget } from '../support/load-target.ts';
import { Load, totalOf, type Loaded } from '../support/load.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from '../support/local-cluster.ts';
import { faultsOfRoll } from '../support/releases.ts';
import { startsClusters } from '../support/starts-clusters.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

startsClusters();

const name = 'nodes-ring';
const [first, second] = [nodePlace(0).name, nodePlace(1).name];
/** Every instance of a lost node serves again within this time. */
const recoveryMs = 120_000;
const execute = promisify(execFile);
let folder: string;
let env: ClusterEnv;
let kf: Kf;

interface Pod {
  metadata: { name: string; uid: string; labels: Record<string, string>; deletionTimestamp?: string };
  spec: { nodeName?: string };
  status: { phase: string; conditions?: { type: string; status: string }[] };
}

const ctl = (...args: string[]): Promise<string> => kubectl('--kubeconfig', env['KF_TEST_KUBECONFIG'] ?? '', ...args);
const list = async <T>(...args: string[]): Promise<T[]> => (JSON.parse(await ctl('get', ...args, '-o', 'json')) as { items: T[] }).items;
const image = (): string => `${env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:1`;
const hostOf = (app: string): string => `${app}.apps.localhost`;
const ports = () => ({ plain: Number(env['KF_CLUSTER_HTTP_PORT']), secure: Number(env['KF_CLUSTER_HTTPS_PORT']) });
const ask = (app: string, urlPath = '/'): Promise<Answer> => get(hostOf(app), urlPath, {}, ports().plain);
const statusOf = async (app: string): Promise<number> => (await ask(app)).status;

/** How many instances of the sample app answer. */
async function answering(app: string): Promise<number> {
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(app)));
  return new Set(answers.flatMap(({ status, headers }) => (status === 200 ? [String(headers['x-instance'])] : []))).size;
}

async function node(action: 'kill' | 'freeze' | 'thaw' | 'start'): Promise<void> {
  await execute(process.execPath, ['tools/cluster/cli.ts', 'node', action, '1', '--name', name]);
}

/** Runs `act` while only one of the nodes takes new pods. */
async function onlyOn(place: string, act: () => Promise<unknown>): Promise<void> {
  const other = place === first ? second : first;
  await ctl('cordon', other);
  try {
    await act();
  } finally {
    await ctl('uncordon', other);
  }
}

async function guidOf(app: string): Promise<string> {
  return (await kf.ok('app', app, '--guid')).stdout.trim();
}

/** The instances of an app; its tasks have no process. */
async function instances(app: string): Promise<Pod[]> {
  const selector = `korifi.cloudfoundry.org/app-guid=${await guidOf(app)},korifi.cloudfoundry.org/process-type`;
  return list<Pod>('pods', '-A', '-l', selector);
}

/** Pods of apps and tasks on a node. */
const podsOn = (place: string): Promise<Pod[]> =>
  list<Pod>('pods', '-A', '--field-selector', `spec.nodeName=${place}`, '-l', 'korifi.cloudfoundry.org/app-guid');

const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
const readyOn = async (app: string, place: string): Promise<number> =>
  (await instances(app)).filter((pod) => isReady(pod) && pod.spec.nodeName === place).length;

/** The app has so many instances and no others, and all are ready on one node: those of an earlier version serve too, until they are gone. */
async function isAllOn(app: string, place: string, count = 1): Promise<boolean> {
  const pods = await instances(app);
  return pods.length === count && pods.every((pod) => isReady(pod) && pod.spec.nodeName === place);
}

/** When the cluster noticed that a node does not answer, to the second. */
async function silentSince(place: string): Promise<number> {
  const time = "{.status.conditions[?(@.type=='Ready')].lastTransitionTime}";
  return Date.parse(await ctl('get', 'node', place, '-o', `jsonpath=${time}`));
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-nodes-'));
  // Remains of an interrupted run are not checked.
  await clusterDown(name);
  env = await clusterUp(name, '--nodes', '2');
  const setupFile = await writeSetupFile(folder, env);
  kf = await Kf.create('admin', { KUBECONFIG: env['KF_TEST_KUBECONFIG'] ?? '', KF_ORG: 'default', KF_SPACE: 'default' });
  await onlyOn(first, () => kf.ok('setup', '-f', setupFile));
});
afterAll(async () => {
  await kf.remove();
  await clusterDown(name);
  await rm(folder, { recursive: true, force: true });
});

test('both nodes are ready, and the tool names the second one with its programs', async () => {
  const nodes = await list<{ metadata: { name: string } }>('nodes');
  expect(nodes.map(({ metadata }) => metadata.name)).toEqual([first, second]);
  const { stdout } = await execute(process.execPath, ['tools/cluster/cli.ts', 'status', '--name', name]);
  expect(stdout).toMatch(new RegExp(`^${second}: runs: .*kubelet`, 'm'));
});

/** `kf logs` of an app, which follows from now on. */
function followLogs(app: string): { child: ChildProcess; lines: string[] } {
  const child = kf.start(['logs', app]);
  if (child.stdout === null) throw new Error('kf logs has no stdout');
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  child.stderr?.resume();
  return { child, lines };
}

describe('a node that is killed without warning', () => {
  const task = { guid: '', failed: '' };
  let followed: ReturnType<typeof followLogs> | undefined;

  beforeAll(async () => {
    await onlyOn(second, async () => {
      await kf.ok('push', 'lone', '-o', image(), '-m', '64M');
      await kf.ok('run-task', 'lone', '--command', 'sleep 3600', '--name', 'long');
      await until('the task to run', async () => (await kf.ok('tasks', 'lone')).stdout.includes('RUNNING'));
    });
    await kf.ok('push', 'pair', '-o', image(), '-m', '64M', '-i', '2');
    expect(await readyOn('lone', second)).toBe(1);
    expect(await readyOn('pair', second)).toBeGreaterThan(0);
    const [found] = await list<{ metadata: { name: string } }>('cftasks', '-A');
    task.guid = found?.metadata.name ?? '';
    followed = followLogs('lone');
    const { lines } = followed;
    await until('a line of the log', async () => {
      await ask('lone', '/log?line=before');
      return lines.some((line) => line.endsWith(' OUT before'));
    });
  });
  afterAll(() => void followed?.child.kill('SIGKILL'));

  test('has every instance serve elsewhere within 120 s, and kf why names the node until then', async () => {
    await node('kill');
    const killedAt = Date.now();
    let isBack = false;
    let said: WhyDetails | undefined;
    let shown = '';
    let saidAt = NaN;
    const back = async (): Promise<void> => {
      const all = async (): Promise<boolean> => (await readyOn('lone', first)) === 1 && (await readyOn('pair', first)) === 2;
      await until('all instances to run on the first node', all, recoveryMs).finally(() => (isBack = true));
      reportTime('all instances of a killed node run again', Date.now() - killedAt);
      const left = Math.max(0, killedAt + recoveryMs - Date.now());
      await until('all instances to answer', async () => (await answering('lone')) === 1 && (await answering('pair')) === 2, left);
      reportTime('all instances of a killed node serve again', Date.now() - killedAt);
    };
    const explain = async (): Promise<void> => {
      while (!isBack && said === undefined) {
        const details = await why(kf, 'lone');
        if (details.cause !== 'node-lost') {
          await sleep(500);
          continue;
        }
        saidAt = Date.now();
        shown = (await kf.ok('app', 'lone')).stdout;
        said = details;
      }
    };
    await Promise.all([back(), explain()]);
    const missed = saidAt - (await silentSince(second));
    reportTime('kf why names a node that went away, after the cluster has noticed', missed);
    expect(missed).toBeLessThanOrEqual(10_000);
    expect(said).toMatchObject({ state: 'failed', cause: 'node-lost', instance: 0 });
    expect(said?.message).toContain(`Node '${second}' does not answer`);
    expect(shown).toMatch(/^#0 +down/m);
    await until('the verdict to change', async () => (await why(kf, 'lone')).state === 'well');
  });

  test('ends no kf logs: it says that lines may be missing, and goes on with the new instance from its first line', async () => {
    if (followed === undefined) throw new Error('nothing is followed');
    const { child, lines } = followed;
    await until('a line of the new instance', async () => {
      await ask('lone', '/log?line=after');
      return lines.some((line) => line.endsWith(' OUT after'));
    });
    const gap = /^-- APP\/PROC\/WEB\/0: gap after \d\d:\d\d:\d\d\.\d{3}, the instance is gone --$/;
    await until('the gap', async () => lines.some((line) => gap.test(line)));
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([0, null]);
    const ofBefore = lines.findLastIndex((line) => line.endsWith(' OUT before'));
    const starts = lines.flatMap((line, index) => (/\[APP\/PROC\/WEB\/0\] OUT sample 1, .* listening/.test(line) ? [index] : []));
    expect(
      starts.filter((index) => index > ofBefore),
      lines.join('\n'),
    ).toHaveLength(1);
    expect(lines.findIndex((line) => line.endsWith(' OUT after'))).toBeGreaterThan(starts.at(-1) ?? Infinity);
    expect(lines.filter((line) => gap.test(line))).toHaveLength(1);
  });

  test('is in the events of the app', async () => {
    await until('the event', async () => (await kf.ok('events', 'lone')).stdout.includes(`NODE_LOST`));
    expect((await kf.ok('events', 'lone')).stdout).toMatch(/audit\.app\.process\.rescheduling .*index: 0, reason: NODE_LOST/);
  });

  test('has its task end as failed, with the node as the reason', async () => {
    await until('the end of the task', async () => (await kf.ok('tasks', 'lone')).stdout.includes('FAILED'));
    const details = await why(kf, 'lone', '--task', '1');
    expect(details).toMatchObject({ state: 'failed', cause: 'node-lost' });
    task.failed = details.message;
    expect(task.failed).toContain(`Node '${second}' does not answer`);
  });

  test('comes back: nothing of before runs there, the apps go on serving, and the task was run once', async () => {
    await node('start');
    await ctl('wait', '--for=condition=Ready', `node/${second}`, '--timeout=120s');
    await until('the pods of before to be gone', async () => (await podsOn(second)).length === 0);
    expect([await statusOf('lone'), await statusOf('pair')]).toEqual([200, 200]);
    const events = await list<{ reason: string }>(
      'events',
      '-A',
      '--field-selector',
      `involvedObject.name=${task.guid},reason=SuccessfulCreate`,
    );
    expect(events).toHaveLength(1);
    expect(await why(kf, 'lone', '--task', '1')).toMatchObject({ state: 'failed', message: task.failed });
  });
});

/** Sends requests to the app, one after the other, while `act` runs; returns what was not answered with 200, and how many there were. */
async function loadDuring(app: string, act: () => Promise<unknown>): Promise<{ bad: unknown[]; all: number }> {
  const bad: unknown[] = [];
  let [isDone, all] = [false, 0];
  const user = async (): Promise<void> => {
    while (!isDone) {
      const answer = await statusOf(app).catch(String);
      if (answer !== 200) bad.push(answer);
      all += 1;
      await sleep(10);
    }
  };
  await Promise.all([user(), user(), act().finally(() => (isDone = true))]);
  return { bad, all };
}

/** The uids of the pods whose programs run on the node, by its own account. */
async function running(place: string): Promise<string[]> {
  const { items } = JSON.parse(await ctl('get', '--raw', `/api/v1/nodes/${place}/proxy/runningpods/`)) as { items: Pod[] | null };
  return (items ?? []).map(({ metadata }) => metadata.uid);
}

describe('a node that freezes', () => {
  let old = '';

  beforeAll(async () => {
    await onlyOn(second, () => kf.ok('restart', 'lone'));
    await until('the instance on the second node alone', () => isAllOn('lone', second));
    old = (await instances('lone'))[0]?.metadata.uid ?? '';
    // The kubelet asks its runtime every 2 s at most.
    await until('its program on the second node', async () => (await running(second)).includes(old));
  });
  afterAll(() => node('thaw'));

  test('has its instance run elsewhere, and when it goes on, the old one ends, one stays, and no request fails', async () => {
    await node('freeze');
    await until('the instance to run on the first node', async () => (await readyOn('lone', first)) === 1, recoveryMs);
    await until('the app to answer', async () => (await answering('lone')) === 1);
    const { bad, all } = await loadDuring('lone', async () => {
      await node('thaw');
      await ctl('wait', '--for=condition=Ready', `node/${second}`, '--timeout=120s');
      await until('the old instance to end', async () => !(await running(second)).includes(old));
      await until('one instance, on the first node', () => isAllOn('lone', first));
    });
    expect(bad).toEqual([]);
    expect(all).toBeGreaterThan(50);
    expect(await isAllOn('lone', first)).toBe(true);
  });
});

const drain = (): Promise<string> =>
  ctl(
    'drain',
    second,
    '--ignore-daemonsets',
    '--delete-emptydir-data',
    '--timeout=300s',
    '--pod-selector=korifi.cloudfoundry.org/app-guid',
  );

describe('a node that is drained', () => {
  let ca = '';

  beforeAll(async () => {
    ca = (await kf.ok('ca-certificate')).stdout;
    await onlyOn(second, async () => {
      await startTarget(kf, 'lone', { image: image() });
      await startTarget(kf, 'duo', { image: image(), instances: 2 });
    });
  });
  afterAll(async () => {
    await kf.run(['delete', 'duo', '-r', '-f']);
    await ctl('uncordon', second);
  });

  test('has no request fail, of new and of kept connections and of long ones, to an app with one instance and to one with two', async () => {
    const all = async (place: string): Promise<boolean> => (await isAllOn('lone', place)) && (await isAllOn('duo', place, 2));
    await until('all instances on the second node', () => all(second));
    const loads = ['lone', 'duo'].map((app) => new Load(hostOf(app), ca, ports()));
    let loaded: Loaded[] = [];
    try {
      await until('both apps to answer', async () => loads.every(({ versions }) => versions.length > 0));
      await drain();
      await until('all instances on the first node', () => all(first));
      const enough = loads.map(({ total }) => total + 50);
      await until('more requests', async () => loads.every(({ total }, index) => total >= (enough[index] ?? 0)));
    } finally {
      loaded = await Promise.all(loads.map((load) => load.end()));
    }
    expect(loaded.map((one) => faultsOfRoll({ loaded: one, expected: ['1.0'] }))).toEqual([[], []]);
    const sent = loaded.reduce((sum, one) => sum + totalOf(one), 0);
    reportFigure(`0 of ${String(sent)} requests failed while the node of all instances of two apps was drained`);
    expect((await kf.ok('app', 'lone')).stdout).toMatch(/instances: +1\/1\n/);
    expect((await kf.ok('app', 'duo')).stdout).toMatch(/instances: +2\/2\n/);
  });

  test('can be drained too when no other node takes the instance, which then waits for one', async () => {
    await ctl('uncordon', second);
    await onlyOn(second, async () => {
      await kf.ok('restart', 'lone');
      await until('the instance on the second node alone', () => isAllOn('lone', second));
      await drain();
      await until('the verdict', async () => (await why(kf, 'lone')).cause === 'no-room');
    });
    await until('the app to serve', async () => (await statusOf('lone')) === 200);
  });
});

/** Changes the settings of the second node's kubelet. */
async function setKubelet(change: Record<string, unknown>): Promise<void> {
  const file = path.join(nodePaths(name, 1).config, 'kubelet.yaml');
  const state = readState(name);
  const init = state === undefined ? undefined : initOf(state, 1);
  if (init === undefined) throw new Error('the second node does not run');
  await writeFile(file, stringify({ ...(parse(await readFile(file, 'utf8')) as object), ...change }));
  await restartProgram(init, { name: 'kubelet' });
}

const conditionOf = async (type: string): Promise<string> =>
  (await ctl('get', 'node', second, '-o', `jsonpath={.status.conditions[?(@.type=="${type}")].status}`)).trim();

describe('a node that is full', () => {
  const normal: Record<string, unknown> = {};
  beforeAll(async () => {
    const config = parse(await readFile(path.join(nodePaths(name, 1).config, 'kubelet.yaml'), 'utf8')) as Record<string, unknown>;
    Object.assign(normal, { maxPods: config['maxPods'], evictionHard: config['evictionHard'], evictionPressureTransitionPeriod: '1s' });
    for (const app of ['lone', 'pair']) await kf.ok('delete', app, '-r', '-f');
    await until('the second node to be empty', async () => (await podsOn(second)).length === 0);
    await ctl('cordon', first);
  });
  afterAll(() => ctl('uncordon', first));

  test('of pods takes no more, and kf why says so', async () => {
    await setKubelet({ maxPods: 1 });
    await until('the limit', async () => (await ctl('get', 'node', second, '-o', 'jsonpath={.status.allocatable.pods}')) === '1');
    await kf.ok('push', 'one', '-o', image(), '-m', '64M', '-k', '64M');
    const ran = await kf.run(['scale', 'one', '-i', '2']);
    expect(ran.code).toBe(1);
    const details = await why(kf, 'one');
    expect([details.cause, details.message]).toEqual(['no-room', expect.stringContaining('Too many pods')]);
    await setKubelet(normal);
    await until('the second instance', async () => (await readyOn('one', second)) === 2);
  });

  test.each([
    ['memory', 'MemoryPressure', 'memory.available', '95%', /low on resource: memory/],
    ['disk', 'DiskPressure', 'nodefs.available', '99%', /low on resource: ephemeral-storage|had condition: .DiskPressure/],
  ])('of %s ends instances, and kf why and kf events say why', async (_, condition, signal, threshold, text) => {
    await setKubelet({ evictionHard: { [signal]: threshold } });
    await until(condition, async () => (await conditionOf(condition)) === 'True');
    await until('the verdict', async () => {
      const { cause, message } = await why(kf, 'one');
      return cause === 'no-room' && message.includes('untolerated taint');
    });
    await until('the event', async () => {
      const events = (await kf.ok('events', 'one')).stdout.split('\n');
      return events.some((line) => line.includes('reason: EVICTED') && text.test(line));
    });
    // A kubelet that starts again during an eviction would let the pod live.
    await until('all instances to be gone', async () => (await podsOn(second)).length === 0);
    await setKubelet(normal);
    await until('the end of the pressure', async () => (await conditionOf(condition)) === 'False');
    await until('both instances', async () => (await readyOn('one', second)) === 2);
  });
});
