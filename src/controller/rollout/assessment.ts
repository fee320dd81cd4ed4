// Decides how the wanted generation of a rollout does: it serves, it may still become ready, or it has failed and why.

import type { Stored } from '../../lib/api/object.ts';
import { statefulSetType } from '../../lib/api/core.ts';
import { causeOfCheck } from '../../lib/api/check-words.ts';
import { kinds } from '../../lib/api/group.ts';
import { sidecarContainer } from '../../lib/api/names.ts';
import type { CauseCode } from '../../lib/api/causes.ts';
import { isCanceled } from '../../lib/api/rollout.ts';
import type { AppWorkload, CFApp, CFProcess, DeploymentStatus } from '../../lib/api/types.generated.ts';
import { generationOf, statefulSetNameOf, stopSecondsOf } from '../../templates/stateful-set.ts';
import { whyUnanswered, withLines } from '../instances/failed-check.ts';
import { untilCaughtUp } from '../instances/first-sight.ts';
import type { Expectations, Instance, Instances, Problem } from '../instances/instances.ts';
import { problemOfRefusal } from '../instances/pod-instances.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { isOwnedBy } from '../runtime/owner.ts';
import type { Context } from '../runtime/reconciler.ts';
import type { CanaryStep } from './planner.ts';
import { setRefusalOf } from './refusal.ts';
import { isMoving } from './spare.ts';
import type { Proof } from './traffic-probe.ts';
import { isRemade, type Cause } from './status.ts';
import { hasServed } from './untouched.ts';
import { defined } from '../../lib/defined.ts';

/** Pods appear within this time after they were requested, unless something refuses them. */
const missingMs = 500;
const assessAgainMs = 2_000;
/** A quota gives back what an instance had only a moment after it is gone: its refusal is final after this time. */
const quotaPatienceMs = 5_000;
/** An instance that was not made although nothing refused it, as when the API server was restarted: Kubernetes tries again within this time. */
const unansweredMs = 8_000;
/** While others ended, Kubernetes tried to make the instance, and tries again only after about as long as it had tried before. */
const afterOthersMs = 20_000;
/** The scheduler tries an instance again up to 10 s after the room for it has appeared. */
const scheduleAgainMs = 15_000;
/** Instances beyond those wanted that are still there after this time are kept: the only ready one of an old version may be the last to end. */
const surplusMs = 30_000;
/** A pod that its node has refused or ended is made again at once; that another node takes it is known after this time. */
const madeAgainMs = 8_000;
const forgottenMs = 5 * 60_000;
/** Reasons of an instance that ended or does not answer, and not of its surroundings. */
const ownFailures: ReadonlySet<string> = new Set(['Crashed', 'OutOfMemory', 'HealthCheckFailed']);
/** A version before that has not been let go after this time never goes by itself: the one that has replaced it is not judged any more. */
const letGoMs = 5 * 60_000;
const endedByNode: ReadonlySet<CauseCode> = new Set(['node-lost', 'no-room', 'evicted']);
/** The kubelet checks once a second. It sends an Event for each of the first 25 failures in a row, and only a few Events after that. */
const checksWithEvent = 25;
/** A busy node is late with its checks, and with the stop of an instance. */
const busyNodeSeconds = 10;

/** Repository of a droplet that was built here (docs/internals.md). */
const builtImage = /-droplets@sha256:[0-9a-f]{64}$/;

/** The input of one rollout step. */
export interface View {
  context: Context;
  app: Stored<CFApp>;
  process: Stored<CFProcess>;
  target: Stored<AppWorkload>;
  hash: string;
  workloads: Stored<AppWorkload>[];
  seam: Instances;
  instances: Instance[];
  desired: number;
  /** The step at which the change pauses. */
  canary?: CanaryStep | undefined;
  routed: boolean;
  deployId: string;
  /** Earliest moment to look again, in milliseconds from now. */
  lookAgain: number[];
}

export interface Assessment {
  failed: boolean;
  cause?: Cause;
  awaited?: Problem | { reason: string; message: string };
  /** Why expected instances do not exist. */
  absent?: Problem;
}

/** What is awaited is room for an instance of the target: of a quota, or on a node. */
export function isLackOfRoom(awaited: Assessment['awaited']): boolean {
  return awaited !== undefined && 'cause' in awaited && (awaited.cause === 'quota' || awaited.cause === 'no-room');
}

/**
 * True when the StatefulSet or the AppWorkload of an instance was deleted. Another one of the same name may exist by now, but the instance
 * is still removed.
 */
export function isLeftOver({ stores }: Context, workload: Stored<AppWorkload> | undefined, { owner }: Instance): boolean {
  if (workload === undefined || owner === undefined) return false;
  const set = stores.of(statefulSetType).get(workload.metadata.namespace, statefulSetNameOf(workload));
  return set?.metadata.uid !== owner || !isOwnedBy(set, workload);
}

export function readyOf(instances: readonly Instance[], hash: string): number {
  return instances.filter(({ generation, ready }) => generation === hash && ready).length;
}

/** How many instances of the target shall run now. */
export function mostOf({ desired, canary }: View): number {
  return Math.min(desired, canary?.instances ?? desired);
}

function readinessOf({ spec: { readinessProbe: check, ports } }: Stored<AppWorkload>): Expectations['readiness'] {
  const port = ports?.[0];
  if (check === undefined || port === undefined) return undefined;
  const failsAfterSeconds = (check.periodSeconds ?? 10) * (check.failureThreshold ?? 3);
  return { port, failsAfterSeconds, ...defined({ path: check.httpGet?.path }) };
}

/** The kubelet checks once a second, or as often as a check that is not answered lets it. Then it stops the run, which a busy node does a moment later. */
function longestStartOf(workload: Stored<AppWorkload>): number | undefined {
  const { startupProbe: check } = workload.spec;
  if (check === undefined) return undefined;
  return (
    (check.failureThreshold ?? 0) * Math.max(check.periodSeconds ?? 1, check.timeoutSeconds ?? 1) +
    stopSecondsOf(workload) +
    busyNodeSeconds
  );
}

function sidecarMemoryOf({ spec: { sidecars = [] } }: Stored<AppWorkload>): Expectations['sidecarMemory'] {
  const limits = sidecars.flatMap(({ name, resources }, index) => {
    const memory = resources?.limits?.['memory'];
    return memory === undefined ? [] : [[sidecarContainer(index, name), memory.toString()]];
  });
  return limits.length === 0 ? undefined : (Object.fromEntries(limits) as Record<string, string>);
}

/** The limits by which the instances of a generation are assessed. */
export function expectationsOf(workload: Stored<AppWorkload> | undefined): Expectations {
  if (workload === undefined) return { startSeconds: 0 };
  const { startupProbe: check, ports, resources, image, processType } = workload.spec;
  const port = check === undefined ? undefined : ports?.[0];
  const path = check?.httpGet?.path;
  const memory = resources?.limits?.['memory'];
  return {
    startSeconds: check?.failureThreshold ?? 0,
    ...defined({ port, path, readiness: readinessOf(workload), longestStartSeconds: longestStartOf(workload) }),
    ...defined({ memory: memory?.toString(), sidecarMemory: sidecarMemoryOf(workload) }),
    ...(builtImage.test(image) ? { builtProcess: processType } : {}),
  };
}

/**
 * The phase that was reported before for this generation in this change. A failure that is not its own is that of a hindrance, which is over. A version
 * that never served is reported as serving while no instances are wanted: with the first one it has still to start.
 */
function saidBefore({ process, deployId, hash, target }: View): DeploymentStatus['phase'] | undefined {
  const before = process.status?.rollout;
  if (before?.id !== deployId || isRemade(before, hash, target.metadata.uid)) return undefined;
  const said = before.generations?.find((generation) => generation.hash === hash);
  if (said?.state === 'Failed') return 'Failed';
  if (said?.state !== 'Current' || before.phase === 'Failed') return undefined;
  return before.phase === 'Serving' && !hasServed(said, before.phase) ? undefined : before.phase;
}

/** A failed check with what the kubelet says of it. */
function withCheck(problem: Problem, said: string | undefined, expectations: Expectations): Problem {
  const { readiness, path } = expectations;
  // Without words, the check that failed is known all the same.
  if (problem.ofPresentRun === true && said === undefined) return problem;
  const check = problem.ofPresentRun === true && readiness !== undefined ? readiness : expectations;
  const why = whyUnanswered(said, check, check === readiness && readiness.path !== path);
  return { ...problem, cause: causeOfCheck(said, check), message: `${problem.message} ${why}` };
}

/**
 * Confirms a failure that was concluded from elapsed time. It counts only when the controller missed nothing in that time, so the
 * assessment waits after a gap in the watch. A failed check counts only when the kubelet also reported a late failure. Otherwise an app
 * that serves would count as failed because its kubelet is silent. Last, the API server is asked. Returns undefined when this is not known
 * yet. The kubelet soon restarts an app that really fails, and the controller sees the restart.
 */
async function confirm(view: View, problem: Problem, instance: Instance | undefined): Promise<Problem | undefined> {
  const isCheck = problem.reason === 'HealthCheckFailed' && instance !== undefined;
  const said = isCheck ? await view.seam.lastCheck(view.process.metadata.namespace, instance) : undefined;
  const told = isCheck ? withCheck(problem, said?.message, expectationsOf(view.target)) : problem;
  if (problem.byTime !== true) return told;
  const left = untilCaughtUp(view.seam.steadySince(), view.context.now());
  if (left > 0) {
    view.lookAgain.push(left);
    return undefined;
  }
  // An app that has passed its start check has had time, whatever a kubelet says of the check of its readiness.
  if (isCheck && problem.ofPresentRun !== true && !isLate(said?.at, instance, expectationsOf(view.target))) return undefined;
  return instance === undefined || (await isStillSo(view, problem, instance)) ? told : undefined;
}

/** True for a check that failed when the kubelet had repeated it for nearly as long as the app may take. */
function isLate(at: number | undefined, { startedAt = 0 }: Instance, { startSeconds }: Expectations): boolean {
  return at !== undefined && at >= startedAt + Math.min(startSeconds, checksWithEvent) * 700;
}

/** The cache may lag behind: the instance may have become ready. */
async function isStillSo({ seam, process, target }: View, { reason }: Problem, instance: Instance): Promise<boolean> {
  const now = await seam.problemNow(process.metadata.namespace, instance, expectationsOf(target));
  return now?.final === true && now.reason === reason;
}

export class Assessor {
  /** Since when pods are missing, per generation. */
  readonly #missing = new BoundedMap<string, number>(5_000);
  /** When others were last seen ending beside a target whose instances are missing. */
  readonly #othersLeft = new BoundedMap<string, number>(5_000);
  /** How many instances stay beyond those wanted, and since when so many do. */
  readonly #surplus = new BoundedMap<string, { count: number; since: number }>(5_000);
  /** Since when, and when last, nodes were seen to have refused or ended an instance, by the change and the instance; until it is ready. */
  readonly #endedByNode = new BoundedMap<string, { since: number; last: number }>(5_000);

  /** A result is valid for its change: Serving stays once the version before has been let go; Failed stays until the generation recovers by itself. */
  async assess(view: View, proof: Proof): Promise<Assessment> {
    const before = saidBefore(view);
    if (mostOf(view) === 0) return { failed: false };
    if (before === 'Serving' && !mayReturn(view)) return this.#serving(view);
    const isFull = readyOf(view.instances, view.hash) >= mostOf(view);
    if (before === 'Failed') return this.#failed(view, !isFull || proof.state !== 'proven');
    if (isFull && proof.state === 'proven') return { failed: false };
    view.lookAgain.push(assessAgainMs);
    const { problem, instance } = await this.#worst(view, proof);
    if (problem === undefined) return { failed: false, ...awaitedOf(proof) };
    if (problem.lookAgainMs !== undefined) view.lookAgain.push(problem.lookAgainMs);
    // Of a version that has served, only its own failures count: the one before still answers while an instance has no room.
    const counts = before !== 'Serving' || ownFailures.has(problem.reason);
    if (!problem.final || !counts)
      return {
        failed: false,
        awaited: problem,
        ...defined({ absent: before === 'Serving' && instance === undefined ? problem : undefined }),
      };
    const confirmed = await confirm(view, problem, instance);
    return confirmed === undefined ? { failed: false, awaited: { ...problem, final: false } } : this.#fail(view, confirmed, instance);
  }

  /** A generation that served is not assessed again. The result only reports instances that cannot be created. */
  async #serving(view: View): Promise<Assessment> {
    const own = ownOf(view);
    // Nothing of the pod changes when a cause becomes certain by time.
    view.lookAgain.push(...own.flatMap(({ problem }) => (problem?.ofPresentRun === true ? (problem.lookAgainMs ?? []) : [])));
    const absent = await this.#missingInstances(view, view.target, own.length);
    return { failed: false, ...defined({ absent }) };
  }

  /** The version that serves in place of a failed one is not assessed either, but it may grow too. */
  async #failed(view: View, failed: boolean): Promise<Assessment> {
    const standIn = view.workloads.find(({ metadata, spec }) => metadata.uid !== view.target.metadata.uid && spec.instances > 0);
    if (!failed || standIn === undefined) return { failed };
    const hash = generationOf(standIn);
    const present = view.instances.filter(({ generation, ending }) => generation === hash && !ending).length;
    const absent = await this.#missingInstances(view, standIn, present);
    return { failed, ...defined({ absent }) };
  }

  async #fail(view: View, problem: Problem, instance: Instance | undefined): Promise<Assessment> {
    const log = instance === undefined ? undefined : await view.seam.logEnds(view.process.metadata.namespace, instance);
    const known = withLines(problem, log, expectationsOf(view.target));
    const message = `${view.process.spec.processType}: ${known.message}`;
    view.context.event(kinds.app, view.app, { type: 'Warning', reason: known.reason, message });
    return { failed: true, cause: { problem: known, ...defined({ log, instance }) } };
  }

  async #worst(view: View, proof: Proof): Promise<{ problem?: Problem; instance?: Instance }> {
    if (proof.state === 'refused') return { problem: { reason: proof.reason, cause: proof.cause, message: proof.message, final: true } };
    const own = ownOf(view);
    const makesRoom = this.#othersLeave(view);
    if (makesRoom) this.#othersLeft.set(view.target.metadata.uid, view.context.now());
    for (const ready of own.filter((instance) => instance.ready)) this.#endedByNode.delete(keyOfEnds(view, ready));
    const [worst] = own
      .flatMap((instance) =>
        instance.problem === undefined ? [] : [{ instance, problem: this.#unlessItPasses(view, instance, instance.problem) }],
      )
      .toSorted((a, b) => rankOf(b.problem) - rankOf(a.problem));
    if (worst !== undefined) return worst;
    const missing = await this.#missingInstances(view, view.target, own.length);
    if (missing === undefined) return {};
    return { problem: makesRoom || this.#mayPass(view, missing) ? { ...missing, final: false } : missing };
  }

  /** Instances are ending, or more stay than are wanted, so some will end. */
  #othersLeave(view: View): boolean {
    const { uid } = view.target.metadata;
    const count = surplusIn(view);
    if (count <= 0) this.#surplus.delete(uid);
    if (view.instances.some(({ ending }) => ending)) return true;
    if (count <= 0) return false;
    const now = view.context.now();
    const known = this.#surplus.get(uid);
    const { since } = known?.count === count ? known : { since: now };
    this.#surplus.set(uid, { count, since });
    return now - since < surplusMs;
  }

  /** Other instances free resources, or did so a moment ago, so the scheduler may still place this one. */
  #mayGetRoom({ target, context, lookAgain }: View): boolean {
    const sinceOthersLeft = context.now() - (this.#othersLeft.get(target.metadata.uid) ?? -Infinity);
    if (sinceOthersLeft >= scheduleAgainMs) return false;
    lookAgain.push(scheduleAgainMs - sinceOthersLeft);
    return true;
  }

  #unlessItPasses(view: View, instance: Instance, problem: Problem): Problem {
    if (!problem.final) return problem;
    const mayPass = problem.reason === 'Unschedulable' ? this.#mayGetRoom(view) : this.#isMadeAgain(view, instance, problem);
    return mayPass ? { ...problem, final: false } : problem;
  }

  /** A node has just refused or ended the instance as a whole, and another one may take its successor, which gets another uid. */
  #isMadeAgain(view: View, instance: Instance, { reason, cause }: Problem): boolean {
    if (reason !== 'Unknown' || !endedByNode.has(cause)) return false;
    const now = view.context.now();
    const key = keyOfEnds(view, instance);
    const known = this.#endedByNode.get(key);
    // An instance that nodes end again and again, each time after a while, is not given the time anew.
    const since = known === undefined || now - known.last > forgottenMs ? now : known.since;
    this.#endedByNode.set(key, { since, last: now });
    return now - since < madeAgainMs;
  }

  #mayPass({ target, context, lookAgain }: View, { cause }: Problem): boolean {
    const now = context.now();
    const since = this.#missing.get(target.metadata.uid) ?? now;
    const left = this.#othersLeft.get(target.metadata.uid) ?? -Infinity;
    const passes =
      cause === 'quota' ? now - since < quotaPatienceMs || now - left < afterOthersMs : cause === 'unknown' && now - since < unansweredMs;
    if (passes) lookAgain.push(assessAgainMs);
    return passes;
  }

  async #missingInstances(view: View, workload: Stored<AppWorkload>, present: number): Promise<Problem | undefined> {
    const key = workload.metadata.uid;
    if (present >= workload.spec.instances) {
      this.#missing.delete(key);
      this.#othersLeft.delete(key);
      return undefined;
    }
    const now = view.context.now();
    const since = this.#missing.get(key) ?? now;
    this.#missing.set(key, since);
    if (now - since < missingMs) {
      view.lookAgain.push(missingMs - (now - since));
      return undefined;
    }
    const refused = setRefusalOf(workload, now);
    if (refused !== undefined) {
      if (refused.patienceMs > 0) view.lookAgain.push(refused.patienceMs);
      return { ...problemOfRefusal(refused.message), final: refused.patienceMs === 0 };
    }
    const problem = await view.seam.missing(view.process.metadata.namespace, statefulSetNameOf(workload));
    // The Event that says why may come later, and it starts no other look.
    if (problem === undefined) view.lookAgain.push(assessAgainMs);
    return problem;
  }
}

/** Of what is final, what an instance did by itself says more than what its surroundings lack. */
const rankOf = ({ final, reason }: Problem): number => (final ? (ownFailures.has(reason) ? 2 : 1) : 0);

const keyOfEnds = ({ target, deployId }: View, { index }: Instance): string => `${target.metadata.uid}/${deployId}/${String(index)}`;

/** How many instances stay beyond those wanted. The spare of a version that moves stays as long as that serves. */
function surplusIn({ instances, hash, desired, workloads }: View): number {
  const staying = instances.filter(({ generation, ready, ending }) => !ending && (ready || generation !== hash));
  const spares = workloads.filter((workload) => generationOf(workload) !== hash && isMoving(workload, instances, desired)).length;
  return staying.length - desired - spares;
}

/** It came to serve, in its last change, a short time ago: the version before may still leave. */
export function servesSinceShort({ process, context }: Pick<View, 'process' | 'context'>): boolean {
  const { phase, since = '' } = process.status?.rollout ?? {};
  return phase === 'Serving' && context.now() - Date.parse(since) <= letGoMs;
}

/** The version before still has instances: it takes the requests when the one that has replaced it fails, and that one is judged until it is let go. */
function mayReturn(view: View): boolean {
  const { app, canary, workloads, target, process } = view;
  if (!servesSinceShort(view)) return false;
  const { generations = [] } = process.status?.rollout ?? {};
  const isBefore = ({ metadata, spec }: Stored<AppWorkload>): boolean => metadata.uid !== target.metadata.uid && spec.instances > 0;
  const left = workloads.filter(isBefore).map((workload) => generations.find(({ hash }) => hash === generationOf(workload)));
  return left.some((said) => said?.leaving === true || hasServed(said)) && canary === undefined && !isCanceled(app);
}

/** The instances of the wanted version that are not ending. */
export function ownOf({ instances, hash }: View): Instance[] {
  return instances.filter(({ generation, ending }) => generation === hash && !ending);
}

function awaitedOf(proof: Proof): Pick<Assessment, 'awaited'> {
  return proof.state === 'awaited' && proof.message !== '' ? { awaited: { reason: 'Serving', message: proof.message } } : {};
}
