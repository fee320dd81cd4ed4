// Faults of a cluster: programs killed, frozen and restarted, objects deleted while controllers use them.

import { readFileSync, readdirSync } from 'node:fs';
import { processesInNamespaces, runInside } from '../../tools/cluster/namespaces.ts';
import { readState } from '../../tools/cluster/state.ts';
import { kubectl, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

function initOfCluster(): NonNullable<ReturnType<typeof readState>>['init'] {
  const name = ringEnv('KF_CLUSTER_NAME');
  const state = readState(name);
  if (state === undefined) throw new Error(`the cluster '${name}' is not from tools/cluster: nothing of it may be broken`);
  return state.init;
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
};

/** Processes of this cluster, and of no other, whose command line contains `words`. */
export function processesOf(words: string): number[] {
  const init = initOfCluster();
  if (init === undefined) return [];
  const inside = new Set(processesInNamespaces(init).map(({ pid }) => pid));
  const own = descendants(init.pid).filter((pid) => commandOf(pid).includes(words));
  return [...new Set([...own, ...[...inside].filter((pid) => commandOf(pid).includes(words))])];
}

/** Containers are in their own pid namespaces, so they are found by their parents. */
function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
    } catch {
      // It has ended by itself.
    }
  }
  const found: number[] = [];
  const queue = [root];
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    found.push(pid);
    queue.push(...(children.get(pid) ?? []));
  }
  return found;
}

export function signalAll(words: string, signal: NodeJS.Signals): number {
  const pids = processesOf(words);
  for (const pid of pids) process.kill(pid, signal);
  return pids.length;
}

/** The controller's process is killed; its kubelet starts it again. */
export const killControllerProcess = (): number => signalAll('controller.mjs', 'SIGKILL');

/** Deletes pods at once. @returns how many there were */
async function deletePods(namespace: string, app: string): Promise<number> {
  const deleted = await kubectl(
    '-n',
    namespace,
    'delete',
    'pod',
    '-l',
    `app=${app}`,
    '--grace-period=0',
    '--force',
    '--wait=false',
    '-o',
    'name',
  );
  return deleted.split('\n').filter((line) => line.startsWith('pod/')).length;
}

/** The controller's pod is deleted at once, without time to release its Lease. */
export const deleteControllerPod = (): Promise<number> => deletePods('kf-system', 'kf-controller');

/** The registry's pod, with the gate, is deleted at once; its volume stays. */
export const deleteRegistryPod = (): Promise<number> => deletePods('kf-system', 'kf-registry');

/** The gateway's pod is deleted at once: no route answers until its successor runs. */
export const deleteGatewayPod = (): Promise<number> => deletePods('kf-node', 'kf-gateway');

async function runInCluster(command: string[]): Promise<string> {
  const init = initOfCluster();
  if (init === undefined) throw new Error('the cluster does not run');
  return runInside(init, command);
}

/** The API server is killed and started again by the node. */
export async function killApiServer(): Promise<void> {
  await runInCluster(['/bin/sh', '-c', 'kill -9 "$(cat /run/kf/pids/kube-apiserver)"']);
}

/** etcd's own HTTP interface: https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/ */
const killAndCompact = `
import { readFileSync } from 'node:fs';
const call = async (path, body) => {
  const response = await fetch('http://127.0.0.1:2379/v3/kv/' + path, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
};
process.kill(Number(readFileSync('/run/kf/pids/kube-apiserver', 'utf8')), 'SIGKILL');
const { header } = await call('put', { key: btoa('/chaos/revision'), value: '' });
await call('compaction', { revision: header.revision, physical: true });
console.log(header.revision);`;

/**
 * The API server is killed and started again by the node. Meanwhile etcd forgets its history, so the new API server cannot continue any watch and
 * answers 410. A write of something else comes before: the kind of the last write would have missed nothing, and its watch would continue.
 * @returns etcd's revision
 */
export async function killApiServerWithHistory(): Promise<number> {
  return Number(await runInCluster([process.execPath, '--input-type=module', '-e', killAndCompact]));
}

export async function apiServerAnswers(): Promise<void> {
  await until('the API server to answer', async () => (await kubectl('get', '--raw', '/readyz')) === 'ok');
}

export async function controllerReady(): Promise<void> {
  await kubectl('-n', 'kf-system', 'rollout', 'status', 'deployment/kf-controller', '--timeout=120s');
}
