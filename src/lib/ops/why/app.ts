// Why an app does not run as it should: the last change that failed, an instance that does not run, or nothing.

import { adviceOn } from '../../api/advice.ts';
import { desiredInstances, isBuilt, lastStillServes, processesOf, servesVersionBefore, webProcess } from '../../api/app.ts';
import { causeOfDeployment, causeOfReason, causeWithLines } from '../../api/causes.ts';
import { findCondition } from '../../api/conditions.ts';
import { configMapType } from '../../api/core.ts';
import { annotations, conditionTypes, kinds, labels } from '../../api/group.ts';
import { changeOf } from '../../api/held.ts';
import type { Stored } from '../../api/object.ts';
import type { WhyDetails } from '../../api/results.ts';
import { revisionsName } from '../../api/revisions.ts';
import { canaryOf, hasPaused, isCanceled, type CanaryProgress } from '../../api/rollout.ts';
import { readVerdicts, type Verdict } from '../../api/verdicts.ts';
import type { CFApp, CFBuild, CFProcess, DeploymentStatus } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { isForbidden } from '../../kube/errors.ts';
import { noLines } from '../../kube/last-run.ts';
import { exceedsWhole } from '../../kube/refusals.ts';
import type { LogEnds } from '../../kube/lines.ts';
import { watchObject } from '../../kube/watch-list.ts';
import type { SpaceSession } from '../../session/session.ts';
import { unlessLate } from '../../wait.ts';
import { appGone } from '../apps/changes.ts';
import { logOfFailure, readEnds } from '../apps/last-lines.ts';
import { memoryAskedFor } from '../apps/process-memory.ts';
import { diffRevisions } from '../apps/revision-diff.ts';
import { findRevisions, pickRevision } from '../apps/revisions.ts';
import { absentAfterMs, controllerLog, nobodyTookUp, unlessAbsent } from '../controller-wait.ts';
import { createdAt, isUnderWay, newestOf, whyBuild } from './build.ts';
import { withChecks } from './checks.ts';
import { recordedEnd } from './endings.ts';
import { allWarningsAbout, mostEvents } from './evidence.ts';
import { failureNow, ofInstances, type Finding } from './instances.ts';

interface Parts {
  app: Stored<CFApp>;
  processes: Stored<CFProcess>[];
  builds: Stored<CFBuild>[];
}

/** How long a controller that works is waited for; by then it is known whether one does. */
export const busyAfterMs = absentAfterMs + 5_000;

/**
 * The app, once the controller has looked at its last change, or why it has not: none leads, or the one that does is busy.
 * @throws KfError `not-found` when the app is deleted meanwhile
 */
async function untilSeen({ cluster, space, signal, report }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFApp> | 'absent' | 'busy'> {
  const seen = (live: Stored<CFApp> | undefined): Stored<CFApp> | undefined => {
    if (live === undefined) throw appGone(app);
    const wanted = live.metadata.annotations?.[annotations.deployId];
    const claimed = findCondition(live, conditionTypes.claimed);
    const hasDeployed = wanted === undefined || live.status?.deployment?.id === wanted;
    if (claimed?.status === 'False' || (claimed !== undefined && hasDeployed)) return live;
    report({ type: 'awaiting-controller' });
    return undefined;
  };
  const target = { ns: space.guid, name: app.metadata.name, known: app };
  const wait = async (until: AbortSignal): Promise<Stored<CFApp> | 'busy'> => {
    const options = { timeoutMs: busyAfterMs, signal: until, describe: 'the controller' };
    return (await unlessLate(watchObject(cluster, kinds.app, target, seen, options))) ?? 'busy';
  };
  return (await unlessAbsent({ cluster, signal }, wait).finally(() => report({ type: 'done' }))) ?? 'absent';
}

async function readParts({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Parts> {
  const own = { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal };
  const [processes, builds] = await Promise.all([cluster.list(kinds.process, own), cluster.list(kinds.build, own)]);
  return { app, processes: processesOf(app, processes.items), builds: builds.items };
}

const ended = (build: Stored<CFBuild>): string => findCondition(build, conditionTypes.succeeded)?.lastTransitionTime ?? createdAt(build);

/** The newest build, if it failed after everything else that happened to the app. */
export function failedBuildOf({ app, builds }: Omit<Parts, 'processes'>): Stored<CFBuild> | undefined {
  const newest = newestOf(builds);
  if (newest?.status?.state !== 'FAILED') return undefined;
  const { since = '' } = app.status?.deployment ?? {};
  return ended(newest) >= since ? newest : undefined;
}

function indexOf(pod: string | undefined): number | undefined {
  const index = /-(\d+)$/.exec(pod ?? '')?.[1];
  return index === undefined ? undefined : Number(index);
}

function ofDeployment(app: Stored<CFApp>, deployment: DeploymentStatus): Finding {
  const { message = 'The cause is unknown.', since, process, pod, container, exitCode } = deployment;
  const where = { since, process, pod, instance: indexOf(pod), container, exitCode };
  return { state: 'failed', cause: causeOfDeployment(deployment), message, isBesideServing: servesVersionBefore(app), ...defined(where) };
}

/** The deployment of an app that runs waits for its user. */
function ofPause(app: Stored<CFApp>, { step, steps, percent }: CanaryProgress, bin: string): Finding {
  const { displayName } = app.spec;
  const { deployment, revision } = app.status ?? {};
  const version = revision?.change === changeOf(app) ? revision.version : undefined;
  const what = version === undefined ? 'its canary deployment' : `the canary deployment of its version ${String(version)}`;
  const share = percent === undefined ? 'one instance' : `${String(percent)}% of the instances`;
  return {
    state: 'well',
    message: `App '${displayName}' runs; ${what} is paused at step ${String(step)} of ${String(steps)} (${share}).`,
    next: [`${bin} continue-deployment ${displayName}`, `${bin} cancel-deployment ${displayName}`],
    ...defined({ version, since: deployment?.since }),
  };
}

/** What is wrong with the app, by its objects. */
function findingOf({ app, processes }: Parts, bin: string): Finding {
  const claimed = findCondition(app, conditionTypes.claimed);
  if (claimed?.status === 'False') return { state: 'failed', cause: 'name-taken', message: claimed.message };
  const { deployment } = app.status ?? {};
  if (deployment?.phase === 'Failed') return ofDeployment(app, deployment);
  if (app.spec.desiredState !== 'STARTED') return { state: 'well', message: `App '${app.spec.displayName}' is stopped.` };
  const instance = ofInstances(processes);
  if (instance !== undefined) return instance;
  if (deployment?.phase === 'Pending' || deployment?.phase === 'Starting') {
    const cause = deployment.phase === 'Pending' ? causeOfReason(deployment.reason) : 'unknown';
    const known = cause === 'unknown' ? {} : { cause };
    return { state: 'waiting', ...known, message: deployment.message ?? 'The app starts.', ...defined({ since: deployment.since }) };
  }
  const canary = hasPaused(app) ? canaryOf(app) : undefined;
  if (canary !== undefined) return ofPause(app, canary, bin);
  const empty = processes.filter((process) => desiredInstances(process) === 0);
  // Other processes have no instances unless somebody asks for them.
  const lacksWeb = empty.some(({ spec }) => spec.processType === webProcess);
  const isEmpty = processes.length > 0 && empty.length === processes.length;
  const runs = lacksWeb ? `runs; its process '${webProcess}' is scaled to no instances` : 'runs';
  return { state: 'well', message: `App '${app.spec.displayName}' ${isEmpty ? 'is started, and scaled to no instances' : runs}.` };
}

/** By why the controller has not looked at the last change. A busy one will, so nothing has failed. */
const unseen: Readonly<Record<'absent' | 'busy', Finding>> = {
  absent: {
    state: 'failed',
    cause: 'controller-absent',
    message: nobodyTookUp('The last change of the app').message,
  },
  busy: {
    state: 'waiting',
    message: `The last change of the app is accepted, but the controller has not taken it up after ${String(busyAfterMs / 1_000)} s, although it works; it waits in the cluster.`,
    next: [controllerLog],
  },
};

/** The objects of the app that Events may be about. */
function namesOf({ app, processes }: Parts, pod: string | undefined): Set<string> {
  const set = pod?.replace(/-\d+$/, '');
  return new Set([
    app.metadata.name,
    ...processes.map(({ metadata }) => metadata.name),
    ...[pod, set].filter((name) => name !== undefined),
  ]);
}

async function explain(session: SpaceSession, parts: Parts, found: Finding): Promise<WhyDetails> {
  const { app } = parts;
  const { cluster, signal, bin, space } = session;
  const { displayName: name } = app.spec;
  const { cause, process, container, pod, run } = found;
  if (found.state === 'well' && cause === undefined) return { kind: 'app', name, ...found, events: [], next: found.next ?? [] };
  const [log, warnings, memoryMB] = await Promise.all([
    found.log ?? logOf(session, app, defined({ cause, pod, container, run })),
    allWarningsAbout(session, namesOf(parts, pod)),
    cause === undefined ? undefined : memoryAskedFor(cluster, app, cause, process, signal),
  ]);
  const { pod: _pod, run: _run, readiness, isBesideServing, ...checked } = withChecks(found, warnings);
  // The controller reads the lines of an instance only when its change has failed.
  const told = checked.cause && causeWithLines(checked.cause, checked.exitCode, [...log.head, ...log.tail]);
  const finding = { ...checked, ...defined({ cause: told }) };
  const hasOwnReadiness = readiness === 'own';
  const about = {
    bin,
    app: name,
    ns: space.guid,
    process,
    container,
    memoryMB,
    isBuilt: isBuilt(app),
    isBesideServing,
    exceedsQuota: exceedsWhole(found.message),
    hasOwnReadiness,
  };
  const advice = finding.cause === undefined ? [] : adviceOn(finding.cause, about);
  const lines = log.tail.length === 0 ? {} : { log };
  return { kind: 'app', name, ...finding, ...lines, events: warnings.slice(0, mostEvents), next: finding.next ?? advice };
}

async function logOf(
  { cluster, signal }: SpaceSession,
  app: Stored<CFApp>,
  { cause, ...place }: Pick<Finding, 'cause' | 'pod' | 'container' | 'run'>,
): Promise<LogEnds> {
  const { deployment } = app.status ?? {};
  if (deployment?.phase === 'Failed' && deployment.pod === place.pod) return logOfFailure(cluster, app, deployment, signal);
  // The kubelet of a lost node would be waited for until the time limit.
  return cause === 'node-lost' ? noLines : readEnds(cluster, app, defined(place), signal);
}

/** Why the app does not run as it should, or that it does. @param version a revision of it; its failure is explained even if another one serves */
export async function whyApp(session: SpaceSession, found: Stored<CFApp>, version?: number): Promise<WhyDetails> {
  if (version !== undefined) return whyRevision(session, found, version);
  const seen = await untilSeen(session, found);
  const app = typeof seen === 'string' ? found : seen;
  const [parts, verdicts] = await Promise.all([readParts(session, app), keptVerdicts(session, found)]);
  if (typeof seen === 'string') return explain(session, parts, unseen[seen]);
  const change = await whyChange(session, parts, verdicts);
  if (change === undefined) return whyAsItIs(session, parts);
  const now = await failureNow(session, app, parts.processes);
  if (now === undefined) return change;
  return withFailedChange(session, app, await explain(session, parts, now), change);
}

/** What fails now, of the version that served last, and then the change that failed. */
function withFailedChange({ bin }: SpaceSession, app: Stored<CFApp>, now: WhyDetails, change: WhyDetails): WhyDetails {
  const { version, cause, message, since, exitCode, kind } = change;
  const part = kind === 'build' ? ' --build' : version === undefined ? undefined : ` --version ${String(version)}`;
  return {
    ...now,
    ...defined({ version: app.status?.revision?.deployed }),
    failedChange: { message, ...defined({ version, cause, since, exitCode }) },
    next: [...now.next, ...(part === undefined ? [] : [`${bin} why ${app.spec.displayName}${part}`])],
  };
}

/** Why the last change failed: a build, a deployment, or the newest revision. Undefined when it has not. */
async function whyChange(session: SpaceSession, parts: Parts, verdicts: readonly Verdict[]): Promise<WhyDetails | undefined> {
  const { app } = parts;
  const build = failedBuildOf(parts);
  if (build !== undefined) return whyBuild(session, app, build);
  const finding = findingOf(parts, session.bin);
  const { revision, deployment } = app.status ?? {};
  if (finding.state === 'failed' && deployment?.phase === 'Failed') {
    const failed = verdicts.find(({ change }) => change === deployment.id)?.version;
    return { ...(await explain(session, parts, finding)), ...(await sinceServed(session, app, failed)) };
  }
  // A newest revision that failed is still why the app does not run as it was deployed last.
  // A canary that is paused has begun after all: what hindered it is over.
  const isSettled = (finding.state === 'well' && !hasPaused(app)) || (finding.instance !== undefined && deployment?.phase === 'Serving');
  // Whoever cancels the last change wants the version that served before; what failed earlier is not why that one runs.
  const kept = isSettled && !isCanceled(app) ? verdicts.find((verdict) => verdict.version === revision?.version) : undefined;
  return kept === undefined || kept.version === revision?.deployed ? undefined : whyKept(session, parts, kept);
}

async function whyAsItIs(session: SpaceSession, parts: Parts): Promise<WhyDetails> {
  const { app, processes } = parts;
  const finding = findingOf(parts, session.bin);
  const isStopped = app.spec.desiredState !== 'STARTED';
  const build = finding.state === 'well' && isStopped ? newestOf(parts.builds) : undefined;
  // The app starts after it: `kf push` has not said yet that it is to run.
  if (build !== undefined && isUnderWay(build)) return whyBuild(session, app, build);
  const isToRun = finding.state === 'well' && !isStopped;
  const end = isToRun ? await recordedEnd(session, app, processes) : undefined;
  return explain(session, parts, end === undefined ? finding : withPause(end, finding));
}

/** An instance that has ended is told beside a paused canary, which may be why: its user decides about that. */
function withPause(end: Finding, { message, next }: Finding): Finding {
  return next === undefined ? end : { ...end, message: `${end.message} ${message}`, next };
}

/** Why a revision failed, by what the controller has kept. @throws KfError `not-found` */
async function whyRevision(session: SpaceSession, app: Stored<CFApp>, version: number): Promise<WhyDetails> {
  const { displayName: name } = app.spec;
  const [verdicts, found, parts] = await Promise.all([keptVerdicts(session, app), findRevisions(session, app), readParts(session, app)]);
  const { record, summary } = pickRevision(found, version, `${session.bin} revisions ${name}`);
  const kept = verdicts.find((verdict) => verdict.version === version);
  // Its verdict stays when it comes to serve by a later change. Of the newest revision, a change after that can have failed.
  const { deployment, revision } = app.status ?? {};
  const isDeployed = revision?.deployed === version && !(deployment?.phase === 'Failed' && revision.version === version);
  const isMended = isDeployed || (record.neverServed === false && record.failedLast !== true);
  if (kept !== undefined && !isMended) return whyKept(session, parts, kept);
  const well = { kind: 'app' as const, name, state: 'well' as const, version, events: [], next: [] };
  if (kept === undefined && !summary.deployed && !isDeployed)
    return { ...well, message: `No failure of revision ${version} of app '${name}' is kept.` };
  const now = `Revision ${version} of app '${name}' ${revision?.deployed !== version ? 'served' : lastStillServes(app) ? 'serves' : 'served last'}`;
  if (kept === undefined) return { ...well, message: `${now}.` };
  const { cause, at: since, process, pod, container, exitCode, head, omitted, tail } = kept;
  const where = defined({ process, instance: indexOf(pod), container, exitCode });
  const log = tail.length === 0 ? {} : { log: { head, omitted, tail } };
  return { ...well, cause, message: `${now}, and failed before, at ${since}: ${kept.message}`, since, ...where, ...log };
}

async function keptVerdicts({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Verdict[]> {
  try {
    return readVerdicts(await cluster.get(configMapType, space.guid, revisionsName(app.metadata.name), signal));
  } catch (error) {
    // Roles that an earlier kf made have no right to read it.
    if (isForbidden(error)) return [];
    throw error;
  }
}

async function whyKept(session: SpaceSession, parts: Parts, verdict: Verdict): Promise<WhyDetails> {
  const { cause, message, at: since, process, pod, container, exitCode, head, omitted, tail, version } = verdict;
  const where = { process, pod, instance: indexOf(pod), container, exitCode };
  const { app } = parts;
  const isBesideServing = version === app.status?.revision?.version && servesVersionBefore(app);
  const finding: Finding = { state: 'failed', cause, message, since, log: { head, omitted, tail }, isBesideServing, ...defined(where) };
  return { ...(await explain(session, parts, finding)), ...(await sinceServed(session, app, version)) };
}

/** What the failed revision has changed since the one that serves. */
async function sinceServed(
  session: SpaceSession,
  app: Stored<CFApp>,
  version: number | undefined,
): Promise<Pick<WhyDetails, 'version' | 'changed'>> {
  const from = app.status?.revision?.deployed;
  if (version === undefined || from === undefined || from >= version) return defined({ version });
  try {
    return { version, changed: await diffRevisions(session, app, { from, to: version }) };
  } catch (error) {
    // The record of one of them may be dropped by now.
    if (error instanceof KfError && error.code === 'not-found') return { version };
    throw error;
  }
}
