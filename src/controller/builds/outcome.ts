// Reads the outcome of a build from its pod: waiting (for what), running, done, or failed (where and why). Pure.

import { buildWithoutNode, causeOfScheduling } from '../../lib/api/causes.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import { reasons } from '../../lib/api/group.ts';
import type { ContainerStatus } from '../../lib/api/pod.ts';
import { cutText } from '../../lib/api/text.ts';
import type { BuildFailure } from '../../lib/api/types.generated.ts';
import { stripVTControlCharacters } from 'node:util';
import { buildContainers } from '../../templates/build-job.ts';
import { endedByOther } from '../../templates/build-scripts.ts';
import { obstacleOf } from '../instances/obstacle.ts';
import { parseExportReport } from './report.ts';
import type { ExportReport } from './report.ts';
import { defined } from '../../lib/defined.ts';

/** `lane` is the name of a build container in the API. */
type BuildContainer = NonNullable<BuildFailure['lane']>;

export interface FailedBuild {
  failure: BuildFailure;
  /** One sentence for people. */
  message: string;
}

export interface WaitingBuild {
  reason: string;
  message: string;
  /** Since when, if the pod says so. */
  since?: string;
  /** Otherwise what its first sight on the pod is remembered by. */
  cause?: string;
  /** How long this may last, if that is not as long as the reason may in general. */
  patienceMs?: number;
}

export type BuildOutcome =
  | ({ state: 'waiting' } & WaitingBuild)
  | { state: 'running' }
  | { state: 'succeeded'; report: ExportReport }
  | ({ state: 'failed' } & FailedBuild);

interface Ended {
  lane: BuildContainer;
  exitCode: number;
  reason: string;
  message: string;
  finishedAt: string;
}

const containers: readonly BuildContainer[] = Object.values(buildContainers);
/** Exit codes of the lifecycle's detector: no group passed, with or without errors. https://github.com/buildpacks/spec/blob/main/platform.md#detector */
const detectFailed = new Set([20, 21]);
/** Exit codes after SIGKILL and SIGTERM. */
const killed = new Set([137, 143]);

/** After all others: the node of a container that it does not find any more does not know when it ended. */
const unknownTime = '9999-12-31T23:59:59Z';

function endedContainers(statuses: readonly ContainerStatus[]): Ended[] {
  return containers.flatMap((lane) => {
    const ended = statuses.find((status) => status.name === lane)?.state?.terminated;
    if (ended === undefined) return [];
    const { exitCode, reason = '', message = '', finishedAt } = ended;
    return [{ lane, exitCode, reason, message, finishedAt: finishedAt ?? unknownTime }];
  });
}

/** The lifecycle's last lines, which only say that something failed, never what. */
const emptyWords =
  /^ERROR: (failed to (build|detect): (exit status \d+|no buildpacks participating)|Please check that you are running against the correct path)/;

function saidLines(text: string): string[] {
  const lines = stripVTControlCharacters(text).split('\n');
  return lines.map((line) => line.trim()).filter((line) => line !== '');
}

/** The last line that names the error, at most 500 characters. */
export function lastLine(text: string): string {
  const lines = saidLines(text).filter((line) => !emptyWords.test(line));
  return cutText((lines.at(-1) ?? '').replace(/^ERROR:\s*/, ''), 500);
}

/** The buildpacks that failed according to the detector's output. */
function triedBuildpacks(text: string): string[] {
  const tried = saidLines(text).flatMap((line) => /^(?:fail|err): +([^\s@]+)/.exec(line)?.[1] ?? []);
  return [...new Set(tried)];
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

function causeOf({ lane, exitCode, reason, message }: Ended, memoryMB: number): FailedBuild {
  const failed = (name: string, text: string): FailedBuild => ({ failure: { lane, exitCode, reason: name }, message: sentence(text) });
  const said = lastLine(message);
  if (reason === 'OOMKilled') {
    const limit = lane === buildContainers.build ? ` (limit ${memoryMB} MB)` : '';
    return failed(reasons.outOfMemory, `The build ran out of memory in its ${lane} container${limit}`);
  }
  if (lane === buildContainers.source) return failed(reasons.sourceFetchFailed, said === '' ? 'The source could not be fetched' : said);
  if (lane === buildContainers.registry)
    return failed(reasons.registryRefused, `The registry side of the build failed: ${said === '' ? `exit code ${exitCode}` : said}`);
  if (detectFailed.has(exitCode)) {
    const tried = triedBuildpacks(message);
    return failed(
      reasons.noBuildpackMatched,
      `No buildpack recognised the source${tried.length === 0 ? '' : `; tried: ${tried.join(', ')}`}`,
    );
  }
  return failed(reasons.buildFailed, `The build failed with exit code ${exitCode}${said === '' ? '' : `: ${said}`}`);
}

const deadlineExceeded = 'DeadlineExceeded';

const durationText = (seconds: number): string => (seconds % 60 === 0 && seconds > 60 ? `${seconds / 60} minutes` : `${seconds} s`);

/** The failure that the kubelet reports of the whole pod: a timeout, an eviction. */
function podFailure(pod: Pod, timeoutSeconds: number): FailedBuild | undefined {
  const { phase, reason, message = '' } = pod.status ?? {};
  if (phase !== 'Failed' || reason === undefined) return undefined;
  if (reason === deadlineExceeded)
    return { failure: { reason: reasons.buildTimeout }, message: `The build took longer than ${durationText(timeoutSeconds)}.` };
  return {
    failure: { reason: reasons.buildFailed },
    message: sentence(`The build's pod was ended (${reason})${message === '' ? '' : `: ${message}`}`),
  };
}

/**
 * Whether the kubelet may have stopped the pod without having said why: it can report how the containers ended before it reports the phase and the
 * reason of the pod (`mergePodStatus` in kubernetes/pkg/kubelet/status). The phase follows at once when no container is left. While another one runs on, for
 * example one that a service mesh has added, it does not follow.
 */
function mayBeStopped({ status }: Pod, { exitCode, reason }: Ended, ended: readonly Ended[]): boolean {
  const isOver = status?.phase === 'Failed' || status?.phase === 'Succeeded';
  const haveAllEnded = (status?.containerStatuses ?? []).every(({ state }) => state?.terminated !== undefined);
  return !isOver && haveAllEnded && ended.length === containers.length && killed.has(exitCode) && reason !== 'OOMKilled';
}

/** What the pod waits for; undefined once a container has started. */
function waiting(pod: Pod, statuses: readonly ContainerStatus[], wasSeen: (cause: string) => boolean): BuildOutcome | undefined {
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
  if (scheduled?.status === 'False') {
    const since = scheduled.lastTransitionTime;
    const said = scheduled.message ?? scheduled.reason ?? 'not scheduled';
    const isKnown = causeOfScheduling(said, scheduled.reason) !== 'unknown';
    const message = sentence(`${isKnown ? 'No node can run the build' : buildWithoutNode}: ${said}`);
    return { state: 'waiting', reason: reasons.unschedulable, message, ...defined({ since }) };
  }
  for (const status of statuses) {
    const { name, image, state } = status;
    // Each container of the pod has its own image, which may be late, and its own Secrets.
    const ofContainer = (cause: string): string => `${name} ${cause}`;
    const obstacle = obstacleOf(pod, status, (cause) => wasSeen(ofContainer(cause)));
    if (obstacle === undefined) continue;
    const message = state?.waiting?.message ?? '';
    const base = { state: 'waiting' as const, cause: ofContainer(obstacle.cause), ...defined({ patienceMs: obstacle.patienceMs }) };
    if (obstacle.reason === 'CreateContainer')
      return { ...base, reason: reasons.buildFailed, message: sentence(`The build's ${name} container cannot start: ${message}`) };
    const text = sentence(
      `The image '${image}' of the build's ${name} container cannot be pulled${message === '' ? '' : `: ${lastLine(message)}`}`,
    );
    // The source container runs kf's own program, mostly in another image.
    const isBuilder = image === statuses.find((other) => other.name === buildContainers.build)?.image;
    return { ...base, reason: isBuilder ? reasons.builderNotFound : reasons.buildFailed, message: text };
  }
  return statuses.some((status) => status.state?.running !== undefined || status.state?.terminated !== undefined)
    ? undefined
    : { state: 'waiting', reason: reasons.buildRunning, message: 'The build starts.' };
}

export interface OutcomeLimits {
  memoryMB: number;
  timeoutSeconds: number;
}

/**
 * The outcome of a build by its pod. A container that ended because another one failed is never the cause.
 * @param wasSeen tells whether the cause of a {@link WaitingBuild} was seen on the pod before
 */
export function outcomeOf(pod: Pod, limits: OutcomeLimits, wasSeen: (cause: string) => boolean = () => false): BuildOutcome {
  const statuses = pod.status?.containerStatuses ?? [];
  const ended = endedContainers(statuses);
  const ofPod = podFailure(pod, limits.timeoutSeconds);
  if (ofPod !== undefined && pod.status?.reason === deadlineExceeded) return { state: 'failed', ...ofPod };
  const culprit = ended
    .filter(({ exitCode }) => exitCode !== 0 && exitCode !== endedByOther)
    .toSorted((a, b) => a.finishedAt.localeCompare(b.finishedAt))[0];
  // A container that the kubelet killed while it stopped the pod did not fail by itself.
  if (ofPod !== undefined && (culprit === undefined || killed.has(culprit.exitCode))) return { state: 'failed', ...ofPod };
  if (culprit !== undefined && mayBeStopped(pod, culprit, ended)) return { state: 'running' };
  if (culprit !== undefined) return { state: 'failed', ...causeOf(culprit, limits.memoryMB) };
  if (ended.length === containers.length) {
    const report = parseExportReport(ended.find(({ lane }) => lane === buildContainers.registry)?.message ?? '');
    if (report !== undefined) return { state: 'succeeded', report };
    return { state: 'failed', failure: { reason: reasons.buildFailed }, message: 'The build ended without reporting a droplet.' };
  }
  return waiting(pod, statuses, wasSeen) ?? { state: 'running' };
}
