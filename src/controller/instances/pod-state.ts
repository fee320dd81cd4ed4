// Derives the state of an instance from its pod's status, and the reason why it does not serve. Pure.

import type { Stored } from '../../lib/api/object.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import {
  causeOfCreation, causeOfExit, causeOfPodEnd, causeOfPull, causeOfScheduling, signalNote,
} from '../../lib/api/causes.ts'; // prettier-ignore
import { codesOfStop } from '../../lib/api/check-words.ts';
import { labels } from '../../lib/api/group.ts';
import { runningSince, startingSince } from '../../lib/api/instance-since.ts';
import { sidecarOf } from '../../lib/api/names.ts';
import { lostContainerReason, type ContainerStateTerminated, type ContainerStatus } from '../../lib/api/pod.ts';
import type { SeenCauses } from './first-sight.ts';
import type { Expectations, Instance, Problem } from './instances.ts';
import { defined } from '../../lib/defined.ts';
import { timestamp } from '../runtime/clock.ts';
import { lostNodeText, type NodesInMotion } from './nodes.ts';
import { credentialOfPulls, obstacleOf } from './obstacle.ts';
import { problemOfReadiness } from './readiness.ts';

/** How long a cause that might go away is watched before it counts as a failure. */
const patienceMs = 8_000;
/** Nodes that come and go, and one whose clock is ahead, keep a pod that no node takes from being a failure no longer than this. */
const longestMs = 90_000;
/** A container that ended once and was not ready for this long counts as failed. */
const crashPatienceMs = 10_000;
/** That a pod is no longer ready, since its run before has ended, may be said this much after the next run has begun. */
export const statusLagMs = 5_000;
/** When no cause is known: image pull and volumes may take this long in addition to the app's own start. */
const idleStartMs = 120_000;

/** How many nodes a message names. */
const mostNodes = 5;

const time = (text: string | null | undefined): number => Date.parse(text ?? '');

export interface PodFacts extends SeenCauses {
  now: number;
  expectations: Expectations;
  /** Milliseconds by the API server's clock since when the cluster has not heard of the pod's node; left out for one that answers. */
  lostSince?: number | undefined;
  /** The pod's node takes no new pods. */
  leaving?: boolean;
  /** Asked for a pod that no node takes. */
  nodesInMotion?: () => NodesInMotion;
}

function appContainer(pod: Pod): ContainerStatus | undefined {
  const statuses = pod.status?.containerStatuses ?? [];
  return statuses.find(({ name }) => name === 'application') ?? statuses[0];
}

const condition = (pod: Pod, type: string) => pod.status?.conditions?.find((candidate) => candidate.type === type);

export function isPodReady(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp === undefined && condition(pod, 'Ready')?.status === 'True';
}

/** A cause that becomes final after a while; until then it says when to look again. */
function patient(problem: Omit<Problem, 'final' | 'lookAgainMs'>, since: number, now: number, patience = patienceMs): Problem {
  const left = since + patience - now;
  return left <= 0 ? { ...problem, final: true, byTime: true } : { ...problem, final: false, lookAgainMs: left };
}

function unschedulable(pod: Pod, { now, nodesInMotion }: PodFacts): Problem | undefined {
  const scheduled = condition(pod, 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  const changed = time(scheduled.lastTransitionTime);
  const since = Number.isNaN(changed) ? now : changed;
  const said = scheduled.message ?? scheduled.reason ?? 'no reason given';
  const { away = [], until = 0 } = nodesInMotion?.() ?? {};
  const notReady = away.length === 0 ? '' : ` Not ready: ${away.slice(0, mostNodes).join(', ')}${away.length > mostNodes ? ', …' : ''}.`;
  const cause = causeOfScheduling(said, scheduled.reason);
  const message = cause === 'unknown' ? `The instance gets no node: ${said}` : `No node can run the instance: ${said}${notReady}`;
  const problem = { reason: 'Unschedulable' as const, cause, message };
  return patient(problem, Math.max(since, Math.min(until, since + longestMs) - patienceMs), now);
}

function waiting(pod: Pod, status: ContainerStatus, { now, firstSeen, wasSeen }: PodFacts): Problem | undefined {
  const obstacle = obstacleOf(pod, status, wasSeen);
  if (obstacle === undefined) return undefined;
  const { reason = '', message = '' } = status.state?.waiting ?? {};
  const said = message === '' ? reason : message;
  const isImage = obstacle.reason === 'ImagePull';
  const cause = isImage ? causeOfPull(`${reason} ${message}`, status.image) : causeOfCreation(message);
  const credential = cause === 'image-unauthorized' ? `${/[.!?]$/.test(said) ? '' : '.'} ${credentialOfPulls(pod)}` : '';
  const problem = {
    reason: obstacle.reason,
    cause,
    message: isImage ? `The image ${status.image} cannot be pulled: ${said}${credential}` : `The container cannot be created: ${said}`,
    container: status.name,
  };
  return obstacle.isHopeless ? { ...problem, final: true } : patient(problem, firstSeen(obstacle.cause), now, obstacle.patienceMs);
}

/** Exit code of the launcher of buildpack images when it has no command (github.com/buildpacks/lifecycle, CodeForLaunchError). */
const noCommandCode = 82;

/** Sizes are written as in cf: M for MiB. */
const limitOf = (memory: string | undefined): string => (memory === undefined ? 'it may' : `its limit of ${memory.replace(/i$/, '')}`);

const outOfMemory = ({ memory }: Expectations): string =>
  `The app used more memory than ${limitOf(memory)} and was ended; -m gives it more.`;

const startErrors = new Set(['StartError', 'ContainerCannotRun']);

/** A run that its start check has ended: it lasted as long as that takes, and its pod was not ready in it. */
function isEndOfStart(pod: Pod, { startedAt, finishedAt, exitCode }: ContainerStateTerminated, expectations: Expectations): boolean {
  const { port, startSeconds, longestStartSeconds = Infinity } = expectations;
  const ranSeconds = (time(finishedAt) - time(startedAt)) / 1_000;
  const isAsLong = ranSeconds >= startSeconds - 1 && ranSeconds <= longestStartSeconds;
  const wasReady = time(condition(pod, 'Ready')?.lastTransitionTime) > time(startedAt) + statusLagMs;
  return port !== undefined && codesOfStop.has(exitCode) && isAsLong && !wasReady;
}

function howItEnded(
  pod: Pod,
  ended: ContainerStateTerminated,
  status: ContainerStatus,
  expectations: Expectations,
): Omit<Problem, 'final'> {
  const common = { container: status.name, exitCode: ended.exitCode };
  if (ended.reason === 'OOMKilled') return { ...common, reason: 'OutOfMemory', cause: 'oom', message: outOfMemory(expectations) };
  if (ended.exitCode === noCommandCode && expectations.builtProcess !== undefined) {
    const process = `The app has no command for its process '${expectations.builtProcess}' (exit code ${String(noCommandCode)})`;
    return {
      ...common,
      reason: 'Crashed',
      cause: 'command-not-found',
      message: `${process}: push it with -c COMMAND, or name it in a Procfile.`,
    };
  }
  if (startErrors.has(ended.reason ?? '')) {
    return {
      ...common,
      reason: 'CreateContainer',
      cause: causeOfCreation(ended.message ?? ''),
      message: `The app's process could not be started: ${ended.message ?? ended.reason ?? ''}`.trim(),
    };
  }
  if (ended.reason === lostContainerReason) {
    const message = `The app ended, and its node does not know how: ${ended.message ?? 'its container is gone.'}`;
    return { ...common, reason: 'Crashed', cause: 'unknown', message };
  }
  // Sidecars have no check.
  if (sidecarOf(status.name) === undefined && isEndOfStart(pod, ended, expectations))
    return { ...common, ...neverAnswered(expectations, status) };
  const message = `The app ended with exit code ${String(ended.exitCode)}${signalNote(ended.exitCode)}.`;
  return { ...common, reason: 'Crashed', cause: causeOfExit(ended.exitCode), message };
}

/** Its program runs, and has passed the start check if there is one. How the run before ended says nothing about it any more. */
const hasStarted = ({ state, started }: ContainerStatus): boolean => state?.running !== undefined && started === true;

function ended(pod: Pod, status: ContainerStatus, facts: PodFacts): Problem | undefined {
  const last = status.state?.terminated ?? (hasStarted(status) ? undefined : status.lastState?.terminated);
  if (last === undefined || status.ready) return undefined;
  const terminations = status.restartCount + (status.state?.terminated === undefined ? 0 : 1);
  const problem = howItEnded(pod, last, status, facts.expectations);
  if (terminations >= 2 || problem.reason === 'HealthCheckFailed') return { ...problem, final: true };
  const since = time(last.finishedAt);
  return patient(problem, Number.isNaN(since) ? facts.firstSeen('end without a time') : since, facts.now, crashPatienceMs);
}

/** Describes what a start check expects. */
function wanted({ port, path }: Expectations): string {
  return path === undefined ? `did not answer on port ${String(port)}` : `did not answer GET ${path} on port ${String(port)} with success`;
}

function neverAnswered(expectations: Expectations, status: ContainerStatus): Omit<Problem, 'final'> {
  const message = `The app ${wanted(expectations)} within ${String(expectations.startSeconds)} s.`;
  return { reason: 'HealthCheckFailed', cause: 'start-timeout', message, container: status.name };
}

/** What a start check has not got so far. A kubelet takes each status from 200 to 399 as success (kubernetes/pkg/probe/http). */
function notYet({ port, path }: Expectations): string {
  const where = `on port ${String(port)}`;
  return path === undefined ? `has not answered ${where} yet` : `has not answered GET ${path} ${where} with 200 to 399 yet`;
}

/**
 * A container that runs while its start check fails. The kubelet stops the container after the check's time, and that stop takes a while; the
 * failure is reported without waiting for it.
 */
function notAnswering(pod: Pod, status: ContainerStatus, { now, expectations }: PodFacts): Problem | undefined {
  const started = time(status.state?.running?.startedAt);
  if (Number.isNaN(started) || expectations.port === undefined || status.started === true) return undefined;
  const seconds = Math.max(0, Math.round((now - started) / 1_000));
  if (seconds < 3 || isPodReady(pod)) return undefined;
  if (seconds > expectations.startSeconds + 1) return { ...neverAnswered(expectations, status), final: true, byTime: true };
  const message = `The app ${notYet(expectations)} (${String(Math.min(seconds, expectations.startSeconds))} of ${String(expectations.startSeconds)} s).`;
  const lookAgainMs = Math.min(5_000, (expectations.startSeconds + 2) * 1_000 - (now - started));
  return {
    reason: 'HealthCheckFailed',
    cause: 'start-timeout',
    message,
    final: false,
    container: status.name,
    lookAgainMs: Math.max(250, lookAgainMs),
  };
}

/** When an instance that nothing is known to hinder should have become ready. */
const lateAt = (pod: Pod, { expectations }: PodFacts): number =>
  time(pod.metadata.creationTimestamp) + idleStartMs + expectations.startSeconds * 1_000;

/** A container that has started, and is not ready. */
function notReady(pod: Pod, status: ContainerStatus, facts: PodFacts): Problem | undefined {
  if (!hasStarted(status) || status.ready) return undefined;
  const startedAt = time(status.state?.running?.startedAt);
  const notReadySince = time(condition(pod, 'Ready')?.lastTransitionTime);
  // After an end, the time for a first start does not count again.
  const { startSeconds, readiness } = facts.expectations;
  const ownTime = startedAt + (startSeconds + (readiness?.failsAfterSeconds ?? 0)) * 1_000;
  const late = status.restartCount > 0 ? ownTime : lateAt(pod, facts);
  return problemOfReadiness(facts.expectations, { now: facts.now, startedAt, notReadySince, lateAt: late });
}

/** A sidecar that ends makes its instance not ready, while the app itself may be well. */
function ofSidecars(pod: Pod, facts: PodFacts): Problem | undefined {
  for (const status of pod.status?.initContainerStatuses ?? []) {
    const name = sidecarOf(status.name);
    if (name === undefined) continue;
    const found = waiting(pod, status, facts) ?? ended(pod, status, facts);
    if (found?.reason === 'OutOfMemory') {
      const limit = limitOf(facts.expectations.sidecarMemory?.[status.name]);
      const message = `The sidecar '${name}' used more memory than ${limit} and was ended; 'memory' in its entry of the manifest gives it more.`;
      return { ...found, message };
    }
    if (found?.exitCode !== undefined) {
      return { ...found, reason: 'Crashed', message: `The sidecar '${name}' ended with exit code ${String(found.exitCode)}.` };
    }
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A whole pod that its kubelet ended. How its containers ended is then a consequence, and not the cause. */
function endedByKubelet({ status }: Pod): Problem | undefined {
  if (status?.phase !== 'Failed') return undefined;
  const said = status.message ?? status.reason ?? 'no reason given';
  const message = `The pod was ended: ${said}${/[.!?]\s*$/.test(said) ? '' : '.'}`;
  return { reason: 'Unknown', cause: causeOfPodEnd(status.reason, status.message), message, final: true };
}

/** What the status of a pod on a silent node says of it is old. It is no failure of the app, and passes when the pod is made again elsewhere. */
function onLostNode(pod: Pod, { lostSince }: PodFacts): Problem | undefined {
  if (lostSince === undefined || isPodReady(pod) || pod.status?.phase === 'Failed') return undefined;
  const message = `${lostNodeText(pod.spec?.nodeName)}; the instance is started on another node as soon as Kubernetes gives this one up.`;
  return { reason: 'Unknown', cause: 'node-lost', message, final: false };
}

/** Why the pod does not serve. Undefined when it serves, may still start, or is ending on a node that answers. */
export function problemOf(pod: Pod, facts: PodFacts): Problem | undefined {
  const lost = onLostNode(pod, facts);
  if (lost !== undefined) return lost;
  if (isPodReady(pod) || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const status = appContainer(pod);
  const known =
    endedByKubelet(pod) ??
    unschedulable(pod, facts) ??
    (status === undefined ? undefined : (waiting(pod, status, facts) ?? ended(pod, status, facts))) ??
    ofSidecars(pod, facts) ??
    (status === undefined ? undefined : (notAnswering(pod, status, facts) ?? notReady(pod, status, facts)));
  if (known !== undefined || lateAt(pod, facts) > facts.now) return known;
  return {
    reason: 'StartTimeout',
    cause: 'start-timeout',
    message: 'The instance did not become ready in time, and Kubernetes gives no cause.',
    final: true,
    byTime: true,
  };
}

interface State {
  state: Instance['state'];
  since: string | undefined;
}

function endOf(status: ContainerStatus | undefined): ContainerStateTerminated | undefined {
  return status?.state?.terminated ?? status?.lastState?.terminated;
}

function stateOf(pod: Pod, status: ContainerStatus | undefined): State {
  if (isPodReady(pod)) return { state: 'RUNNING', since: runningSince(pod) };
  const { deletionTimestamp } = pod.metadata;
  const scheduled = condition(pod, 'PodScheduled');
  if (deletionTimestamp !== undefined) return { state: 'DOWN', since: deletionTimestamp };
  if (scheduled?.status !== 'True') return { state: 'DOWN', since: scheduled?.lastTransitionTime };
  const { terminated, waiting: pause } = status?.state ?? {};
  if (terminated !== undefined || pause?.reason === 'CrashLoopBackOff')
    return { state: 'CRASHED', since: endOf(status)?.finishedAt ?? undefined };
  return { state: 'STARTING', since: startingSince(pod, status) };
}

/** Index from the pod-index label, otherwise from the end of the pod's name. */
function indexOf(pod: Stored<Pod>): number {
  return Number(pod.metadata.labels?.[labels.podIndex] ?? pod.metadata.name.split('-').at(-1));
}

/** The state, and since when: an instance on a node that does not answer is down, whatever its pod says. */
function knownStateOf(pod: Pod, status: ContainerStatus | undefined, facts: PodFacts, problem: Problem | undefined): State {
  if (problem?.cause !== 'node-lost' || facts.lostSince === undefined) return stateOf(pod, status);
  return { state: 'DOWN', since: timestamp(facts.lostSince) };
}

function factsOf(pod: Stored<Pod>, status: ContainerStatus | undefined, facts: PodFacts): Partial<Instance> & Pick<Instance, 'state'> {
  const problem = problemOf(pod, facts);
  const { state, since } = knownStateOf(pod, status, facts, problem);
  const readySince = time(runningSince(pod));
  const startedAt = time(status?.state?.running?.startedAt);
  return {
    state,
    ...defined({
      startedAt: Number.isNaN(startedAt) ? undefined : startedAt,
      since,
      readySince: isPodReady(pod) && !Number.isNaN(readySince) ? readySince : undefined,
      node: pod.spec?.nodeName,
      goneBy: pod.metadata.deletionTimestamp === undefined ? undefined : time(pod.metadata.deletionTimestamp),
      owner: pod.metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid,
      address: pod.status?.podIP,
      exitCode: endOf(status)?.exitCode,
      problem,
      reason: problem?.reason,
      details: problem?.message,
    }),
  };
}

export function instanceOf(pod: Stored<Pod>, facts: PodFacts): Instance {
  const status = appContainer(pod);
  const { name, uid, deletionTimestamp, creationTimestamp } = pod.metadata;
  return {
    index: indexOf(pod),
    generation: pod.metadata.labels?.[labels.generation] ?? '',
    pod: name,
    uid,
    ready: isPodReady(pod),
    ending: deletionTimestamp !== undefined,
    ...(facts.leaving === true ? { leaving: true } : {}),
    created: time(creationTimestamp) || 0,
    restarts: status?.restartCount ?? 0,
    ...factsOf(pod, status, facts),
  };
}
