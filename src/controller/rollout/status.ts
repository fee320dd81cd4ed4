// Computes the status of a CFProcess: its instances and the current change. Pure.

import type { Stored } from '../../lib/api/object.ts';
import { causeOfReason } from '../../lib/api/causes.ts';
import { deploymentFailures, otherProcessFailed } from '../../lib/api/group.ts';
import type { CanaryProgress } from '../../lib/api/rollout.ts';
import { countInstances, instanceLimits } from '../../lib/api/app.ts';
import { podSelectorOf, sidecarOf } from '../../lib/api/names.ts';
import { cutText } from '../../lib/api/text.ts';
import type { DeploymentStatus, GenerationStatus, InstanceCounts, InstanceStatus } from '../../lib/api/types.generated.ts';
import type { CFProcess, CFProcessStatus } from '../../lib/api/types.generated.ts';
import type { LogEnds } from '../../lib/kube/lines.ts';
import type { Instance, Problem } from '../instances/instances.ts';
import { longestMessage } from '../runtime/status.ts';
import type { RolloutPlan } from './planner.ts';
import { isQuotaRefusal } from './refusal.ts';
import { hasServed, isUntouched } from './untouched.ts';
import { timestamp } from '../runtime/clock.ts';
import { defined } from '../../lib/defined.ts';

/** The text if it is a valid time; undefined otherwise. */
const valid = (text: string | undefined): string | undefined => (text === undefined || Number.isNaN(Date.parse(text)) ? undefined : text);

const rank: Record<InstanceStatus['state'], number> = { RUNNING: 0, STARTING: 1, CRASHED: 2, DOWN: 3 };

/** The exit code of a sidecar that failed, which is named, otherwise that of the app. */
function endOf({ problem, exitCode }: Instance): { container?: string | undefined; exitCode: number | undefined } {
  const { container } = problem ?? {};
  return container === undefined || sidecarOf(container) === undefined ? { exitCode } : { container, exitCode: problem?.exitCode };
}

function statusOf(instance: Instance): InstanceStatus {
  const since = valid(instance.since);
  return {
    state: instance.state,
    ready: instance.ready,
    restarts: instance.restarts,
    pod: instance.pod,
    generation: instance.generation,
    ...defined({ timestamp: since, node: instance.node }),
    ...(instance.details === undefined ? {} : { details: cutText(instance.details, instanceLimits.detailCharacters) }),
    ...defined({ reason: instance.reason, cause: instance.problem?.cause, ...endOf(instance) }),
  };
}

/**
 * One entry per index. While two generations have an instance of one index, the running one counts, then the one of the wanted generation.
 * Ending instances have no entry, except on a node that does not answer: nobody knows when these end.
 */
export function instancesStatus(instances: readonly Instance[], wanted: string): Record<string, InstanceStatus> {
  const order = (instance: Instance): number => rank[instance.state] * 2 + (instance.generation === wanted ? 0 : 1);
  const chosen = new Map<number, Instance>();
  for (const instance of instances.filter(({ ending, problem }) => !ending || problem?.cause === 'node-lost')) {
    const present = chosen.get(instance.index);
    if (present === undefined || order(instance) < order(present)) chosen.set(instance.index, instance);
  }
  return Object.fromEntries([...chosen].sort(([a], [b]) => a - b).map(([index, instance]) => [String(index), statusOf(instance)]));
}

/** Adds an entry with the reason for each index whose instance is missing. */
export function withAbsent(
  present: Record<string, InstanceStatus>,
  wanted: number,
  absent: Problem | undefined,
): Record<string, InstanceStatus> {
  if (absent === undefined) return present;
  const { reason, cause } = absent;
  const details = cutText(absent.message, instanceLimits.detailCharacters);
  const missing = Array.from({ length: wanted }, (_, index) => String(index)).filter((index) => present[index] === undefined);
  return {
    ...present,
    ...Object.fromEntries(missing.map((index) => [index, { state: 'DOWN' as const, ready: false, reason, cause, details }])),
  };
}

/** The part of the status about instances: the first ones each, and counts of all. Its size does not grow with the app. */
export function summaryOf(instances: Record<string, InstanceStatus>): {
  instancesStatus: Record<string, InstanceStatus>;
  instanceCounts: InstanceCounts;
} {
  // JavaScript sorts integer keys by number.
  const listed = Object.entries(instances).slice(0, instanceLimits.listed);
  return { instancesStatus: Object.fromEntries(listed), instanceCounts: countInstances(Object.values(instances)) };
}

/** What the status of a process says of its instances. Counted by index: during a rollout, two instances with one index count as one. */
export function instancesPart(
  instances: Record<string, InstanceStatus>,
): Pick<CFProcessStatus, 'actualInstances'> & ReturnType<typeof summaryOf> {
  return { actualInstances: Object.values(instances).filter(({ ready }) => ready === true).length, ...summaryOf(instances) };
}

/** The cause of a failure, as the status keeps it. */
export interface Cause {
  problem: Problem;
  instance?: Instance;
  log?: LogEnds;
}

export interface RolloutFacts {
  process: Stored<CFProcess>;
  deployId: string;
  target: string;
  desired: number;
  plan: RolloutPlan;
  generations: GenerationStatus[];
  instances: readonly Instance[];
  /** Ready instances of the wanted generation, and whether it may take requests. */
  ready: number;
  proven: boolean;
  /** Routes lead only to the wanted generation (always true without routes). */
  switched: boolean;
  /** The step of a canary that the change is at, and whether it was reached. */
  canary?: CanaryProgress;
  reached?: boolean;
  /** The change was canceled: the wanted generation is the one before. */
  canceled?: boolean;
  /** The generation has failed. `cause` is missing when the failure was reported before. */
  failed: boolean;
  cause?: Cause;
  /** The process that failed instead, and that this one follows to the version before. */
  sibling?: string;
  /** What the rollout waits for, if known. */
  awaited?: Problem | { reason: string; message: string };
  /** Why expected instances do not exist. */
  absent?: Problem;
  /** A note for a success, such as that the gateway could not be asked. */
  note?: { reason: string; message: string };
  /** Uid of the wanted generation's AppWorkload. */
  targetUid: string;
  now: number;
}

type Phase = DeploymentStatus['phase'];
type Body = Omit<DeploymentStatus, 'id' | 'since' | 'generations' | 'process'>;

function failed(facts: RolloutFacts, before: DeploymentStatus | undefined): Body {
  const { cause, plan, target, instances, sibling } = facts;
  if (sibling !== undefined) {
    const message = `Process '${sibling}' of this version failed, so the version before runs.`;
    // Without a cause: the other process has it.
    return { phase: 'Failed', reason: otherProcessFailed, message };
  }
  if (cause === undefined) {
    const {
      id: _id,
      since: _since,
      generations: _generations,
      process: _process,
      ...kept
    } = before ?? { id: '', phase: 'Failed' as const };
    const isOwn = kept.reason === undefined || (deploymentFailures.some((one) => one === kept.reason) && !isQuotaRefusal(kept));
    // Something hindered the change for a while after that, and the status had its text instead.
    return isOwn
      ? { ...kept, phase: 'Failed' }
      : { phase: 'Failed', reason: 'Unknown', message: 'This version failed before in this change.' };
  }
  const { problem, instance, log } = cause;
  const isWoken = plan.goal !== target && !instances.some(({ generation, ending }) => generation === plan.goal && !ending);
  return {
    phase: 'Failed',
    reason: problem.reason,
    cause: problem.cause,
    message: isWoken ? `${problem.message} The version that served last is started in its place.` : problem.message,
    ...defined({ pod: instance?.pod, restarts: instance?.restarts, container: problem.container, exitCode: problem.exitCode }),
    ...(log === undefined || log.tail.length === 0 ? {} : { logTail: log.tail }),
    ...(log === undefined || log.head.length === 0 ? {} : { logHead: log.head, logOmitted: log.omitted }),
  };
}

function stopped({ instances }: RolloutFacts): Body {
  const left = instances.filter(({ ready, ending }) => ready || !ending).length;
  return left === 0
    ? { phase: 'Stopped' }
    : { phase: 'Pending', reason: 'Stopping', message: `${String(left)} instances are still to end.` };
}

function underWay(facts: RolloutFacts): Body {
  const { awaited, ready, desired, proven, instances, target } = facts;
  const own = instances.filter(({ generation, ending }) => generation === target && !ending);
  const phase: Phase = own.some(({ state }) => state !== 'DOWN') ? 'Starting' : 'Pending';
  if (awaited !== undefined) return { phase, reason: awaited.reason, message: awaited.message };
  if (ready > 0 && !proven) return { phase, reason: 'Serving', message: 'Waiting for the first answer of the new version.' };
  if (ready >= desired)
    return {
      phase,
      reason: 'Instances',
      message: `Waiting for all routes to lead to ${facts.canceled === true ? 'the version before' : 'the new version'}.`,
    };
  return { phase, reason: 'Instances', message: `${String(ready)} of ${String(desired)} instances are ready.` };
}

/**
 * True when somebody deleted the generation that this status is about, and it was made again. The old status then says nothing about the
 * new one.
 */
export function isRemade(before: DeploymentStatus, hash: string, uid: string): boolean {
  const known = before.generations?.find((generation) => generation.hash === hash)?.uid;
  return known !== undefined && known !== uid;
}

/** A canary is paused when its instances of the step serve, and stays so until the next step: a later failure of an instance appears in its status. */
function atStep(facts: RolloutFacts, { step, steps }: CanaryProgress, before: DeploymentStatus | undefined): Body {
  const { ready, desired, proven, reached } = facts;
  const isReached = reached === true && (desired === 0 || (ready >= desired && proven));
  const wasReached = before?.phase === 'Paused' && before.step === step && !isRemade(before, facts.target, facts.targetUid);
  if (!isReached && !wasReached) {
    const empty = { phase: 'Pending', reason: 'Instances', message: 'There is no instance to try the new version with.' } as const;
    return { ...(desired === 0 ? empty : underWay(facts)), step };
  }
  return { phase: 'Paused', step, reason: 'Canary', message: `The canary has reached step ${String(step)} of ${String(steps)}.` };
}

function body(facts: RolloutFacts, before: DeploymentStatus | undefined, isStarted: boolean): Body {
  if (!isStarted) return stopped(facts);
  if (facts.failed) return failed(facts, before);
  if (facts.canary !== undefined) return atStep(facts, facts.canary, before);
  const serves = facts.desired === 0 || (facts.ready >= facts.desired && facts.proven && facts.switched);
  // The result of a version that served once stays when the version before has been let go; a later failure of an instance appears in the status of the instance.
  // One that had no instances to start has not served yet.
  const said = before?.generations?.find(({ hash }) => hash === facts.target);
  const served =
    before?.id === facts.deployId &&
    before.phase === 'Serving' &&
    !isRemade(before, facts.target, facts.targetUid) &&
    said?.state === 'Current' &&
    hasServed(said, before.phase);
  if (!serves && !served) return underWay(facts);
  return { phase: 'Serving', ...facts.note };
}

/** The kept log, and the container that wrote it. */
function logOf(before: DeploymentStatus | undefined): Pick<DeploymentStatus, 'pod' | 'container' | 'logHead' | 'logOmitted' | 'logTail'> {
  const { pod, container, logHead, logOmitted, logTail } = before ?? {};
  if (logTail === undefined) return {};
  return { ...defined({ pod, container, logHead, logOmitted }), logTail };
}

/** The new `status.rollout`. It equals the old one if nothing changed, so that nothing is written. */
export function rolloutStatus(facts: RolloutFacts, isStarted: boolean): DeploymentStatus {
  const before = facts.process.status?.rollout;
  const same = before?.id === facts.deployId ? before : undefined;
  // The log of a failed version stays readable while the app is stopped.
  const next = isStarted ? body(facts, same, isStarted) : { ...logOf(before), ...body(facts, same, isStarted) };
  const since = same?.phase === next.phase && same.since !== undefined ? same.since : timestamp(facts.now);
  const message = next.message === undefined ? {} : { message: cutText(next.message, longestMessage) };
  return {
    id: facts.deployId,
    ...next,
    ...message,
    process: facts.process.spec.processType,
    since,
    generations: facts.generations,
    ...(facts.canceled === true ? { canceled: true } : {}),
  };
}

/** Something missing may still appear, for example the Secret of a binding. After this time the change counts as failed. */
const hindrancePatienceMs = 15_000;

/** The text of a refusal stays as it was first: one that differs with every try would wake the next one. */
const textOfRefusal = ({ reason, message }: DeploymentStatus): string | undefined =>
  reason === 'QuotaExceeded' || reason === 'GenerationRefused' ? message : undefined;

/** A version of an earlier change: what it came to there says nothing about it in this one. One that failed before it served has not served. */
function asEarlier({ verified, untouched: _untouched, leaving: _leaving, ...generation }: GenerationStatus): GenerationStatus {
  const answered = generation.state !== 'Failed' || generation.served === true ? verified : undefined;
  return { ...generation, ...defined({ verified: answered }), state: 'Old' };
}

/** The versions that the status lists while a change is hindered. If one turns out to be the wanted one, the change may leave the process as it is. */
function listedOf(rollout: DeploymentStatus | undefined, id: string): Pick<DeploymentStatus, 'generations'> {
  if (rollout?.id === id) return defined({ generations: rollout.generations });
  const generations = rollout?.generations?.map((said) => ({
    ...asEarlier(said),
    ...(isUntouched(rollout, said.hash, id) ? { untouched: true as const } : {}),
  }));
  return defined({ generations });
}

/**
 * `status.rollout` of a change that cannot start.
 * @param now milliseconds by the API server's clock
 * @param from since when this controller has been able to mend it; time before that does not count
 */
export function hinderedRollout(
  { spec, status }: Stored<CFProcess>,
  id: string,
  { reason, message }: { reason: string; message: string },
  { now, from }: { now: number; from: number },
): DeploymentStatus {
  const before = status?.rollout?.id === id ? status.rollout : undefined;
  const isSame = before?.reason === reason && before.since !== undefined && (before.phase === 'Pending' || before.phase === 'Failed');
  const since = isSame ? (before.since ?? '') : timestamp(now);
  const isLasting = before?.phase === 'Failed' || now - Math.max(Date.parse(since), from) > hindrancePatienceMs;
  const phase: Phase = isSame && isLasting ? 'Failed' : 'Pending';
  const text = isSame && before.phase === phase ? textOfRefusal(before) : undefined;
  const cause = phase === 'Failed' ? causeOfReason(reason) : undefined;
  return {
    id,
    phase,
    reason,
    ...defined({ cause }),
    message: text ?? cutText(message, longestMessage),
    process: spec.processType,
    since,
    // A canary that is hindered stays one.
    ...defined({ step: before?.step }),
    ...listedOf(status?.rollout, id),
  };
}

/** `status.rollout` of a process of a stopped app that has no generation: what hindered an earlier change counts no more. */
export function endedRollout({ spec, status }: Stored<CFProcess>, id: string, now: number): DeploymentStatus | undefined {
  const before = status?.rollout;
  if (before === undefined || (before.id === id && before.phase === 'Stopped')) return before;
  return { id, phase: 'Stopped', process: spec.processType, since: timestamp(now) };
}

export function selectorOf(process: Stored<CFProcess>): string {
  return podSelectorOf(process);
}
