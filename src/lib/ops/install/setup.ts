// `kf setup`: inspects, plans, applies the parts in order, tests, and reports the result.

import { randomUUID } from 'node:crypto';
import { requireSafeDowngrade } from '../../api/kf-info.ts';
import type { KubeObject } from '../../api/object.ts';
import { defined } from '../../defined.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { SetupPlan } from '../../../templates/setup/options.ts';
import type { Report } from '../../events.ts';
import type { PlannedChange } from './applier.ts';
import { readPrograms } from './assets.ts';
import { withBuildEnvRevision } from './build-env.ts';
import { withDefaultGuids, withInternalDomain } from './defaults.ts';
import { applyParts, objectsOfParts, planParts, proveParts } from './installation.ts';
import { keptSettings, reportSettings, settle, type SetupOrder, type SettingsReport } from './kept-settings.ts';
import { readNetwork } from './network.ts';
import type { PartInput, Proofs, SetupRun } from './part.ts';
import { checkPlan, checkStorage, inspectCluster, type ClusterFacts } from './preflight.ts';
import { planPrune, prune } from './prune.ts';
import { recordedInfo } from './recorded-info.ts';
import { resolvePlan } from './request.ts';
import { sumRequests, type RequestedResources } from './requests.ts';

/** What an installation has and what was done for it. */
export interface Installed extends Proofs {
  kubernetes: string;
  version: string;
  created: number;
  changed: number;
  unchanged: number;
  removed: string[];
  requests: RequestedResources;
  settings: SettingsReport;
  domain: string;
  org: { name: string; guid: string };
  space: { name: string; guid: string };
}

export interface SetupResult extends Installed {
  /** What the next commands work on. */
  target: { org: { name: string; guid: string }; space: { name: string; guid: string } };
}

/** The planned writes of a setup. */
export interface AnnouncedPlan {
  changes: PlannedChange[];
  /** Objects of earlier setups that will be removed. */
  removals: string[];
  requests: RequestedResources;
}

export interface SetupContext {
  cluster: Cluster;
  report: Report;
  version: string;
  /** Called with the settings that stay and those that change, as soon as they are known; also in a dry run. */
  onSettings?: (report: SettingsReport) => void;
  /** Called with the plan before anything is written. */
  onPlan?: (plan: AnnouncedPlan) => void;
  signal?: AbortSignal;
}

/** The plan of a setup; nothing is written. */
export interface SetupPreview {
  /** The objects that it would apply. */
  objects: KubeObject[];
  /** Objects of earlier setups that it would remove. */
  removals: string[];
}

/** Inspects and plans; nothing is written. */
export async function previewSetup(context: SetupContext, order: SetupOrder): Promise<SetupPreview> {
  const { plan, facts } = await prepare(context, order);
  const parts = await objectsOfParts({ plan, programs: await readPrograms(), served: facts });
  const removals = await planPrune(context.cluster, facts, parts);
  return {
    objects: parts.flatMap(({ part, objects }) => (part.unprinted === true ? [] : objects)),
    removals: removals.map(({ name }) => name),
  };
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
  if (recorded.info !== undefined) requireSafeDowngrade(recorded.info, context.version);
  const [network, kept] = await Promise.all([readNetwork(cluster, recorded.info), keptSettings(cluster, order, recorded)]);
  if (recorded.fault !== undefined) context.report({ type: 'info-broken', fault: recorded.fault });
  const plan = resolvePlan(settle(order, kept), context.version, facts.exposure, network);
  const settings = reportSettings(order, kept, plan, facts.exposure);
  context.onSettings?.(settings);
  checkStorage(facts, {
    outsideRegistry: plan.registry !== undefined,
    ...defined({ storageClass: plan.storageClass }),
  });
  for (const finding of await checkPlan(cluster, plan)) context.report(finding);
  const { plan: whole, taken } = await withInternalDomain(cluster, plan);
  if (taken !== undefined) context.report({ type: 'internal-domain-left-out', ...taken });
  const named = await withDefaultGuids(cluster, whole);
  return { plan: await withBuildEnvRevision(cluster, named), facts, settings };
}

const countOf = (changes: PlannedChange[], action: PlannedChange['action']): number =>
  changes.filter((change) => change.action === action).length;

/**
 * Installs kf, or updates an installation to this version and these settings. Idempotent: unchanged objects are not written.
 * @throws KfError naming what is missing, refused or does not become ready
 */
export async function setup(context: SetupContext, order: SetupOrder): Promise<Installed> {
  const { cluster, report } = context;
  const { plan: found, facts, settings } = await prepare(context, order);
  const org = { ...found.org, guid: found.org.guid ?? randomUUID() };
  const space = { ...found.space, guid: found.space.guid ?? randomUUID() };
  const input: PartInput = { plan: { ...found, org, space }, programs: await readPrograms(), served: facts };

  report({ type: 'install-step', step: 'plan' });
  const objects = await objectsOfParts(input);
  const planned = await planParts(cluster, objects);
  const removals = await planPrune(cluster, facts, objects);
  const changes = planned.flatMap((part) => part.changes);
  const requests = sumRequests(objects.flatMap((part) => part.objects));
  context.onPlan?.({ changes, removals: removals.map(({ name }) => name), requests });

  const asked = { ...order.file, ...order.flags };
  const changesOf = (name: string): PlannedChange[] => planned.find(({ part }) => part.name === name)?.changes ?? [];
  const run: SetupRun = { ...context, plan: input.plan, asked, changes: changesOf };
  const proofs = await proveParts(await applyParts(run, planned));
  const removed = await prune(cluster, removals);
  report({ type: 'done' });
  return {
    kubernetes: facts.version,
    version: context.version,
    created: countOf(changes, 'create'),
    changed: countOf(changes, 'change'),
    unchanged: countOf(changes, 'unchanged'),
    removed,
    requests,
    settings,
    ...proofs,
    domain: found.domain,
    org,
    space,
  };
}
