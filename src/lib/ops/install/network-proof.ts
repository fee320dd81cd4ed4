// Tests whether the cluster's network enforces NetworkPolicies: tries a connection that a policy allows, and the same one after the policy is
// deleted.

import { randomUUID } from 'node:crypto';
import { podType, type Pod } from '../../api/pod-kind.ts';
import { networkPolicyType } from '../../api/network-policy.ts';
import { defined } from '../../defined.ts';
import { messageOf } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { waitFor } from '../../wait.ts';
import { buildConnector, buildListener, buildTestPolicy, type Reach } from '../../../templates/setup/network-test.ts';
import { buildInfo } from '../../../templates/setup/info.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import type { Report } from '../../events.ts';
import { applyPlanned, marked, type ObjectSet } from './applier.ts';
import { setupObject } from './kinds.ts';
import type { NetworkRequest } from './network.ts';

const podMs = 60_000;

/** Whether policies are enforced; if that is unknown, the reason. */
export interface NetworkProof {
  enforced?: boolean;
  message?: string;
}

/** Watches a pod until `look` returns a value. @throws Error with the pod's own problem when that takes too long */
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

/** The address of a pod whose container is running. */
function addressOf(pod: Pod): string | undefined {
  return pod.status?.containerStatuses?.[0]?.state?.running === undefined ? undefined : pod.status.podIP;
}

const outcomeOf = (pod: Pod): Reach | undefined =>
  pod.status?.containerStatuses?.[0]?.state?.terminated?.message?.trim() as Reach | undefined;

/** Tests with two pods and a policy between them, in kf's own namespace, where other traffic is blocked. Throws only when interrupted. */
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

/** The state of policies between pods after this setup. */
export interface NetworkState extends NetworkProof {
  policies: 'on' | 'off';
}

/** Starts the test if nothing is known yet, or if the operator explicitly asks for policies; it runs beside the rest of setup. */
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
  // Setup may end for another reason before it awaits this promise.
  proof.catch(() => undefined);
  return proof;
}

/** Waits for the test and writes a changed result into `kf-info`. */
export async function settleNetwork(
  context: { cluster: Cluster; report: Report; set: ObjectSet },
  plan: SetupPlan,
  proof: Promise<NetworkProof> | undefined,
): Promise<NetworkState> {
  const { network } = plan;
  if (network === undefined) return { policies: 'off' };
  if (proof === undefined) return { policies: 'on', ...defined({ enforced: network.enforced }) };
  context.report({ type: 'install-step', step: 'network-proof' });
  const { enforced, message } = await proof;
  if (enforced !== undefined && enforced !== network.enforced) {
    const objects = buildInfo({ ...plan, network: { ...network, enforced } }).map((object) => marked(context.set, setupObject(object)));
    await applyPlanned(
      context.cluster,
      context.set,
      objects.map((object) => ({ action: 'change', object })),
    );
  }
  return { policies: 'on', ...defined({ enforced, message }) };
}
