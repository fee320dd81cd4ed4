// scale: the instances and sizes of a process.

import { desiredInstances, instanceCountsOf, webProcess } from '../../api/app.ts';
import { awaitedIn } from '../../api/awaited.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import { isHeld, stillUnapplied } from '../../api/held.ts';
import { requireCompatible } from '../../api/kf-info.ts';
import { isCanaryUnderWay } from '../../api/rollout.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFProcess, CFProcessSpec, DeploymentStatus } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { patchAsRead, type ObjectPatch } from '../../kube/patch-as-read.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { unlessLate } from '../../wait.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import { scaleDirectly } from './direct-scaling.ts';
import { absentAfterMsWhereDoneDirectly, nobodyTookUp, unlessAbsent } from '../controller-wait.ts';
import { warnOfAutoscaler } from './autoscalers.ts';
import { appGone, changeApp, changeProcess, newDeployId, scaleProcess } from './changes.ts';
import { waitUntilServing } from './lifecycle.ts';
import { overtaken, startTimeoutMs } from './rollout-wait.ts';
import { assertScaleFits, assertSizeFits } from './scale-room.ts';

export interface ScaleOptions {
  process?: string | undefined;
  instances?: number | undefined;
  memoryMB?: number | undefined;
  diskMB?: number | undefined;
}

/** @throws KfError `not-found`: cf's text for an unknown process */
export async function findProcess(session: SpaceSession, app: Stored<CFApp>, type: string): Promise<Stored<CFProcess>> {
  const { cluster, space, signal } = session;
  const { items } = await cluster.list(kinds.process, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  const found = items.find((process) => process.spec.processType === type);
  if (found !== undefined) return found;
  const types = items.map((process) => process.spec.processType).join(', ');
  const { displayName } = app.spec;
  throw new KfError('not-found', `Process ${type} not found`, {
    hints: [...(types === '' ? [] : [`Processes of app '${displayName}': ${types}`]), `kf app ${displayName}`],
  });
}

const runningOf = (process: Stored<CFProcess> | undefined): number => (process === undefined ? 0 : instanceCountsOf(process).running);

/** All wanted instances run, and there are no others. Beside a paused canary an index can have an instance of each version, and another one none. */
function hasExactly(process: Stored<CFProcess>, wanted: number): boolean {
  const { observedGeneration, rollout } = process.status ?? {};
  if (rollout?.phase === 'Paused') {
    const { generations = [] } = rollout;
    // A canary takes the place of none.
    const most = wanted + 1;
    const total = generations.reduce((sum, { instances }) => sum + instances, 0);
    return observedGeneration === process.metadata.generation && total <= most && generations.every((one) => one.ready === one.instances);
  }
  const { running, starting, crashed, down } = instanceCountsOf(process);
  return running === wanted && starting + crashed + down === 0;
}

/** The status of the process's change while it has no result yet: a process that never ran gets its result from its first instances. */
function underWay(app: Stored<CFApp>, rollout: DeploymentStatus | undefined): DeploymentStatus | undefined {
  if (rollout?.id !== app.metadata.annotations?.[annotations.deployId]) return undefined;
  return rollout?.phase === 'Pending' || rollout?.phase === 'Starting' ? rollout : undefined;
}

/** The app's status follows that of its processes within moments; after this time it is shown as it is. */
const followMs = 5000;

async function waitForApp(
  { cluster, space, signal }: SpaceSession,
  app: Stored<CFApp>,
  { spec: { processType } }: Stored<CFProcess>,
): Promise<void> {
  const { name } = app.metadata;
  const check = (seen: Stored<CFApp> | undefined): true | undefined => {
    const awaited = seen === undefined ? undefined : underWay(seen, seen.status?.deployment);
    return awaited !== undefined && (awaited.process ?? processType) === processType ? undefined : true;
  };
  const how = { timeoutMs: followMs, signal, describe: `the status of app '${app.spec.displayName}'` };
  await unlessLate(watchObject(cluster, kinds.app, { ns: space.guid, name }, check, how));
}

/** A cause that may go away ends the wait when it has lasted this long. */
const causePatienceMs = 8000;

/** Why an instance does not run: a crash counts at once, any other named cause after a while. */
function failedInstance(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  wanted: number,
): (KfError & { isCrash: boolean }) | undefined {
  const instances = Object.entries(process.status?.instancesStatus ?? {}).filter(([index]) => Number(index) < wanted);
  const crashed = instances.find(([, { state }]) => state === 'CRASHED');
  const stuck =
    crashed ?? instances.find(([, { state, reason }]) => state !== 'RUNNING' && reason !== undefined && reason !== 'HealthCheckFailed');
  if (stuck === undefined) return undefined;
  const [index, { details, reason }] = stuck;
  const cause = details ?? reason ?? 'cause unknown';
  const name = app.spec.displayName;
  const { processType } = process.spec;
  const text =
    crashed === undefined
      ? `instance ${index} of '${processType}' does not run: ${cause}`
      : `instance ${index} of '${processType}' has crashed: ${cause}`;
  const error = new KfError(reason === 'QuotaExceeded' ? 'quota' : 'start', `Start unsuccessful: ${text}`, {
    hints: [`${session.bin} logs ${name} --recent`, `${session.bin} app ${name}`],
    details: { reason, instance: Number(index) },
  });
  return Object.assign(error, { isCrash: crashed !== undefined });
}

const instancesOf = (count: number): string => (count === 1 ? '1 instance' : `${count} instances`);

/** @throws KfError `conflict` when an autoscaler or another command has set another number: the wanted one would never be reached */
function assertStillWanted({ bin }: SpaceSession, app: Stored<CFApp>, seen: Stored<CFProcess>, wanted: number): void {
  const present = desiredInstances(seen);
  if (present === wanted) return;
  const name = app.spec.displayName;
  const message = `Process '${seen.spec.processType}' of app '${name}' was set to ${instancesOf(present)} meanwhile; this command had set ${wanted}.`;
  throw new KfError('conflict', message, {
    hints: [`${bin} app ${name}`, `${bin} autoscale ${name}`],
    details: { reason: 'superseded', instances: present },
  });
}

/** Follows the app until the signal, and gives `end` why its instances are not wanted any more: it was stopped or deleted. The process does not say so. */
function followApp({ cluster, space }: SpaceSession, app: Stored<CFApp>, signal: AbortSignal, end: (why: KfError) => void): void {
  const check = (seen: Stored<CFApp> | undefined): true | undefined => {
    if (seen?.spec.desiredState === 'STARTED') return undefined;
    end(seen === undefined ? appGone(app) : overtaken(seen));
    return true;
  };
  const how = { timeoutMs: Infinity, signal, describe: `app '${app.spec.displayName}'` };
  // Without this, the wait still has the process.
  watchObject(cluster, kinds.app, { ns: space.guid, name: app.metadata.name, known: app }, check, how).catch(() => undefined);
}

/**
 * Waits until the wanted number of instances runs. Fails when one crashed, or cannot start for a lasting cause, or somebody set another number, or stopped
 * or deleted the app.
 */
async function waitForInstances(session: SpaceSession, app: Stored<CFApp>, process: Stored<CFProcess>, wanted: number): Promise<void> {
  const { cluster, space, signal, env, report } = session;
  const { name } = process.metadata;
  let last: Stored<CFProcess> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const stuck = new AbortController();
  const patient = (error: KfError): void => {
    timer ??= setTimeout(() => stuck.abort(failedInstance(session, app, last ?? process, wanted) ?? error), causePatienceMs);
  };
  const check = (seen: Stored<CFProcess> | undefined, alive: () => void): true | undefined => {
    last = seen;
    if (seen === undefined) throw appGone(app);
    assertStillWanted(session, app, seen, wanted);
    if (seen.status?.observedGeneration === seen.metadata.generation) alive();
    const failed = failedInstance(session, app, seen, wanted);
    if (failed?.isCrash === true) throw failed;
    if (failed === undefined) timer = void clearTimeout(timer);
    else patient(failed);
    const isFull = hasExactly(seen, wanted);
    // Without instances there is nothing that could end a change: it goes on with the next ones.
    const awaited = isFull && wanted > 0 ? underWay(app, seen.status?.rollout) : undefined;
    if (isFull && awaited === undefined) return true;
    report(
      awaited?.message === undefined
        ? { type: 'instances-scaling', running: runningOf(seen), wanted }
        : { type: 'waiting', reason: awaitedIn(awaited.message) },
    );
    return undefined;
  };
  const how = {
    timeoutMs: startTimeoutMs(env, process.spec.healthCheck.data.timeoutSeconds),
    describe: () => `${wanted} instances of '${process.spec.processType}' (${runningOf(last)} running)`,
  };
  const watch = (until: AbortSignal, alive: () => void): Promise<true> =>
    watchObject(cluster, kinds.process, { ns: space.guid, name }, (seen) => check(seen, alive), { ...how, signal: until });
  const ended = new AbortController();
  followApp(session, app, AbortSignal.any([signal, ended.signal]), (why) => stuck.abort(why));
  const done = await unlessAbsent(
    { cluster, signal: AbortSignal.any([signal, stuck.signal]) },
    watch,
    absentAfterMsWhereDoneDirectly,
  ).finally(() => {
    clearTimeout(timer);
    ended.abort();
  });
  if (done === true && wanted > 0) await waitForApp(session, app, process);
  report({ type: 'done' });
  if (done === true || (await scaleDirectly(session, app, process, wanted))) return;
  throw nobodyTookUp('The new number of instances');
}

/**
 * With other sizes all instances are replaced, also those of the version before a canary: nobody could decide about it any more. In cf's words.
 * @throws KfError `conflict` while a canary is under way
 */
function assertNotInFlight({ bin }: SpaceSession, app: Stored<CFApp>): void {
  if (!isCanaryUnderWay(app)) return;
  const { displayName } = app.spec;
  throw new KfError('conflict', 'Cannot scale this process while a deployment is in flight.', {
    hints: [`${bin} continue-deployment ${displayName}`, `${bin} cancel-deployment ${displayName}`],
  });
}

const sizeKeys = ['memoryMB', 'diskQuotaMB'] as const;
type Sizes = Partial<Pick<CFProcessSpec, (typeof sizeKeys)[number]>>;

/** Gives the process back the sizes of before, as far as it still has those that this command has written. */
async function takeBack(session: SpaceSession, app: Stored<CFApp>, before: Stored<CFProcess>, written: Stored<CFProcess>): Promise<void> {
  const { cluster, signal } = session;
  const changedBy = await session.changedBy();
  const patchFor = ({ metadata, spec }: Stored<CFProcess>): ObjectPatch | undefined => {
    const own = sizeKeys.filter((key) => before.spec[key] !== written.spec[key] && spec[key] === written.spec[key]);
    if (own.length === 0 || metadata.annotations?.[annotations.changedBy] !== changedBy) return undefined;
    return {
      metadata: { annotations: { [annotations.changedBy]: changedBy } },
      spec: Object.fromEntries(own.map((key) => [key, before.spec[key]])),
    };
  };
  await patchAsRead(cluster, { type: kinds.process, object: written, gone: () => appGone(app) }, patchFor, signal);
}

/** Marks the new sizes as a change of the app. A canary that began since the app was read goes on, and the process keeps its sizes. */
async function markResized(
  session: SpaceSession,
  app: Stored<CFApp>,
  before: Stored<CFProcess>,
  written: Stored<CFProcess>,
): Promise<Resized> {
  const deployId = newDeployId();
  try {
    const changed = await changeApp(session, app, (live) => {
      assertNotInFlight(session, live);
      return { annotations: { [annotations.deployId]: deployId, ...stillUnapplied(live, deployId) } };
    });
    return { app: changed, deployId };
  } catch (error) {
    if (error instanceof KfError && error.code === 'conflict') await takeBack(session, app, before, written);
    throw error;
  }
}

interface Resized {
  app: Stored<CFApp>;
  deployId: string;
}

/**
 * What gives the instances the sizes that the process has already: the change that is under way, which must not begin anew, or a new one when the last
 * one has failed, or when the sizes wait for a start. A canary has the sizes, and is left to whoever decides about it.
 */
async function applied(session: SpaceSession, app: Stored<CFApp>, process: Stored<CFProcess>): Promise<Resized | undefined> {
  if (app.spec.desiredState !== 'STARTED' || isCanaryUnderWay(app)) return undefined;
  if (isHeld(app, process)) return markResized(session, app, process, process);
  const deployId = app.metadata.annotations?.[annotations.deployId] ?? '';
  const { id = '', phase } = app.status?.deployment ?? {};
  // The controller may not have seen the change yet.
  const hasEnded = id === deployId && phase !== 'Pending' && phase !== 'Starting';
  if (!hasEnded && deployId !== '') return { app, deployId };
  return hasEnded && phase === 'Serving' ? undefined : markResized(session, app, process, process);
}

/** Writes other sizes. @returns the change of a started app; undefined when all instances have the sizes, or the app is stopped */
async function resize(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  options: ScaleOptions,
): Promise<Resized | undefined> {
  const sizes: Sizes = {};
  if (options.memoryMB !== undefined && options.memoryMB !== process.spec.memoryMB) sizes.memoryMB = options.memoryMB;
  if (options.diskMB !== undefined && options.diskMB !== process.spec.diskQuotaMB) sizes.diskQuotaMB = options.diskMB;
  if (Object.keys(sizes).length === 0) {
    if (options.instances !== undefined) await assertScaleFits(session, app, process, options.instances);
    const isAsked = options.memoryMB !== undefined || options.diskMB !== undefined;
    return isAsked ? applied(session, app, process) : undefined;
  }
  assertNotInFlight(session, app);
  // With other sizes all instances are replaced, and what a quota lacks during that is told when they are made.
  const { memoryMB = process.spec.memoryMB, diskMB = process.spec.diskQuotaMB, instances = desiredInstances(process) } = options;
  await assertSizeFits(session, app, process, { memoryMB, diskMB, instances });
  const written = await changeProcess(session, process, sizes);
  return app.spec.desiredState === 'STARTED' ? markResized(session, app, process, written) : undefined;
}

/**
 * Applies the given changes and waits until they have taken effect. Sizes are written first, so that new instances get them.
 * @throws KfError `conflict` for other sizes while a canary is under way, also one that began meanwhile
 */
export async function scaleApp(session: SpaceSession, app: Stored<CFApp>, options: ScaleOptions): Promise<void> {
  const [process, info] = await Promise.all([findProcess(session, app, options.process ?? webProcess), session.info()]);
  requireCompatible(info, kfVersion());
  const resized = await resize(session, app, process, options);
  if (options.instances !== undefined) {
    await warnOfAutoscaler(session, app, process, options.instances);
    await scaleProcess(session, process, options.instances);
  }
  if (app.spec.desiredState !== 'STARTED') return;
  if (resized !== undefined) await waitUntilServing(session, resized.app, resized.deployId);
  if (options.instances !== undefined) await waitForInstances(session, resized?.app ?? app, process, options.instances);
}
