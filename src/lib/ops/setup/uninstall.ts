// `kf uninstall`: takes away what setup marked as its own, in an order in which each part can still clean up behind itself.

import { setTimeout as sleep } from 'node:timers/promises';
import { namespaceType } from '../../api/core.ts';
import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, finalizers, kinds, labels } from '../../api/group.ts';
import { resource, type KubeObject, type ResourceType } from '../../api/object.ts';
import type { CFOrg } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { controllerName } from '../../../templates/setup/controller.ts';
import { nodeNamespace, partOfLabel, rootNamespace, systemNamespace } from '../../../templates/setup/options.ts';
import type { Reporter } from '../reporter.ts';
import { describeObject, kindNamed } from './kinds.ts';

export interface UninstallContext {
  cluster: Cluster;
  reporter: Reporter;
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

async function waitUntilGone(context: UninstallContext, what: string, look: () => Promise<string[]>): Promise<void> {
  const deadline = Date.now() + goneMs;
  context.reporter.step(`Waiting for ${what} to go`);
  for (;;) {
    context.signal?.throwIfAborted();
    const left = await look();
    if (left.length === 0) return;
    if (Date.now() > deadline) {
      throw new KfError('timeout', `After ${goneMs / 1000} s these are still there: ${left.join(', ')}`, {
        hints: ['kf uninstall --yes goes on where it stopped.'],
      });
    }
    await sleep(250, undefined, context.signal === undefined ? {} : { signal: context.signal });
  }
}

function describeOrg(org: CFOrg): string {
  const why = findCondition(org, conditionTypes.ready);
  return `org ${org.spec.displayName}${why?.reason === 'Deleting' ? ` (${why.message})` : ''}`;
}

/** Orgs go while the controller runs, which empties their spaces and takes their namespaces. */
async function removeOrgs(context: UninstallContext): Promise<number> {
  const { items } = await listOrNone(context.cluster, kinds.org);
  await Promise.all(
    items.map((org) => context.cluster.delete(kinds.org, org.metadata.namespace, org.metadata.name ?? '', { propagation: 'Background' })),
  );
  await waitUntilGone(context, 'the orgs', async () => (await listOrNone(context.cluster, kinds.org)).items.map((org) => describeOrg(org)));
  return items.length;
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

async function removeLabelled(context: UninstallContext, kind: string, result: UninstallResult): Promise<void> {
  const type = kindNamed(kind);
  const { items } = await listOrNone(context.cluster, type, selector);
  for (const item of items) {
    await context.cluster.delete(
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

/** Kinds that setup brought stay when objects of somebody else still use them. */
async function removeKinds(context: UninstallContext, result: UninstallResult): Promise<void> {
  const type = kindNamed('CustomResourceDefinition') as ResourceType<Crd>;
  const { items } = await listOrNone(context.cluster, type, selector);
  for (const crd of items) {
    const { group, names, scope, versions } = crd.spec;
    const served = versions.find((version) => version.served)?.name ?? '';
    const left = await listOrNone(context.cluster, resource(group, served, names.kind, names.plural, scope === 'Namespaced'));
    const isOurs = group.endsWith('cloudfoundry.org');
    if (!isOurs && left.items.length > 0) {
      result.kept.push({
        object: `CustomResourceDefinition ${crd.metadata.name ?? ''}`,
        reason: `${left.items.length} object(s) of this kind are not of kf`,
      });
      continue;
    }
    await context.cluster.delete(type, undefined, crd.metadata.name ?? '');
    result.removed.push(`CustomResourceDefinition ${crd.metadata.name ?? ''}`);
  }
}

async function removeNamespaces(context: UninstallContext, result: UninstallResult): Promise<void> {
  const own = [nodeNamespace, systemNamespace, rootNamespace];
  const ours = async (): Promise<string[]> => {
    const { items } = await context.cluster.list(namespaceType, { labelSelector: `${labels.managedBy}=kf` });
    return items.map((item) => item.metadata.name ?? '').filter((name) => own.includes(name));
  };
  for (const name of await ours()) {
    await context.cluster.delete(namespaceType, undefined, name);
    result.removed.push(`Namespace ${name}`);
  }
  await waitUntilGone(context, 'the namespaces', ours);
}

/** Cluster-wide kinds in the order in which they go. */
const clusterWideKinds = ['ValidatingAdmissionPolicyBinding', 'ValidatingAdmissionPolicy', 'ClusterRoleBinding', 'ClusterRole'];

/** Takes kf and all its apps from the cluster. @throws KfError `timeout` naming what does not go */
export async function uninstall(context: UninstallContext): Promise<UninstallResult> {
  const apps = (await listAppsOfInstallation(context.cluster)).length;
  const result: UninstallResult = { apps, keptApps: 0, orgs: 0, removed: [], kept: [] };
  result.orgs = await removeOrgs(context);
  context.reporter.step('Removing gateway, controller and registry');
  for (const kind of ['HTTPRoute', 'Gateway', 'GatewayClass', 'Deployment', 'Service']) await removeLabelled(context, kind, result);
  await stripFinalizers(context.cluster);
  context.reporter.step('Removing policies, kinds and namespaces');
  for (const kind of clusterWideKinds) await removeLabelled(context, kind, result);
  await removeKinds(context, result);
  await removeNamespaces(context, result);
  context.reporter.done();
  return result;
}

/**
 * Removes the controller and its policies only: apps keep serving, registry and gateway stay, a later setup adopts everything.
 */
export async function uninstallKeepingData(context: UninstallContext): Promise<UninstallResult> {
  const keptApps = (await listAppsOfInstallation(context.cluster)).length;
  const result: UninstallResult = { apps: 0, keptApps, orgs: 0, removed: [], kept: [] };
  context.reporter.step('Removing the controller; apps, registry and gateway stay');
  const type = kindNamed('Deployment');
  if (await context.cluster.delete(type, systemNamespace, controllerName, { propagation: 'Foreground' })) {
    result.removed.push(`Deployment ${systemNamespace}/${controllerName}`);
  }
  for (const kind of ['ValidatingAdmissionPolicyBinding', 'ValidatingAdmissionPolicy']) await removeLabelled(context, kind, result);
  await stripFinalizers(context.cluster);
  context.reporter.done();
  return result;
}
