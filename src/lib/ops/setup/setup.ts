// `kf setup`: look, plan, apply in order, prove, and say what is there now.

import { randomBytes, randomUUID } from 'node:crypto';
import { configMapType, secretType, type Secret } from '../../api/core.ts';
import type { KubeObject } from '../../api/object.ts';
import { dockerConfigJson, pullUser, pushUser, registryPassword } from '../../api/registry-credentials.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { controllerName } from '../../../templates/setup/controller.ts';
import { traefikName } from '../../../templates/setup/gateway.ts';
import { gatewayNamespace } from '../../../templates/setup/namespaces.ts';
import { partOfLabel, systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { pullPrefix, registryKeySecret, registryName } from '../../../templates/setup/registry.ts';
import { buildPullSecret } from '../../../templates/setup/pull-test.ts';
import type { Reporter } from '../reporter.ts';
import { applyPlanned, planObjects, pruneSet, type ObjectSet, type PlannedChange } from './applier.ts';
import { readPrograms } from './assets.ts';
import { buildDefaults, withDefaultGuids } from './defaults.ts';
import { allObjects, buildInstallation } from './installation.ts';
import { checkPlan, checkStorage, inspectCluster } from './preflight.ts';
import { provePull, proveReach, type ReachResult } from './proofs.ts';
import { pushTestImage } from './push-test.ts';
import { resolvePlan, type SetupRequest } from './request.ts';
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
  reach: ReachResult;
  domain: string;
  org: { name: string; guid: string };
  space: { name: string; guid: string };
}

export interface SetupContext {
  cluster: Cluster;
  reporter: Reporter;
  version: string;
  signal?: AbortSignal;
}

const setupSet: ObjectSet = { manager: 'kf-setup', label: { key: partOfLabel, value: 'setup' } };
const startMs = 180_000;

/** The objects that a setup with these settings would apply; nothing is written. */
export async function previewSetup(context: SetupContext, request: SetupRequest): Promise<KubeObject[]> {
  const { plan, hasGatewayApi } = await prepare(context, request);
  return allObjects(await buildInstallation(plan, await readPrograms(), !hasGatewayApi));
}

async function prepare(
  context: SetupContext,
  request: SetupRequest,
): Promise<{ plan: SetupPlan; hasGatewayApi: boolean; kubernetes: string }> {
  context.reporter.step('Looking at the cluster');
  const facts = await inspectCluster(context.cluster);
  const plan = resolvePlan(request, context.version, facts.exposure);
  checkStorage(facts, {
    outsideRegistry: plan.registry !== undefined,
    ...(plan.storageClass === undefined ? {} : { storageClass: plan.storageClass }),
  });
  await checkPlan(context.cluster, plan);
  return { plan: await withDefaultGuids(context.cluster, plan), hasGatewayApi: facts.hasGatewayApi, kubernetes: facts.version };
}

/** Plans and applies one set of objects; namespaces go first, since others live in them. */
async function applyStage(context: SetupContext, title: string, objects: KubeObject[]): Promise<PlannedChange[]> {
  context.reporter.step(title);
  const isNamespace = (object: KubeObject) => object.kind === 'Namespace';
  const done: PlannedChange[] = [];
  for (const part of [objects.filter(isNamespace), objects.filter((object) => !isNamespace(object))]) {
    const planned = await planObjects(context.cluster, setupSet, part);
    await applyPlanned(context.cluster, setupSet, planned, context.signal);
    done.push(...planned);
  }
  return done;
}

/** The HMAC key of the registry's gate: made once, kept for ever (a new key would lock every space out). */
async function ensureRegistryKey(cluster: Cluster): Promise<Buffer> {
  const found = await cluster.get(secretType, systemNamespace, registryKeySecret);
  const present = found?.data?.['key'];
  if (present !== undefined) return Buffer.from(present, 'base64');
  const key = randomBytes(32).toString('hex');
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: registryKeySecret, namespace: systemNamespace, labels: { [partOfLabel]: 'setup' } },
    type: 'Opaque',
    immutable: true,
    stringData: { key },
  };
  await cluster.create(secretType, secret);
  return Buffer.from(key);
}

/** Scope of the pull test; no space can have this name. */
const testScope = 'kf-setup';

/** Pushes an image through the push door and lets a node pull it, with credentials made for this alone. */
async function proveRegistry(context: SetupContext, plan: SetupPlan, key: Buffer): Promise<void> {
  context.reporter.step('Proving that a node pulls what was pushed');
  const push = pushUser(testScope);
  const repository = `${testScope}/pull-test`;
  const digest = await pushTestImage(
    context.cluster,
    repository,
    { username: push, password: registryPassword(key, push) },
    context.signal,
  );
  const pull = pullUser(testScope);
  const host = pullPrefix(plan).split('/')[0] ?? '';
  const secret = buildPullSecret(
    systemNamespace,
    `kf-pull-test-${randomUUID().slice(0, 8)}`,
    dockerConfigJson(host, pull, registryPassword(key, pull)),
  );
  await context.cluster.create(secretType, secret);
  try {
    await provePull(context.cluster, `${pullPrefix(plan)}${repository}@${digest}`, secret.metadata.name ?? '', context.signal);
  } finally {
    await context.cluster.delete(secretType, systemNamespace, secret.metadata.name ?? '');
  }
}

async function waitForPrograms(context: SetupContext, plan: SetupPlan): Promise<void> {
  const own = plan.gateway.existing === undefined && plan.gateway.className === undefined;
  await Promise.all([
    waitForDeployment(context, systemNamespace, controllerName, startMs),
    ...(own ? [waitForDeployment(context, gatewayNamespace(plan), traefikName, startMs)] : []),
  ]);
}

/**
 * Installs kf, or brings an installation to this version and these settings. Idempotent: what is as it should be is not written.
 * @throws KfError naming what is missing, refused or not getting ready
 */
export async function setup(context: SetupContext, request: SetupRequest): Promise<SetupResult> {
  const { cluster, reporter } = context;
  const { plan: found, hasGatewayApi, kubernetes } = await prepare(context, request);
  const guids = { orgGuid: found.org.guid ?? randomUUID(), spaceGuid: found.space.guid ?? randomUUID() };
  const plan = { ...found, org: { ...found.org, guid: guids.orgGuid }, space: { ...found.space, guid: guids.spaceGuid } };
  const installation = await buildInstallation(plan, await readPrograms(), !hasGatewayApi);

  const changes = await applyStage(context, 'Installing the kinds', installation.kinds);
  await waitForCondition(context, installation.kinds, 'Established', 30_000);
  changes.push(...(await applyStage(context, 'Installing namespaces and roles', installation.ground)));
  const key = plan.registry === undefined ? await ensureRegistryKey(cluster) : undefined;
  const programs = await applyStage(context, 'Installing registry and controller', installation.programs);
  changes.push(...programs, ...(await applyStage(context, 'Installing the gateway', installation.content)));
  if (key !== undefined) {
    await waitForDeployment(context, systemNamespace, registryName, startMs);
    if (programs.some((change) => change.action !== 'unchanged')) await proveRegistry(context, plan, key);
  }
  await waitForPrograms(context, plan);
  const defaults = buildDefaults(plan, guids);
  changes.push(...(await applyStage(context, 'Making the default domain and org', defaults.root)));
  await waitForCondition(
    context,
    defaults.root.filter((object) => object.kind !== 'RunnerInfo' && object.kind !== 'BuilderInfo'),
    'Ready',
    60_000,
  );
  changes.push(...(await applyStage(context, 'Making the default space', [defaults.space])));
  await waitForCondition(context, [defaults.space], 'Ready', 60_000);
  reporter.step('Asking for a URL through the gateway');
  const reach = await proveReach(plan, 20_000, context.signal);
  const removed = await pruneSet(cluster, setupSet, [{ type: configMapType, ns: systemNamespace }], allObjects(installation));
  reporter.done();
  const count = (action: string) => changes.filter((change) => change.action === action).length;
  return {
    kubernetes,
    version: context.version,
    created: count('create'),
    changed: count('change'),
    unchanged: count('unchanged'),
    removed,
    requests: sumRequests(allObjects(installation)),
    reach,
    domain: plan.domain,
    org: plan.org,
    space: plan.space,
  };
}
