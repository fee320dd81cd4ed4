// Apps stay reachable while the gateway's pod is replaced. Two pods cannot have the same port of a node, so a second gateway without such ports starts
// beside the first one, and for the meantime a Service leads connections to the node's addresses there (decision 88).

import { lookup } from 'node:dns/promises';
import { request } from 'node:http';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { deploymentType, nodeType, serviceType, type Service } from '../../api/core.ts';
import { podType, type Pod } from '../../api/pod-kind.ts';
import { messageOf } from '../../errors.ts';
import { portForward } from '../../kube/port-forward.ts';
import { sleep, throwIfAborted, unlessLate, waitFor } from '../../wait.ts';
import { checkHost } from '../../../templates/setup/check-route.ts';
import {
  buildHandoverPod,
  buildHandoverService,
  handoverConnectionMs,
  handoverLabel,
  handoverName,
} from '../../../templates/setup/gateway-handover.ts';
import { entryPorts, traefikName } from '../../../templates/setup/gateway.ts';
import { gatewayNamespace, needsHostPorts } from '../../../templates/setup/namespaces.ts';
import { applyPlanned, type PlannedChange } from './applier.ts';
import type { SetupRun } from './part.ts';
import { setupSet } from './setup-set.ts';

const startMs = 60_000;
/** kube-proxy collects changes for a second; a busy node may need longer. */
const settleMs = 4_000;
/** How long one question to a gateway may take. */
const questionMs = 2_000;

const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;

/** The gateway that is to be replaced: its pod has the ports of a node. */
async function presentGateway({ cluster, plan }: SetupRun): Promise<Pod | undefined> {
  const { items } = await cluster.list(podType, { ns: gatewayNamespace(plan), labelSelector: `app=${traefikName},!${handoverLabel}` });
  return items.find(isReady);
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

/** The addresses at which clients reach the node: its own ones, and those of the gateway as `kf setup` knows it. */
async function clientAddresses({ cluster, plan }: SetupRun, node: string): Promise<string[]> {
  const { address = checkHost(plan) } = plan.gateway;
  const [live, found] = await Promise.all([cluster.get(nodeType, undefined, node), lookup(address, { all: true }).catch(() => [])]);
  const own = live?.status?.addresses?.filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP') ?? [];
  const all = [...own, ...found].map((one) => one.address).filter((one) => isIP(one) !== 0 && !isLoopback(one));
  return [...new Set(all)];
}

const isProgram = ({ object }: PlannedChange): boolean => object.kind === deploymentType.kind;

const isGatewayReplaced = ({ changes }: SetupRun): boolean =>
  changes('gateway').some((change) => change.action === 'change' && isProgram(change));

/** GETs the check route from inside the pod. @returns the status; 0 when nothing listens yet */
async function askPod({ cluster, plan }: SetupRun, pod: string): Promise<number> {
  const stream = await portForward(cluster, { ns: gatewayNamespace(plan), pod, port: entryPorts.web });
  try {
    return await new Promise<number>((resolve) => {
      const outgoing = request(
        { path: '/healthz', headers: { host: checkHost(plan), connection: 'close' }, createConnection: () => stream, timeout: questionMs },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        },
      );
      stream.on('close', () => resolve(0));
      outgoing.on('timeout', () => resolve(0)).on('error', () => resolve(0));
      outgoing.end();
    });
  } finally {
    stream.destroy();
  }
}

/** A gateway answers with its certificate or a redirect (by this plan or an earlier one) only after it has read its routes, all of them at once. */
const hasRoutes = (status: number): boolean => status === 200 || status === 301;

async function awaitRoutes(run: SetupRun, look: () => Promise<Pod | undefined>): Promise<true> {
  const answers = async (): Promise<true | undefined> => {
    const pod = await look();
    if (pod === undefined || !isReady(pod)) return undefined;
    const status = await askPod(run, pod.metadata.name ?? '').catch(() => 0);
    return hasRoutes(status) ? true : undefined;
  };
  const { signal } = run;
  return waitFor(answers, { timeoutMs: startMs, intervalMs: 250, describe: 'the gateway to read its routes', signal });
}

/** True when a pod is on the node of this one, and does what this one does. Kubernetes completes a pod, so that only these fields can be compared. */
function isLike(wanted: Pod, { metadata, spec }: Pod): boolean {
  const programsOf = (pod: Pod['spec']): unknown => pod?.containers.map(({ image, args }) => ({ image, args }));
  return (
    spec?.nodeName === wanted.spec?.nodeName &&
    isDeepStrictEqual(programsOf(spec), programsOf(wanted.spec)) &&
    Object.entries(wanted.metadata.annotations ?? {}).every(([key, value]) => metadata.annotations?.[key] === value)
  );
}

/** Whether the pod that an interrupted setup left is the second gateway of this one. */
async function isToStay(run: SetupRun, left: Pod, wanted: Pod): Promise<boolean> {
  if (!isReady(left)) return false;
  if (isLike(wanted, left)) return true;
  // While the first gateway does not answer, no other one serves.
  return (await unlessLate(awaitRoutes(run, () => presentGateway(run)))) === undefined;
}

async function begin(run: SetupRun, node: string): Promise<void> {
  const { cluster, plan, changes } = run;
  const ns = gatewayNamespace(plan);
  const addresses = await clientAddresses(run, node);
  // What the new gateway needs: its rights, middlewares and listeners.
  const others = changes('gateway').filter((change) => !isProgram(change));
  await applyPlanned(cluster, setupSet, others, run.signal);
  const wanted = buildHandoverPod(plan, node);
  const left = await cluster.get(podType, ns, handoverName);
  if (left === undefined || !(await isToStay(run, left, wanted))) {
    if (left !== undefined) {
      await (isReady(left) ? retire(run) : remove(run));
      await untilGone(run);
    }
    await cluster.create(podType, wanted);
  }
  await awaitRoutes(run, () => cluster.get(podType, ns, handoverName));
  await cluster.apply(serviceType, buildHandoverService(plan, addresses), { fieldManager: setupSet.manager, force: true });
  await sleep(settleMs, run.signal);
}

/** Returns when a new second gateway can have the name of the one that ends. */
async function untilGone({ cluster, plan, signal }: SetupRun): Promise<void> {
  const ns = gatewayNamespace(plan);
  const isGone = async (): Promise<true | undefined> => ((await cluster.get(podType, ns, handoverName)) === undefined ? true : undefined);
  await waitFor(isGone, { timeoutMs: startMs, describe: `the pod ${handoverName} to go`, signal });
}

/** Removes the second gateway at once. */
async function remove(run: SetupRun): Promise<void> {
  const { cluster, plan } = run;
  const ns = gatewayNamespace(plan);
  await cluster.delete(serviceType, ns, handoverName);
  if (await cluster.delete(podType, ns, handoverName, { gracePeriodSeconds: 0 })) await untilGone(run);
}

/** Leads connections to the first gateway again, which has read its routes, and ends the second one. */
async function retire({ cluster, plan, signal }: SetupRun): Promise<void> {
  const ns = gatewayNamespace(plan);
  await cluster.delete(serviceType, ns, handoverName);
  // Connections that exist stay with the second gateway; each of its answers ends one that is not new.
  await sleep(settleMs + handoverConnectionMs, signal);
  await cluster.delete(podType, ns, handoverName);
}

/**
 * Starts the second gateway if this setup replaces one that has ports of a node, and returns when it gets the connections. Reports why, if that is
 * not possible: apps cannot be reached for some seconds then, but the setup goes on.
 */
export async function beginHandover(run: SetupRun): Promise<void> {
  if (!needsHostPorts(run.plan) || !isGatewayReplaced(run)) return;
  const node = (await presentGateway(run))?.spec?.nodeName;
  if (node === undefined) return;
  run.report({ type: 'install-step', step: 'gateway-handover' });
  try {
    await begin(run, node);
  } catch (error) {
    throwIfAborted(run.signal);
    run.report({ type: 'gateway-gap', why: messageOf(error) });
    await remove(run);
  }
}

/** Removes the second gateway, also one that an interrupted setup left, when the first one has read its routes. */
export async function endHandover(run: SetupRun): Promise<void> {
  const { cluster, plan } = run;
  if (!needsHostPorts(plan)) return;
  const ns = gatewayNamespace(plan);
  const [pod, service]: [Pod | undefined, Service | undefined] = await Promise.all([
    cluster.get(podType, ns, handoverName),
    cluster.get(serviceType, ns, handoverName),
  ]);
  if (pod === undefined && service === undefined) return;
  await awaitRoutes(run, () => presentGateway(run));
  await retire(run);
}
