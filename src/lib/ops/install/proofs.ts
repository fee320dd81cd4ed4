// Practical tests: a node pulls an image that was pushed through the push port, and a request from here reaches the cluster.

import { randomUUID } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { issuedPrefix } from '../../api/cert-manager.ts';
import { certificateFields } from '../../api/certificates.ts';
import { configMapType, secretType } from '../../api/core.ts';
import { places } from '../../api/group.ts';
import { podType, type Pod } from '../../api/pod-kind.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { sleep, waitFor } from '../../wait.ts';
import { checkHost } from '../../../templates/setup/check-route.ts';
import { gatewayName, traefikName } from '../../../templates/setup/gateway.ts';
import { gatewayNamespace } from '../../../templates/setup/namespaces.ts';
import { outsideAddress } from '../../../templates/setup/info.ts';
import { rootNamespace, systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { buildPullTest } from '../../../templates/setup/pull-test.ts';
import { defaultDomain } from './defaults.ts';
import { reachThroughGateway, urlOf, type GatewayAddress } from '../routes/http-probe.ts';

const pullTestMs = 60_000;
/** From then on a refusal counts. */
const refusedMs = 10_000;
const nextPullMs = 2_000;
const pullFailures = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ImageInspectError', 'RegistryUnavailable'];

/** The scheduler's message why it has no node for a pod. */
function unplacedMessage(pod: Pod | undefined): string | undefined {
  return pod?.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False')?.message;
}

/** The state of the pod's image: pulled, failed with the kubelet's message, or not yet known. */
export function judgePull(pod: Pod | undefined): { pulled: boolean; failure?: string } {
  const unplaced = unplacedMessage(pod);
  if (unplaced !== undefined) return { pulled: false, failure: unplaced };
  const state = pod?.status?.containerStatuses?.[0]?.state;
  if (state?.waiting?.reason !== undefined && pullFailures.includes(state.waiting.reason)) {
    return { pulled: false, failure: `${state.waiting.reason}: ${state.waiting.message ?? ''}` };
  }
  // Messages of a container that could not be created or started. The image holds no program, so such a message means that the image was pulled.
  const beyondPull =
    state?.terminated !== undefined ||
    state?.running !== undefined ||
    /^(RunContainer|CreateContainer|Start)Error$/.test(state?.waiting?.reason ?? '');
  return { pulled: beyondPull };
}

export interface PullTest {
  image: string;
  /** Name of the pull secret, in kf's own namespace. */
  pullSecret: string;
  /** The node that pulls; if left out, the scheduler chooses. */
  node?: string;
}

function pullError(node: string | undefined, failure: string): KfError {
  const message = `Node ${node ?? '(any)'} could not pull from the registry that setup installed: ${failure} Nothing but the registry was installed.`;
  return new KfError('failed', message, {
    hints: [
      'kube-proxy must serve node ports on localhost (iptables or ipvs mode); with another mode use an outside registry:',
      'kf setup --registry HOST/PREFIX',
    ],
  });
}

/**
 * Lets a node pull an image. The first refusals may come before kube-proxy has set up the node port, or before the kubelet has read the pull secret, for
 * which it waits one second only. A kubelet tries a pod's image again after ten seconds at the earliest, and that of a new pod at once.
 * @throws KfError `failed` with the kubelet's own message, or the scheduler's
 */
export async function provePull(cluster: Cluster, { image, pullSecret, node }: PullTest, signal?: AbortSignal): Promise<void> {
  const started = performance.now();
  const pods: string[] = [];
  let failure: string | undefined;
  const late = (): KfError => pullError(node, failure ?? 'no answer from the kubelet within 60 s');
  const addPod = async (): Promise<void> => {
    const name = `kf-pull-test-${randomUUID().slice(0, 8)}`;
    pods.push(name);
    await cluster.create(podType, buildPullTest(systemNamespace, name, image, pullSecret, node));
  };
  const isPulled = async (): Promise<true | undefined> => {
    const verdict = judgePull(await cluster.get(podType, systemNamespace, pods.at(-1) ?? ''));
    if (verdict.pulled) return true;
    if (verdict.failure === undefined) return undefined;
    ({ failure } = verdict);
    if (performance.now() - started > refusedMs) throw late();
    await sleep(nextPullMs, signal);
    await addPod();
    return undefined;
  };
  try {
    await addPod();
    await waitFor(isPulled, { timeoutMs: pullTestMs, intervalMs: 250, describe: image, late, ...defined({ signal }) });
  } finally {
    for (const name of pods) await cluster.delete(podType, systemNamespace, name, { gracePeriodSeconds: 0 });
  }
}

interface Reach {
  url: string;
  reachable: boolean;
  /** The problem, as one sentence. */
  message?: string;
  /** Commands that reach the gateway another way, or show what it needs. */
  hints?: string[];
}

/** The result for http (or https, if http is redirected to it), and for https with a certificate that a client can check. */
export interface ReachResult extends Reach {
  https?: Reach;
}

const sentences = {
  'no-name': (host: string) => `The name ${host} does not resolve here; point *.${host.split('.').slice(1).join('.')} at the gateway.`,
  'no-connection': () => 'Nothing answers at the address and port of the gateway from this machine.',
  timeout: () => 'The gateway did not answer from this machine in time.',
  other: () => 'The request through the gateway failed.',
};

/** A command that reaches the gateway without name and address: through the API server. */
export function wayAround(plan: SetupPlan): string[] {
  const { existing, className } = plan.gateway;
  const namespace = gatewayNamespace(plan);
  if (existing !== undefined || className !== undefined)
    return [`kubectl get gateway -n ${namespace} ${existing?.name ?? gatewayName} -o yaml`];
  return [
    `kubectl port-forward -n ${namespace} deployment/${traefikName} 8000`,
    `curl -H 'Host: ${checkHost(plan)}' http://127.0.0.1:8000/healthz`,
  ];
}

/** Requests the check route from here until it answers 200 or `timeoutMs` is over; never throws. */
export async function proveReach(plan: SetupPlan, timeoutMs: number, signal?: AbortSignal): Promise<Reach> {
  const host = checkHost(plan);
  const gateway = outsideAddress(plan.gateway);
  const url = urlOf(gateway, host);
  const deadline = performance.now() + timeoutMs;
  const look = async (): Promise<Reach | undefined> => {
    const reached = await reachThroughGateway(gateway, host, '/healthz', 2000);
    if (reached.ok && reached.status === 200) return { url, reachable: true };
    if (performance.now() < deadline) return undefined;
    const message = reached.ok
      ? `The gateway answers ${reached.status} for ${host}.`
      : `${sentences[reached.problem](host)} (${reached.message})`;
    const lookAt = `kubectl get httproute -n ${systemNamespace} kf-setup-check -o yaml`;
    return { url, reachable: false, message, hints: reached.ok ? [lookAt] : [...wayAround(plan), lookAt] };
  };
  return waitFor(look, { timeoutMs: Infinity, intervalMs: 200, describe: url, signal });
}

/** The certificate of kf's authority; undefined until the controller has made it. */
async function authorityCertificate(cluster: Cluster): Promise<string | undefined> {
  const published = await cluster.get(configMapType, rootNamespace, places.authorityCertificate);
  return published?.data?.[certificateFields.authority];
}

/** Authorities of the default domain's own certificate, if its Secret names them, as those of cert-manager do. */
async function otherAuthorities(cluster: Cluster, plan: SetupPlan): Promise<string[]> {
  const { secrets = [], issuer } = plan.gateway.https ?? {};
  const issued = { namespace: gatewayNamespace(plan), name: `${issuedPrefix}${defaultDomain}` };
  const all = [...secrets.filter(({ domain }) => domain === plan.domain), ...(issuer === undefined ? [] : [issued])];
  const found = await Promise.all(all.map(({ namespace, name }) => cluster.get(secretType, namespace, name)));
  return found.flatMap((secret) => {
    const text = secret?.data?.[certificateFields.authority];
    return text === undefined || text === '' ? [] : [Buffer.from(text, 'base64').toString('utf8')];
  });
}

/**
 * Requests the check route with https, and trusts kf's authority and those that this machine trusts, until it answers 200 or `timeoutMs` is over.
 * @returns undefined when setup manages no https
 */
export async function proveHttps(cluster: Cluster, plan: SetupPlan, timeoutMs: number, signal?: AbortSignal): Promise<Reach | undefined> {
  const { https, address } = plan.gateway;
  if (https === undefined) return undefined;
  const host = checkHost(plan);
  const gateway: GatewayAddress = { scheme: 'https', port: https.port, ...defined({ address }) };
  const url = urlOf(gateway, host);
  const deadline = performance.now() + timeoutMs;
  const look = async (): Promise<Reach | undefined> => {
    const authority = await authorityCertificate(cluster);
    const trusted = [...rootCertificates, ...(authority === undefined ? [] : [authority]), ...(await otherAuthorities(cluster, plan))];
    const reached = await reachThroughGateway(gateway, host, '/healthz', 2000, { trusted });
    if (reached.ok && reached.status === 200) return { url, reachable: true };
    if (performance.now() < deadline) return undefined;
    const answer = reached.ok ? `the gateway answers ${reached.status}` : reached.message;
    const hints = [
      `kubectl get gateway -n ${gatewayNamespace(plan)} ${gatewayName} -o yaml`,
      `kubectl get secret -n ${systemNamespace} ${places.gatewayCertificate}`,
    ];
    return { url, reachable: false, message: `${url} does not answer from here: ${answer}.`, hints };
  };
  return waitFor(look, { timeoutMs: Infinity, intervalMs: 200, describe: url, signal });
}
