// Writes settings of the plan that the cluster does not have yet: processes, environment, bindings, routes. It only adds, like cf.

import { isDeepStrictEqual } from 'node:util';
import { webProcess } from '../../api/app.ts';
import { secretType } from '../../api/core.ts';
import { kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFProcess, CFProcessSpec } from '../../api/types.generated.ts';
import type { AppPlan, HealthCheckPlan, ProcessPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildEnvSecret, buildProcess, envSecretName } from '../../../templates/app.ts';
import type { Authorship } from '../../../templates/metadata.ts';
import { changeProcess, scaleProcess } from '../apps/changes.ts';
import { warnOfLostVariables } from '../apps/env.ts';
import type { AppSnapshot } from './app-snapshot.ts';
import { mergedSidecars, namedSidecars } from './sidecars.ts';
import { defined } from '../../defined.ts';

/** Variables that the plan adds or changes. */
export function envChanges(plan: AppPlan, facts: AppSnapshot): Record<string, string> {
  return Object.fromEntries(Object.entries(plan.env).filter(([name, value]) => facts.env[name] !== value));
}

/** Given values override present ones, which override defaults. */
function healthCheckOf(
  plan: HealthCheckPlan = {},
  timeoutSeconds: number | undefined,
  present: CFProcessSpec['healthCheck'] | undefined,
  processType: string,
): CFProcessSpec['healthCheck'] {
  const usual = processType === 'web' ? 'port' : 'process';
  const type = plan.type ?? (present === undefined || present.type === '' ? usual : present.type);
  const { httpEndpoint, ...kept } = present?.data ?? { invocationTimeoutSeconds: 1, timeoutSeconds: 60 };
  return { type, data: { ...kept, ...defined({ timeoutSeconds }), ...checkData(plan, type, httpEndpoint) } };
}

/** The plan's fields for a check of this type; the endpoint is kept while it stays an http check. */
function checkData(
  plan: HealthCheckPlan,
  type: string,
  present: string | undefined,
): Omit<HealthCheckPlan, 'type'> & { httpEndpoint?: string } {
  return defined({
    httpEndpoint: type === 'http' ? (plan.endpoint ?? present ?? '/') : undefined,
    invocationTimeoutSeconds: plan.invocationTimeoutSeconds,
    intervalSeconds: plan.intervalSeconds,
  });
}

/** Given values override present ones; undefined when there is neither. */
function readinessOf(
  plan: HealthCheckPlan | undefined,
  present: CFProcessSpec['readinessHealthCheck'],
): CFProcessSpec['readinessHealthCheck'] {
  if (plan === undefined) return present;
  const type = plan.type ?? present?.type ?? 'process';
  const { httpEndpoint, ...kept } = present?.data ?? {};
  return { type, data: { ...kept, ...checkData(plan, type, httpEndpoint) } };
}

/** The value as the API server returns it: undefined fields are not sent. */
const withoutAbsent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/**
 * Fields of an existing process that differ from the plan; null removes. Instances are not among them.
 * @param named all names of sidecars in the manifest
 */
export function processChanges(plan: ProcessPlan, process: CFProcess, named: ReadonlySet<string> = new Set()): Record<string, unknown> {
  const { spec } = process;
  const changes: Record<string, unknown> = {};
  const set = (key: keyof CFProcessSpec, wanted: unknown): void => {
    // The server sorts keys, so their order does not count.
    if (wanted !== undefined && !isDeepStrictEqual(withoutAbsent(wanted), spec[key])) changes[key] = wanted;
  };
  set('memoryMB', plan.memoryMB);
  set('diskQuotaMB', plan.diskQuotaMB);
  set('user', plan.user);
  set('logRateLimitBPS', plan.logRateLimitBPS);
  if (plan.command === null ? (spec.command ?? '') !== '' : plan.command !== undefined && plan.command !== spec.command)
    changes['command'] = plan.command;
  if (plan.healthCheck !== undefined || plan.timeoutSeconds !== undefined)
    set('healthCheck', healthCheckOf(plan.healthCheck, plan.timeoutSeconds, spec.healthCheck, plan.type));
  const sidecars = mergedSidecars(plan.sidecars ?? [], spec.sidecars ?? [], named);
  if (sidecars.length > 0) set('sidecars', sidecars);
  else if ((spec.sidecars ?? []).length > 0) changes['sidecars'] = null;
  if (plan.readinessHealthCheck !== undefined)
    set('readinessHealthCheck', readinessOf(plan.readinessHealthCheck, spec.readinessHealthCheck));
  // Removes the endpoint with an http check: a merge patch keeps fields that it does not name.
  for (const key of ['healthCheck', 'readinessHealthCheck'] as const) {
    const check = changes[key] as CFProcessSpec['readinessHealthCheck'];
    if (check !== undefined) changes[key] = { ...check, data: { httpEndpoint: null, ...check.data } };
  }
  return changes;
}

/** The user's labels and annotations that differ; null removes. */
export function metadataChanges(plan: AppPlan, app: CFApp): Record<'labels' | 'annotations', Record<string, string | null>> {
  const differing = (wanted: Record<string, string | null>, present: Record<string, string> = {}) =>
    Object.fromEntries(Object.entries(wanted).filter(([name, value]) => (present[name] ?? null) !== value));
  return {
    labels: differing(plan.labels, app.metadata.labels),
    annotations: differing(plan.annotations, app.metadata.annotations),
  };
}

export interface ProcessStep {
  plan: ProcessPlan;
  /** Left out when the process does not exist yet. */
  process?: Stored<CFProcess>;
  changes: Record<string, unknown>;
  /** A new number of instances of an existing process. */
  instances?: number;
}

/**
 * The writes for the plan's processes; empty when nothing differs.
 * @param startsWeb false: the droplet has nothing that a web process could start
 */
export function processSteps(plan: AppPlan, facts: AppSnapshot, startsWeb = true): ProcessStep[] {
  const named = namedSidecars(plan);
  // The manifest names other processes only if they have had one of its sidecars.
  const others = facts.processes
    .map(({ spec }): ProcessPlan => ({ type: spec.processType }))
    .filter(({ type }) => plan.processes.every((planned) => planned.type !== type));
  return [...plan.processes, ...(named.size === 0 ? [] : others)].flatMap((wanted) => {
    const process = facts.processes.find((candidate) => candidate.spec.processType === wanted.type);
    if (process === undefined && wanted.type === webProcess && !startsWeb) return [{ plan: { instances: 0, ...wanted }, changes: {} }];
    if (process === undefined) return [{ plan: wanted, changes: {} }];
    const changes = processChanges(wanted, process, named);
    const differs = wanted.instances !== process.spec.desiredInstances && !facts.autoscaled.has(process.metadata.name);
    const instances = differs ? wanted.instances : undefined;
    if (Object.keys(changes).length === 0 && instances === undefined) return [];
    return [{ plan: wanted, process, changes, ...defined({ instances }) }];
  });
}

interface NewProcess {
  plan: ProcessPlan;
  author: Authorship;
  marks: Record<string, string | null>;
}

async function makeProcess(session: SpaceSession, info: KfInfo, app: Stored<CFApp>, { plan, author, marks }: NewProcess): Promise<void> {
  const process = buildProcess(
    {
      app,
      type: plan.type,
      memoryMB: plan.memoryMB ?? info.processDefaults.memoryMB,
      diskQuotaMB: plan.diskQuotaMB ?? info.processDefaults.diskQuotaMB,
      instances: plan.instances,
      command: plan.command ?? undefined,
      healthCheck: healthCheckOf(plan.healthCheck, plan.timeoutSeconds, undefined, plan.type),
      readinessHealthCheck: readinessOf(plan.readinessHealthCheck, undefined),
      user: plan.user,
      logRateLimitBPS: plan.logRateLimitBPS,
      sidecars: plan.sidecars,
    },
    author,
  );
  const { annotations: own } = process.metadata;
  const kept = Object.fromEntries(Object.entries(marks).filter((mark): mark is [string, string] => mark[1] !== null));
  const metadata = { ...process.metadata, annotations: { ...own, ...kept } };
  await session.cluster.create(kinds.process, { ...process, metadata }, { signal: session.signal });
}

/** @param marks annotations of each process that changes; null removes */
export async function writeProcesses(
  session: SpaceSession,
  info: KfInfo,
  app: Stored<CFApp>,
  steps: readonly ProcessStep[],
  marks: Record<string, string | null> = {},
): Promise<void> {
  const author = { changedBy: await session.changedBy(), now: new Date() };
  await Promise.all(
    steps.map(async ({ plan, process, changes, instances }) => {
      if (process === undefined) return makeProcess(session, info, app, { plan, author, marks });
      if (Object.keys(changes).length > 0) await changeProcess(session, process, changes, marks);
      if (instances !== undefined) await scaleProcess(session, process, instances);
    }),
  );
}

/** Adds and changes variables; others stay. Creates the Secret if it does not exist, with a warning if it did once. */
export async function writeEnv(
  session: SpaceSession,
  app: Stored<CFApp>,
  facts: AppSnapshot,
  changes: Record<string, string>,
): Promise<void> {
  const { cluster, space, signal } = session;
  const options = { signal };
  if (!facts.hasEnvSecret) {
    warnOfLostVariables(session, app);
    const author = { changedBy: await session.changedBy(), now: new Date() };
    try {
      await cluster.create(secretType, buildEnvSecret(app, changes, author), options);
      return;
    } catch (error) {
      // `set-env` created the Secret first: its variables stay, as they do in a Secret that existed before.
      if (!isAlreadyExists(error)) throw error;
    }
  }
  if (Object.keys(changes).length === 0) return;
  const data = Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, Buffer.from(value).toString('base64')]));
  await cluster.mergePatch(secretType, space.guid, app.spec.envSecretName ?? envSecretName(app.metadata.name), { data }, options);
}
