// The requirements that setup checks before it writes anything: the API server's version, existing programs, storage, the Gateway API, and the
// caller's rights.

import { deploymentType, nodeType, secretType, serviceType, storageClassType } from '../../api/core.ts';
import { podType } from '../../api/pod-kind.ts';
import { kinds, labels, places } from '../../api/group.ts';
import { resource, type KubeObject, type ResourceType, type Stored } from '../../api/object.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { servedGatewayLabel } from '../../../templates/setup/network-policies.ts';
import { rootNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import type { GatewayFinding } from '../../events.ts';
import { defaultDomain } from './defaults.ts';
import { kindNamed } from './kinds.ts';
import { checkIssuer } from './issuer.ts';
import { getIfAny } from './present.ts';
import { checkTlsSecrets } from './tls-secrets.ts';

/** From this minor version on there are CEL in CRDs, ValidatingAdmissionPolicy v1, `preStop.sleep` and the pod-index label. */
const oldestMinor = 30;

export interface ClusterFacts {
  version: string;
  hasGatewayApi: boolean;
  /** It serves MutatingAdmissionPolicy v1: since 1.36, unless it was switched off. */
  hasMutatingPolicies: boolean;
  storageClasses: string[];
  /** The default StorageClass, or undefined. */
  defaultStorageClass?: string;
  exposure: 'hostport' | 'loadbalancer';
  nodes: number;
}

const crdType = resource('apiextensions.k8s.io', 'v1', 'CustomResourceDefinition', 'customresourcedefinitions', false);

async function ask(cluster: Cluster, path: string): Promise<{ status: number; text: string }> {
  const { status, body } = await cluster.raw({ method: 'GET', path });
  let text = '';
  for await (const chunk of body) text += String(chunk);
  return { status, text };
}

async function serverVersion(cluster: Cluster): Promise<string> {
  const { status, text } = await ask(cluster, '/version');
  if (status !== 200) throw new KfError('unreachable', `Error from Kubernetes: GET /version answered ${status}: ${text.slice(0, 200)}`);
  const { major, minor, gitVersion } = JSON.parse(text) as { major: string; minor: string; gitVersion: string };
  if (Number(major) < 1 || (Number(major) === 1 && Number.parseInt(minor, 10) < oldestMinor)) {
    throw new KfError(
      'failed',
      `Kubernetes ${gitVersion} is too old: kf needs ValidatingAdmissionPolicy v1 and sleep hooks, which came with 1.${oldestMinor}.`,
    );
  }
  return gitVersion;
}

/** Asks the API server's own list, because the version alone does not show it. */
async function servesMutatingPolicies(cluster: Cluster): Promise<boolean> {
  const { group: apiGroup, version, plural } = kindNamed('MutatingAdmissionPolicy');
  const { status, text } = await ask(cluster, `/apis/${apiGroup}/${version}`);
  if (status !== 200) return false;
  const { resources = [] } = JSON.parse(text) as { resources?: { name: string }[] };
  return resources.some(({ name }) => name === plural);
}

/** `loadbalancer` if the cluster visibly assigns addresses, otherwise ports of the nodes. */
async function findExposure(cluster: Cluster): Promise<{ exposure: 'hostport' | 'loadbalancer'; nodes: number }> {
  const [nodeList, serviceList] = await Promise.all([cluster.list(nodeType), cluster.list(serviceType)]);
  const clouds = /^(aws|gce|azure|digitalocean|openstack|linode|hcloud):/;
  const balanced = serviceList.items.some(
    (item) => item.spec?.type === 'LoadBalancer' && (item.status?.loadBalancer?.ingress?.length ?? 0) > 0,
  );
  const cloud = nodeList.items.some((item) => clouds.test((item.spec as { providerID?: string } | undefined)?.providerID ?? ''));
  return { exposure: balanced || cloud ? 'loadbalancer' : 'hostport', nodes: nodeList.items.length };
}

async function refuseBesideKorifi(cluster: Cluster): Promise<void> {
  const korifi = await cluster.get(deploymentType, 'korifi', 'korifi-controllers-controller-manager');
  if (korifi === undefined) return;
  throw new KfError('conflict', "Korifi's own controllers run in this cluster (namespace 'korifi'); kf installs nothing over them.", {
    hints: ['Take another cluster, or remove Korifi first.'],
  });
}

/** Inspects the cluster before anything is written. @throws KfError naming what is missing and what to do */
export async function inspectCluster(cluster: Cluster): Promise<ClusterFacts> {
  const [version, exposure, classes, gatewayApi, hasMutatingPolicies] = await Promise.all([
    serverVersion(cluster),
    findExposure(cluster),
    cluster.list(storageClassType),
    cluster.get(crdType, undefined, 'httproutes.gateway.networking.k8s.io'),
    servesMutatingPolicies(cluster),
    refuseBesideKorifi(cluster),
  ]);
  const isDefault = (item: KubeObject) => item.metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true';
  const defaultStorageClass = classes.items.find(isDefault)?.metadata.name;
  return {
    version,
    ...exposure,
    hasGatewayApi: gatewayApi !== undefined,
    hasMutatingPolicies,
    storageClasses: classes.items.map((item) => item.metadata.name),
    ...defined({ defaultStorageClass }),
  };
}

/** Rejects an in-cluster registry if there is no storage for its data. */
export function checkStorage(facts: ClusterFacts, wanted: { storageClass?: string; outsideRegistry: boolean }): void {
  if (wanted.outsideRegistry) return;
  if (wanted.storageClass !== undefined && !facts.storageClasses.includes(wanted.storageClass)) {
    throw new KfError('not-found', `There is no StorageClass '${wanted.storageClass}'.`, {
      hints: [facts.storageClasses.length === 0 ? 'This cluster has none.' : `There are: ${facts.storageClasses.join(', ')}`],
    });
  }
  if (wanted.storageClass !== undefined || facts.defaultStorageClass !== undefined) return;
  throw new KfError('failed', 'The registry needs a volume, and this cluster has no default StorageClass.', {
    hints: ['kf setup --storage-class NAME', 'kf setup --registry HOST/PREFIX', 'kubectl get storageclasses'],
  });
}

interface GatewayListeners extends KubeObject {
  spec?: { listeners?: { name: string; protocol: string; allowedRoutes?: { namespaces?: { from?: string; selector?: unknown } } }[] };
}

const gatewayType = kindNamed('Gateway') as ResourceType<GatewayListeners>;
const mark = `${labels.managedBy}=kf`;

/**
 * Checks from which namespaces the operator's Gateway accepts routes. If it accepts them from everywhere, everybody with the right to make
 * HTTPRoutes can take the host of an app, and no role of kf can prevent that. If it accepts them only from its own namespace, no app can be
 * reached.
 */
function listenersFinding(gateway: Stored<GatewayListeners>): GatewayFinding | undefined {
  const { namespace, name } = gateway.metadata;
  const listeners = (gateway.spec?.listeners ?? []).filter(({ protocol }) => protocol === 'HTTP' || protocol === 'HTTPS');
  const from = listeners.map(({ allowedRoutes }) => allowedRoutes?.namespaces?.from ?? 'Same');
  if (from.every((one) => one === 'Same')) return { type: 'gateway-closed', namespace, name, label: mark };
  return from.includes('All') ? { type: 'gateway-open', namespace, name, label: mark } : undefined;
}

/**
 * The policies of apps and of kf allow traffic from pods of the Gateway's namespace. If an implementation runs its pods elsewhere, it reaches none
 * of them.
 */
async function dataPlaneFinding(cluster: Cluster, { gateway: { existing }, network }: SetupPlan): Promise<GatewayFinding | undefined> {
  if (existing === undefined || network === undefined || network.ingress.length > 0) return undefined;
  const { namespace, name } = existing;
  const pods = await cluster.list(podType, { ns: namespace, labelSelector: `${servedGatewayLabel}=${name}` });
  return pods.items.length > 0 ? undefined : { type: 'gateway-without-pods', namespace, name, label: servedGatewayLabel };
}

async function checkGateway(cluster: Cluster, plan: SetupPlan): Promise<GatewayFinding[]> {
  const { existing, className } = plan.gateway;
  const gateway = existing === undefined ? undefined : await getIfAny(cluster, gatewayType, existing.namespace, existing.name);
  if (existing !== undefined && gateway === undefined) {
    throw new KfError('not-found', `There is no Gateway '${existing.name}' in namespace '${existing.namespace}'.`, {
      hints: ['kubectl get gateways -A'],
    });
  }
  if (
    existing === undefined &&
    className !== undefined &&
    (await getIfAny(cluster, kindNamed('GatewayClass'), undefined, className)) === undefined
  ) {
    throw new KfError('not-found', `There is no GatewayClass '${className}'.`, { hints: ['kubectl get gatewayclasses'] });
  }
  const findings = [gateway && listenersFinding(gateway), await dataPlaneFinding(cluster, plan)];
  return findings.filter((finding) => finding !== undefined);
}

/** The name of the domain cannot change later, because routes contain it. */
async function checkDomain(cluster: Cluster, wanted: string): Promise<void> {
  const name = (await getIfAny(cluster, kinds.domain, rootNamespace, defaultDomain))?.spec.name;
  if (name === undefined || name === wanted) return;
  throw new KfError('conflict', `This installation's default domain is '${name}'; it cannot become '${wanted}' in place.`, {
    hints: [`kf setup --domain ${name}`, `kubectl delete cfdomain -n ${rootNamespace} ${defaultDomain}`],
  });
}

/** The operator provides an outside registry's credentials: one Secret for the kubelet, one for uploads and builds. */
async function checkRegistry(cluster: Cluster, registry: NonNullable<SetupPlan['registry']>): Promise<void> {
  const names = [places.pullSecret, places.pushSecret];
  const found = await Promise.all(names.map((name) => cluster.get(secretType, rootNamespace, name)));
  const lacking = names.filter((_, index) => found[index] === undefined);
  if (lacking.length === 0) return;
  throw new KfError(
    'not-found',
    `The credentials of ${registry.host} are missing: Secret ${lacking.map((name) => `'${name}'`).join(' and ')} in namespace '${rootNamespace}'.`,
    {
      hints: [
        `kubectl create namespace ${rootNamespace}`,
        `kubectl create secret docker-registry ${places.pullSecret} -n ${rootNamespace} --docker-server=${registry.host} --docker-username=USER --docker-password=PASSWORD`,
        `kubectl create secret generic ${places.pushSecret} -n ${rootNamespace} --from-literal=username=USER --from-literal=password=PASSWORD`,
      ],
    },
  );
}

/** Checks that named objects exist and that fixed settings do not change, before anything is written. Returns what the operator must know. @throws KfError */
export async function checkPlan(cluster: Cluster, plan: SetupPlan): Promise<GatewayFinding[]> {
  const [findings] = await Promise.all([
    checkGateway(cluster, plan),
    checkDomain(cluster, plan.domain),
    plan.registry === undefined ? undefined : checkRegistry(cluster, plan.registry),
    checkTlsSecrets(cluster, plan.gateway.https?.secrets ?? []),
    checkIssuer(cluster, plan),
  ]);
  return findings;
}
