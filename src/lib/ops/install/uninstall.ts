// `kf uninstall`: takes away what setup marked as its own, in an order in which each part can still clean up behind itself.

import { namespaceBlockers } from '../../api/blockers.ts';
import { deploymentType, namespaceType, type Namespace } from '../../api/core.ts';
import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, finalizers, kinds, labels } from '../../api/group.ts';
import { resource, type KubeObject, type ResourceType } from '../../api/object.ts';
import type { CFOrg } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { waitFor } from '../../wait.ts';
import { controllerName } from '../../../templates/setup/controller.ts';
import { nodeNamespace, partOfLabel, rootNamespace, systemNamespace } from '../../../templates/setup/options.ts';
import type { Report } from '../events.ts';
import { describeObject, kindNamed } from './kinds.ts';
import { extendPullSecrets } from './pull-secrets.ts';

export interface UninstallContext {
  cluster: Cluster;
  report: Report;
  signal?: AbortSignal;
}

export interface UninstallResult {
  apps: number;
  /** With --keep-data apps go on serving. */
  keptApps: number;
  orgs: number;
  removed: string[];
  /** What stays although setup made it, with the reason. */
  kept: { object: string; reason: string }[];
}

/** An uninstall that is under way. */
interface Running extends UninstallContext {
  result: UninstallResult;
  /** The command that goes on where this one stopped. */
  again: string;
}

const selector = `${partOfLabel}=setup`;
const goneMs = 180_000;

/** The apps that an uninstall would take, as `org-namespace/name` with their display names. */
export async function listAppsOfInstallation(cluster: Cluster): Promise<{ space: string; name: string }[]> {
  const { items } = await listOrNone(cluster, kinds.app);
  return items.map((app) => ({ space: app.metadata.namespace ?? '', name: app.spec.displayName }));
}

/** A list that is empty when the kind itself is not there. */
async function listOrNone<T extends KubeObject>(cluster: Cluster, type: ResourceType<T>, labelSelector?: string): Promise<{ items: T[] }> {
  try {
    return await cluster.list(type, labelSelector === undefined ? {} : { labelSelector });
  } catch (error) {
    if (error instanceof KfError && error.code === 'not-found') return { items: [] };
    throw error;
  }
}

async function waitUntilGone(context: Running, what: string, look: () => Promise<string[]>): Promise<void> {
  context.report({ type: 'awaiting', what: `${what} to go` });
  let left: string[] = [];
  const isGone = async (): Promise<true | undefined> => {
    left = await look();
    return left.length === 0 ? true : undefined;
  };
  const late = (): KfError =>
    new KfError('timeout', `After ${goneMs / 1000} s these are still there: ${left.join(', ')}`, {
      hints: [`${context.again} goes on where it stopped.`],
    });
  const { signal } = context;
  await waitFor(isGone, { timeoutMs: goneMs, intervalMs: 250, describe: what, late, ...(signal === undefined ? {} : { signal }) });
}

function describeOrg(org: CFOrg): string {
  const why = findCondition(org, conditionTypes.ready);
  return `org ${org.spec.displayName}${why?.reason === 'Deleting' ? ` (${why.message})` : ''}`;
}

function describeNamespace(namespace: Namespace): string {
  return `namespace ${namespace.metadata.name ?? ''} (${namespaceBlockers(namespace)})`;
}

async function controllerRuns(cluster: Cluster): Promise<boolean> {
  const live = await cluster.get(deploymentType, systemNamespace, controllerName);
  return (live?.status?.availableReplicas ?? 0) > 0;
}

/** Orgs go while the controller runs, which empties their spaces and takes their namespaces. Without one there is nothing to wait for. */
async function removeOrgs(context: Running): Promise<number> {
  const { items } = await listOrNone(context.cluster, kinds.org);
  await Promise.all(
    items.map((org) => context.cluster.delete(kinds.org, org.metadata.namespace, org.metadata.name ?? '', { propagation: 'Background' })),
  );
  if (await controllerRuns(context.cluster))
    await waitUntilGone(context, 'the orgs', async () => (await listOrNone(context.cluster, kinds.org)).items.map(describeOrg));
  return items.length;
}

/** Returns when its pod has ended too: until then it would put finalizers back, and a setup would take the Deployment for present. */
async function removeController(context: Running): Promise<void> {
  const found = await context.cluster.delete(deploymentType, systemNamespace, controllerName, { propagation: 'Foreground' });
  if (!found) return;
  const named = `Deployment ${systemNamespace}/${controllerName}`;
  context.result.removed.push(named);
  await waitUntilGone(context, 'the controller', async () =>
    (await context.cluster.get(deploymentType, systemNamespace, controllerName)) === undefined ? [] : [named],
  );
}

/** Removes our finalizers from orgs and spaces, so that nothing hangs once the controller is gone. */
async function stripFinalizers(cluster: Cluster): Promise<void> {
  const own: string[] = [finalizers.org, finalizers.space];
  for (const type of [kinds.org, kinds.space]) {
    const { items } = await listOrNone<KubeObject>(cluster, type);
    for (const item of items) {
      const left = (item.metadata.finalizers ?? []).filter((name) => !own.includes(name));
      if (left.length === (item.metadata.finalizers ?? []).length) continue;
      const metadata = { finalizers: left, resourceVersion: item.metadata.resourceVersion };
      await cluster.mergePatch<KubeObject>(type, item.metadata.namespace, item.metadata.name ?? '', { metadata });
    }
  }
}

async function removeLabelled({ cluster, result }: Running, kind: string): Promise<void> {
  const type = kindNamed(kind);
  const { items } = await listOrNone(cluster, type, selector);
  for (const item of items) {
    await cluster.delete(
      type,
      item.metadata.namespace,
      item.metadata.name ?? '',
      item.metadata.uid === undefined ? {} : { uid: item.metadata.uid },
    );
    result.removed.push(describeObject({ ...item, kind }));
  }
}

interface Crd extends KubeObject {
  spec: { group: string; names: { plural: string; kind: string }; scope: string; versions: { name: string; served: boolean }[] };
}

const crdType = kindNamed('CustomResourceDefinition') as ResourceType<Crd>;

/** Kinds that setup brought stay when objects of somebody else still use them. */
async function removeKinds({ cluster, result }: Running): Promise<void> {
  const { items } = await listOrNone(cluster, crdType, selector);
  for (const crd of items) {
    const { group, names, scope, versions } = crd.spec;
    const served = versions.find((version) => version.served)?.name ?? '';
    const left = await listOrNone(cluster, resource(group, served, names.kind, names.plural, scope === 'Namespaced'));
    const isOurs = group.endsWith('cloudfoundry.org');
    if (!isOurs && left.items.length > 0) {
      result.kept.push({
        object: `CustomResourceDefinition ${crd.metadata.name ?? ''}`,
        reason: `${left.items.length} object(s) of this kind are not of kf`,
      });
      continue;
    }
    await cluster.delete(crdType, undefined, crd.metadata.name ?? '');
    result.removed.push(`CustomResourceDefinition ${crd.metadata.name ?? ''}`);
  }
}

/** A kind is gone when its last object is; a setup before that would take it for present. */
async function waitForKinds(context: Running): Promise<void> {
  const kept = context.result.kept.map(({ object }) => object);
  await waitUntilGone(context, 'the kinds', async () => {
    const { items } = await listOrNone(context.cluster, crdType, selector);
    return items.map(({ metadata }) => `CustomResourceDefinition ${metadata.name ?? ''}`).filter((named) => !kept.includes(named));
  });
}

/** Removes namespaces that kf has made. */
async function removeNamespaces(context: Running, what: string, isWanted: (namespace: Namespace) => boolean): Promise<void> {
  const left = async (): Promise<Namespace[]> => {
    const { items } = await context.cluster.list(namespaceType, { labelSelector: `${labels.managedBy}=kf` });
    return items.filter(isWanted);
  };
  const names = (await left()).map(({ metadata }) => metadata.name ?? '');
  for (const name of names) {
    await context.cluster.delete(namespaceType, undefined, name);
    context.result.removed.push(`Namespace ${name}`);
  }
  if (names.length > 0) await waitUntilGone(context, what, async () => (await left()).map(describeNamespace));
}

const isOfOrg = ({ metadata }: Namespace): boolean => metadata.labels?.[labels.orgGuid] !== undefined;
const isOwn = ({ metadata }: Namespace): boolean => [nodeNamespace, systemNamespace, rootNamespace].includes(metadata.name ?? '');

/** In the order in which they go. */
const programKinds = ['Deployment', 'Service'];
const gatewayKinds = ['HTTPRoute', 'Gateway', 'GatewayClass'];
const policyKinds = [
  'ValidatingAdmissionPolicyBinding',
  'ValidatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
];
const roleKinds = ['ClusterRoleBinding', 'ClusterRole'];

async function removeAllLabelled(context: Running, ...all: string[]): Promise<void> {
  for (const kind of all) await removeLabelled(context, kind);
}

/** Takes kf and all its apps from the cluster. @throws KfError `timeout` naming what does not go */
export async function uninstall(context: UninstallContext): Promise<UninstallResult> {
  const apps = (await listAppsOfInstallation(context.cluster)).length;
  const result: UninstallResult = { apps, keptApps: 0, orgs: 0, removed: [], kept: [] };
  const running: Running = { ...context, result, again: 'kf uninstall --yes' };
  result.orgs = await removeOrgs(running);
  context.report({ type: 'install-step', step: 'remove-programs' });
  await removeAllLabelled(running, ...gatewayKinds);
  await removeController(running);
  await removeAllLabelled(running, ...programKinds);
  await stripFinalizers(context.cluster);
  // None is left where a controller ran. Objects in them would pass for somebody else's when it comes to the kinds.
  await removeNamespaces(running, 'the namespaces of orgs and spaces', isOfOrg);
  context.report({ type: 'install-step', step: 'remove-kinds' });
  await removeAllLabelled(running, ...policyKinds, ...roleKinds);
  await removeKinds(running);
  await removeNamespaces(running, 'the namespaces', isOwn);
  await waitForKinds(running);
  context.report({ type: 'done' });
  return result;
}

/**
 * Removes the controller and its policies only: apps keep serving, registry and gateway stay, a later setup adopts everything.
 */
export async function uninstallKeepingData(context: UninstallContext): Promise<UninstallResult> {
  const keptApps = (await listAppsOfInstallation(context.cluster)).length;
  const result: UninstallResult = { apps: 0, keptApps, orgs: 0, removed: [], kept: [] };
  const running: Running = { ...context, result, again: 'kf uninstall --keep-data --yes' };
  context.report({ type: 'install-step', step: 'remove-controller' });
  await removeController(running);
  const until = await extendPullSecrets(context.cluster, Date.now());
  await removeAllLabelled(running, ...policyKinds);
  await stripFinalizers(context.cluster);
  if (until !== undefined) context.report({ type: 'credentials-end', day: new Date(until * 1000).toISOString().slice(0, 10) });
  context.report({ type: 'done' });
  return result;
}
