// `kf setup`: look, plan, apply in order, prove, and say what is there now.

import { randomUUID } from 'node:crypto';
import { configMapType, roleBindingType } from '../../api/core.ts';
import { networkPolicyType } from '../../api/network-policy.ts';
import type { KubeObject, ResourceType } from '../../api/object.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { readGateStatus } from '../registry/gate.ts';
import { controllerName } from '../../../templates/setup/controller.ts';
import { traefikName } from '../../../templates/setup/gateway.ts';
import { gatewayNamespace } from '../../../templates/setup/namespaces.ts';
import { nodeNamespace, partOfLabel, rootNamespace, systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { pagesName } from '../../../templates/setup/pages.ts';
import { registryName } from '../../../templates/setup/registry.ts';
import type { InstallStep, Report } from '../events.ts';
import { applyPlanned, planObjects, pruneSet, type ObjectSet, type PlannedChange } from './applier.ts';
import { readPrograms } from './assets.ts';
import { withBuildEnvRevision } from './build-env.ts';
import { buildDefaults, withDefaultGuids, type Defaults } from './defaults.ts';
import { allObjects, buildInstallation, type Installation } from './installation.ts';
import { readNetwork } from './network.ts';
import { settleNetwork, startNetworkProof, type NetworkState } from './network-proof.ts';
import { checkPlan, checkStorage, inspectCluster, type ClusterFacts } from './preflight.ts';
import { proveReach, type ReachResult } from './proofs.ts';
import { ensureRegistryKey, openRegistryKey } from '../registry/key.ts';
import { proveRegistry } from './registry-proof.ts';
import { keptSettings, reportSettings, settle, type SetupOrder, type SettingsReport } from './kept-settings.ts';
import { recordedInfo } from './recorded-info.ts';
import { resolvePlan } from './request.ts';
import { sumRequests, type RequestedResources } from './requests.ts';
import { waitForCondition, waitForDeployment } from './waits.ts';

export interface SetupResult {
  kubernetes: string;
  version: string;
  created: number;
  changed: number;
  unchanged: number;
  removed: string[];
  requests: RequestedResources;
  settings: SettingsReport;
  network: NetworkState;
  reach: ReachResult;
  domain: string;
  org: { name: string; guid: string };
  space: { name: string; guid: string };
}

export interface SetupContext {
  cluster: Cluster;
  report: Report;
  version: string;
  /** Hears which settings stay and which change, as soon as they are known; a dry run tells it too. */
  onSettings?: (report: SettingsReport) => void;
  /** Hears what is going to be written, before anything is. */
  onPlan?: (plan: { changes: PlannedChange[]; requests: RequestedResources }) => void;
  signal?: AbortSignal;
}

/** Where an earlier setup may have left what this one does not install: programs under another name, rights that the controller needs no longer, policies that were switched off. */
const outdated: { type: ResourceType; ns: string }[] = [
  { type: configMapType, ns: systemNamespace },
  { type: roleBindingType, ns: systemNamespace },
  { type: roleBindingType, ns: rootNamespace },
  { type: networkPolicyType, ns: systemNamespace },
  { type: networkPolicyType, ns: nodeNamespace },
];
const setupSet: ObjectSet = { manager: 'kf-setup', label: { key: partOfLabel, value: 'setup' } };
const startMs = 180_000;

/** The objects that a setup with these settings would apply; nothing is written. */
export async function previewSetup(context: SetupContext, order: SetupOrder): Promise<KubeObject[]> {
  const { plan, facts } = await prepare(context, order);
  return allObjects(await buildInstallation(plan, await readPrograms(), facts));
}

interface Prepared {
  plan: SetupPlan;
  facts: ClusterFacts;
  settings: SettingsReport;
}

async function prepare(context: SetupContext, order: SetupOrder): Promise<Prepared> {
  context.report({ type: 'install-step', step: 'inspect' });
  const { cluster } = context;
  const [facts, recorded] = await Promise.all([inspectCluster(cluster), recordedInfo(cluster)]);
  const [network, kept] = await Promise.all([readNetwork(cluster, recorded.info), keptSettings(cluster, order, recorded)]);
  if (recorded.fault !== undefined) context.report({ type: 'info-broken', fault: recorded.fault });
  const plan = resolvePlan(settle(order, kept), context.version, facts.exposure, network);
  const settings = reportSettings(order, kept, plan, facts.exposure);
  context.onSettings?.(settings);
  checkStorage(facts, {
    outsideRegistry: plan.registry !== undefined,
    ...(plan.storageClass === undefined ? {} : { storageClass: plan.storageClass }),
  });
  for (const message of await checkPlan(cluster, plan)) context.report({ type: 'warning', message });
  const named = await withDefaultGuids(cluster, plan);
  return { plan: await withBuildEnvRevision(cluster, named), facts, settings };
}

/** Applies one stage of the plan; namespaces go first, since others live in them. */
async function applyStage(context: SetupContext, step: InstallStep, stage: PlannedChange[]): Promise<void> {
  if (stage.every(({ action }) => action === 'unchanged')) return;
  context.report({ type: 'install-step', step });
  const isNamespace = ({ object }: PlannedChange) => object.kind === 'Namespace';
  for (const part of [stage.filter((change) => isNamespace(change)), stage.filter((change) => !isNamespace(change))]) {
    await applyPlanned(context.cluster, setupSet, part, context.signal);
  }
}

async function waitForPrograms(context: SetupContext, plan: SetupPlan): Promise<void> {
  const own = plan.gateway.existing === undefined && plan.gateway.className === undefined;
  await Promise.all([
    waitForDeployment(context, { namespace: systemNamespace, name: controllerName, timeoutMs: startMs }),
    waitForDeployment(context, { namespace: systemNamespace, name: pagesName, timeoutMs: startMs }),
    ...(own ? [waitForDeployment(context, { namespace: gatewayNamespace(plan), name: traefikName, timeoutMs: startMs })] : []),
  ]);
}

type Stages = Record<keyof Installation | keyof Defaults, PlannedChange[]>;

/** Every object of setup beside what is in the cluster. Nothing is written; who may not do it all is told here. @throws KfError */
async function planStages(context: SetupContext, objects: Record<keyof Stages, KubeObject[]>): Promise<Stages> {
  context.report({ type: 'install-step', step: 'plan' });
  const names = Object.keys(objects) as (keyof Stages)[];
  const planned = await planObjects(context.cluster, setupSet, Object.values(objects).flat());
  let at = 0;
  return Object.fromEntries(names.map((name) => [name, planned.slice(at, (at += objects[name].length))])) as Stages;
}

const objectsOf = (changes: PlannedChange[]): KubeObject[] => changes.map(({ object }) => object);

/** A registry that is as it should be was proven, unless the setup that made it ended before it went on to the controller. */
export function needsProof({ registry, programs }: Pick<Stages, 'registry' | 'programs'>): boolean {
  return registry.some(({ action }) => action !== 'unchanged') || programs.some(({ action }) => action === 'create');
}

/** Waits for the registry, and says when it has no room for pushes: it runs all the same, for what is there is pulled from it. */
async function isRegistryFull(context: SetupContext, key: Buffer): Promise<boolean> {
  const place = { namespace: systemNamespace, service: registryName, port: 5000 };
  const roomNow = async () => (await readGateStatus(context.cluster, place, key, context.signal)).room;
  const isFull = (): Promise<boolean> =>
    roomNow().then(
      ({ nearlyFull }) => nearlyFull,
      () => false,
    );
  await waitForDeployment(context, { ...place, name: registryName, timeoutMs: startMs }, isFull);
  const { nearlyFull, free, total } = await roomNow();
  if (nearlyFull) context.report({ type: 'registry-full', free, total });
  return nearlyFull;
}

/** The registry first, and proven: where nodes cannot pull from it nothing else is installed. */
async function installRegistry(context: SetupContext, plan: SetupPlan, stages: Stages): Promise<void> {
  if (plan.registry === undefined) await openRegistryKey(context.cluster);
  await applyStage(context, 'registry', stages.registry);
  if (plan.registry !== undefined) return;
  const key = await ensureRegistryKey(context.cluster);
  const isFull = await isRegistryFull(context, key);
  if (isFull || !needsProof(stages)) return;
  context.report({ type: 'install-step', step: 'registry-proof' });
  await proveRegistry(context.cluster, plan, key, context.signal);
}

async function installDefaults(context: SetupContext, { root, space }: Stages): Promise<void> {
  await applyStage(context, 'org', root);
  const isInfo = (object: KubeObject) => object.kind === 'RunnerInfo' || object.kind === 'BuilderInfo';
  await waitForCondition(
    context,
    objectsOf(root).filter((object) => !isInfo(object)),
    'Ready',
    60_000,
  );
  await applyStage(context, 'space', space);
  await waitForCondition(context, objectsOf(space), 'Ready', 60_000);
}

/**
 * Installs kf, or brings an installation to this version and these settings. Idempotent: what is as it should be is not written.
 * @throws KfError naming what is missing, refused or not getting ready
 */
export async function setup(context: SetupContext, order: SetupOrder): Promise<SetupResult> {
  const { cluster, report } = context;
  const { plan: found, facts, settings } = await prepare(context, order);
  const guids = { orgGuid: found.org.guid ?? randomUUID(), spaceGuid: found.space.guid ?? randomUUID() };
  const plan = { ...found, org: { ...found.org, guid: guids.orgGuid }, space: { ...found.space, guid: guids.spaceGuid } };
  const installation = await buildInstallation(plan, await readPrograms(), facts);
  const stages = await planStages(context, { ...installation, ...buildDefaults(plan, guids) });
  const changes = Object.values(stages).flat();
  const requests = sumRequests(allObjects(installation));
  context.onPlan?.({ changes, requests });

  await applyStage(context, 'namespaces', stages.base);
  await installRegistry(context, plan, stages);
  const proof = startNetworkProof(cluster, plan, { ...order.file, ...order.flags }, context.signal);
  await applyStage(context, 'kinds', stages.kinds);
  await waitForCondition(context, installation.kinds, 'Established', 30_000);
  await applyStage(context, 'controller', stages.programs);
  await applyStage(context, 'gateway', stages.gateway);
  await waitForPrograms(context, plan);
  await installDefaults(context, stages);
  const network = await settleNetwork({ cluster, report, set: setupSet }, plan, proof);
  report({ type: 'install-step', step: 'gateway-proof' });
  const reach = await proveReach(plan, 20_000, context.signal);
  const removed = await pruneSet(cluster, setupSet, outdated, allObjects(installation));
  report({ type: 'done' });
  const count = (action: string) => changes.filter((change) => change.action === action).length;
  return {
    kubernetes: facts.version,
    version: context.version,
    created: count('create'),
    changed: count('change'),
    unchanged: count('unchanged'),
    removed,
    requests,
    settings,
    network,
    reach,
    domain: plan.domain,
    org: plan.org,
    space: plan.space,
  };
}
