// Whether the cluster's network enforces NetworkPolicies: a connection that a policy allows, and the same one after that policy has gone.

import { randomUUID } from 'node:crypto';
import { podType, type Pod } from '../../api/pod-kind.ts';
import { networkPolicyType } from '../../api/network-policy.ts';
import { messageOf } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { waitFor } from '../../wait.ts';
import { buildConnector, buildListener, buildTestPolicy, type Reach } from '../../../templates/setup/network-test.ts';
import { buildInfo } from '../../../templates/setup/info.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import type { Report } from '../events.ts';
import { applyPlanned, marked, type ObjectSet } from './applier.ts';
import type { NetworkRequest } from './network.ts';

const podMs = 60_000;

/** Enforced or not; neither where it could not be found out, with the reason. */
export interface NetworkProof {
  enforced?: boolean;
  message?: string;
}

/** Looks at a pod until it shows what is wanted. @throws Error with the pod's own trouble when it does not in time */
async function watchPod<T>(cluster: Cluster, name: string, look: (pod: Pod) => T | undefined, signal?: AbortSignal): Promise<T> {
  let pod: Pod | undefined;
  const found = async (): Promise<T | undefined> => {
    pod = await cluster.get(podType, systemNamespace, name);
    return pod === undefined ? undefined : look(pod);
  };
  const late = (): Error => new Error(troubleOf(pod) ?? `the pod ${name} did not run within ${podMs / 1000} s`);
  return waitFor(found, { timeoutMs: podMs, intervalMs: 100, describe: name, late, signal });
}

function troubleOf(pod: Pod | undefined): string | undefined {
  const unplaced = pod?.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False')?.message;
  return unplaced ?? pod?.status?.containerStatuses?.[0]?.state?.waiting?.message;
}

/** The address of a pod whose container runs. */
function addressOf(pod: Pod): string | undefined {
  return pod.status?.containerStatuses?.[0]?.state?.running === undefined ? undefined : pod.status.podIP;
}

const outcomeOf = (pod: Pod): Reach | undefined =>
  pod.status?.containerStatuses?.[0]?.state?.terminated?.message?.trim() as Reach | undefined;

/** Finds out by two pods and a policy between them, in kf's own namespace, which is closed. Never throws but for an interruption. */
export async function proveNetwork(cluster: Cluster, image: string, signal?: AbortSignal): Promise<NetworkProof> {
  const id = randomUUID().slice(0, 8);
  const [listens, connects] = [`kf-network-test-${id}`, `kf-network-test-${id}-c`];
  const remove = (name: string): Promise<unknown> => cluster.delete(podType, systemNamespace, name, { gracePeriodSeconds: 0 });
  const removePolicy = (): Promise<unknown> => cluster.delete(networkPolicyType, systemNamespace, listens);
  const find = async (expected: Reach, address: string, name: string): Promise<Reach> => {
    await cluster.create(podType, buildConnector({ name, app: connects }, image, { address, expected }));
    try {
      return await watchPod(cluster, name, outcomeOf, signal);
    } finally {
      await remove(name);
    }
  };
  try {
    await cluster.create(networkPolicyType, buildTestPolicy(listens, connects));
    await cluster.create(podType, buildListener(listens, image));
    const address = await watchPod(cluster, listens, addressOf, signal);
    if ((await find('open', address, `${connects}-1`)) === 'closed') {
      return { message: 'A connection that a NetworkPolicy allows does not get through' };
    }
    await removePolicy();
    return { enforced: (await find('closed', address, `${connects}-2`)) === 'closed' };
  } catch (error) {
    signal?.throwIfAborted();
    return { message: messageOf(error) };
  } finally {
    await Promise.all([remove(listens), removePolicy()]);
  }
}

/** What holds between pods after this setup. */
export interface NetworkState extends NetworkProof {
  policies: 'on' | 'off';
}

/** Starts the proof where nothing is known yet, or where the operator asks for policies by name; it runs beside the rest of setup. */
export function startNetworkProof(
  cluster: Cluster,
  plan: SetupPlan,
  request: NetworkRequest,
  signal?: AbortSignal,
): Promise<NetworkProof> | undefined {
  const { network } = plan;
  const isKnown = network?.enforced !== undefined && request.networkPolicies === undefined;
  if (network === undefined || isKnown) return undefined;
  const proof = proveNetwork(cluster, plan.controllerImage ?? plan.images.node, signal);
  // Setup may end for another reason before it asks.
  proof.catch(() => undefined);
  return proof;
}

/** Waits for the proof and writes it into `kf-info`, where it differs from what stands there. */
export async function settleNetwork(
  context: { cluster: Cluster; report: Report; set: ObjectSet },
  plan: SetupPlan,
  proof: Promise<NetworkProof> | undefined,
): Promise<NetworkState> {
  const { network } = plan;
  if (network === undefined) return { policies: 'off' };
  if (proof === undefined) return { policies: 'on', ...(network.enforced === undefined ? {} : { enforced: network.enforced }) };
  context.report({ type: 'install-step', step: 'network-proof' });
  const { enforced, message } = await proof;
  if (enforced !== undefined && enforced !== network.enforced) {
    const [object] = buildInfo({ ...plan, network: { ...network, enforced } });
    if (object !== undefined) await applyPlanned(context.cluster, context.set, [{ action: 'change', object: marked(context.set, object) }]);
  }
  return { policies: 'on', ...(enforced === undefined ? {} : { enforced }), ...(message === undefined ? {} : { message }) };
}
