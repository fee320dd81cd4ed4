// Runs one step of a process's rollout: reads the state, calls the planner, applies the plan, and reports the progress.

import type { Stored } from '../../lib/api/object.ts';
import { webProcess } from '../../lib/api/app.ts';
import { annotations, kinds } from '../../lib/api/group.ts';
import { canaryOf, isCanceled, maxInFlightOf, strategyOf } from '../../lib/api/rollout.ts';
import type { AppWorkload, CFApp, CFProcess, CFProcessStatus, GenerationStatus } from '../../lib/api/types.generated.ts';
import { generationOf } from '../../templates/stateful-set.ts';
import type { Instance } from '../instances/instances.ts';
import { podInstances } from '../instances/pod-instances.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Context } from '../runtime/reconciler.ts';
import { routesTo, spaceOf, wantedInstances } from '../relations.ts';
import { canaryStepOf } from './canary.ts';
import { carriedBy, isLoadedBy, onlyTarget, settleMs } from './carried.ts';
import type { Target } from './cancellation.ts';
import { evacuationIn, withoutSpare, type Evacuation } from './evacuation.ts';
import { workloadsOf } from './generation.ts';
import { Lapses, startsAgain } from './lapse.ts';
import { marksOfOther, marksOfTarget, mayServeAgain, type OtherFacts } from './marks.ts';
import { noteOf } from './note.ts';
import { isAnswered, type Proof, type Proofs } from './traffic-probe.ts';
import { parseWeights, planRollout, printWeights, type Generation, type RolloutPlan } from './planner.ts';
import { expectationsOf, isLackOfRoom, isLeftOver, ownOf, servesSinceShort, Assessor, mostOf, readyOf, type View } from './assessment.ts';
import { instancesPart, instancesStatus, isRemade, rolloutStatus, withAbsent, type RolloutFacts } from './status.ts';
import { failedSiblingOf } from './siblings.ts';
import { isMoving } from './spare.ts';
import { steadyFrom, Steadiness } from './steadiness.ts';
import { hasServed, isUntouched } from './untouched.ts';
import { failureOf, keepVerdict } from './verdict.ts';
import { defined } from '../../lib/defined.ts';

/**
 * An app without a check counts as proven after it has run for 3 s without a restart. The times in pods are whole seconds, and a kubelet reports an end up to
 * a second late.
 */
const stableMs = 5_000;
const refusedPollMs = 10_000;
/**
 * For a gateway that cannot be asked: the time from its acceptance of a route until requests follow it. Traefik collects changes for 100
 * ms.
 */
const loadMs = 500;

export interface StepOutcome {
  status: CFProcessStatus;
  /** Evictions must leave some of the instances. */
  guarded: boolean;
  requeueAfterMs?: number;
}

export class Rollouts {
  readonly #proofs: Proofs;
  readonly #assessor = new Assessor();
  readonly #steadiness = new Steadiness();
  readonly #lapses = new Lapses();
  /** Since when all routes carry the same weights, per process. */
  readonly #settling = new BoundedMap<string, { text: string; since: number }>(5_000);

  constructor(proofs: Proofs) {
    this.#proofs = proofs;
  }

  async step(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>, target: Target): Promise<StepOutcome> {
    const view = this.#look(context, app, process, target);
    const proof = this.#proof(view);
    const proven = proof.state === 'proven' || this.#provenBefore(view, view.hash);
    const assessment = await this.#assessor.assess(view, proof);
    const sibling = assessment.failed ? undefined : failedSiblingOf(view);
    const failed = assessment.failed || sibling !== undefined;
    const plan = this.#plan(view, {
      proven,
      failed,
      lacksRoom: !view.instances.some(({ ending }) => ending) && isLackOfRoom(assessment.awaited),
    });
    const evacuation = evacuationIn(view, plan, assessment.absent !== undefined);
    // Before the instances go whose lines it has. They go in the next step, which the status starts: if they went before the status says why, a step
    // that knows only the status would start them again.
    if (assessment.cause === undefined) await this.#act(view, plan, evacuation);
    else if (!isCanceled(app)) await keepVerdict(context, app, failureOf(assessment.cause, process.spec.processType));
    const note = noteOf(view, proof);
    const facts: RolloutFacts = {
      process,
      deployId: view.deployId,
      target: view.hash,
      desired: mostOf(view),
      plan,
      generations: this.#generations(view, proof, plan, { failed, ...defined({ sibling }) }),
      instances: view.instances,
      ready: readyOf(view.instances, view.hash),
      proven,
      switched: this.#hasSwitched(view),
      ...this.#canary(view, plan),
      canceled: isCanceled(app),
      failed,
      ...defined({ sibling, cause: assessment.cause, awaited: assessment.awaited, absent: assessment.absent, note }),
      targetUid: target.workload.metadata.uid,
      now: context.now(),
    };
    return { ...this.#report(view, plan, facts), guarded: evacuation.guarded };
  }

  #look(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>, { workload: target, isUnknownBefore }: Target): View {
    const seam = podInstances(context);
    const workloads = workloadsOf(process, context);
    if (!workloads.some(({ metadata }) => metadata.uid === target.metadata.uid)) workloads.push(target);
    const { namespace, name } = process.metadata;
    const byHash = new Map(workloads.map((workload) => [generationOf(workload), workload]));
    const desired = isUnknownBefore ? 0 : wantedInstances(app, process);
    return {
      context, app, process, target, workloads, seam, desired,
      canary: canaryStepOf(context, app, process, { desired, target: generationOf(target) }),
      hash: generationOf(target),
      instances: seam
        .of(namespace, name, (generation) => expectationsOf(byHash.get(generation)))
        .map((instance) => (isLeftOver(context, byHash.get(instance.generation), instance) ? { ...instance, ready: false, ending: true } : instance)),
      routed: routesTo(process, context.stores).length > 0,
      deployId: app.metadata.annotations?.[annotations.deployId] ?? '',
      lookAgain: [],
    }; // prettier-ignore
  }

  /** Read from the status, so that a new controller does not send the same requests again. */
  #provenBefore(view: View, hash: string): boolean {
    const before = this.#saidOf(view, hash);
    const carries = (parseWeights(view.process.status?.serving)[hash] ?? 0) > 0;
    return before?.verified === true || (before?.state === 'Old' && before.ready > 0 && (carries || !view.routed));
  }

  #proof(view: View): Proof {
    const { context, process, hash, routed, instances } = view;
    const own = instances.filter(({ generation, ready }) => generation === hash && ready);
    if (own.length === 0) {
      this.#proofs.forget(process, hash);
      return { state: 'awaited', message: '' };
    }
    if (routed) {
      if (this.#provenBefore(view, hash)) return { state: 'proven', through: this.#proofs.through(process, hash) };
      const { ports, startupProbe } = view.target.spec;
      const candidate = { generation: hash, instances: own, port: ports?.[0] ?? 8080, isChecked: startupProbe !== undefined };
      const proof = this.#proofs.check(context, process, candidate);
      if (proof.state === 'awaited' && proof.lookAgainMs !== undefined) view.lookAgain.push(proof.lookAgainMs);
      // It may recover by itself, and no event would report that.
      if (proof.state === 'refused') view.lookAgain.push(refusedPollMs);
      return proof;
    }
    // Nothing but time shows that it works. After a crash that takes longer: the next run can last as long as the first. One instance is enough.
    const provenAt = Math.min(...own.map((one) => Math.max((one.readySince ?? context.now()) + stableMs, steadyFrom([one]))));
    const left = view.target.spec.startupProbe === undefined ? provenAt - context.now() : 0;
    if (left <= 0) return { state: 'proven', through: 'instance' };
    view.lookAgain.push(left);
    return { state: 'awaited', message: 'The new version runs; waiting to see if it keeps running.' };
  }

  /**
   * True when requests reach only the target: all routes have weights only for the target, and the gateway has loaded them. If another
   * version served before, a short extra time must have passed too.
   */
  #hasSwitched(view: View): boolean {
    if (!view.routed) return true;
    const text = carriedBy(view);
    if (!onlyTarget(text, view.hash) || !isLoadedBy(view)) return false;
    // This entry exists only while there is another version to switch from.
    const settling = this.#settling.get(view.process.metadata.uid);
    const left = settling !== undefined && settling.text === text ? settling.since + loadMs - view.context.now() : 0;
    if (left > 0) view.lookAgain.push(left);
    return left <= 0;
  }

  /** The step of a canary, and whether it was reached: its instances are ready, and the gateway has loaded their share of the requests. */
  #canary(view: View, plan: RolloutPlan): Pick<RolloutFacts, 'canary' | 'reached'> {
    const canary = view.canary === undefined ? undefined : canaryOf(view.app);
    const isLoaded = !view.routed || (carriedBy(view) === printWeights(plan.weights) && isLoadedBy(view));
    const isWhole = this.#readyOfTarget(view) >= mostOf(view);
    // Without an instance nothing was tried. Other processes than web wait without one.
    const reached = mostOf(view) === 0 ? view.process.spec.processType !== webProcess : isLoaded && isWhole;
    return { ...defined({ canary }), reached };
  }

  /** The weights that the gateway has used for a while; undefined while they change. */
  #settled(view: View): Record<string, number> | undefined {
    const key = `${view.process.metadata.uid}`;
    const text = carriedBy(view);
    const now = view.context.now();
    const known = this.#settling.get(key);
    if (text === undefined || known?.text !== text) {
      if (text === undefined) this.#settling.delete(key);
      else this.#settling.set(key, { text, since: now });
      if (text !== undefined) view.lookAgain.push(settleMs(view.context));
      return undefined;
    }
    const left = Math.max(known.since + settleMs(view.context), isReplacing(view) ? steadyFrom(ownOf(view)) : 0) - now;
    if (left > 0) view.lookAgain.push(left);
    return left <= 0 && isLoadedBy(view) ? parseWeights(text) : undefined;
  }

  /** Ready instances of the target. While it has no requests, they count when they stay ready, as long as a version that has requests can answer them. */
  #readyOfTarget(view: View): number {
    const { hash, instances, process, routed } = view;
    const carried = Object.entries(parseWeights(process.status?.serving)).filter(([, weight]) => weight > 0);
    const isEntering = carried.every(([other]) => other !== hash) && carried.some(([other]) => readyOf(instances, other) > 0);
    if (!routed || !isEntering) return readyOf(instances, hash);
    const own = instances.filter(({ generation }) => generation === hash);
    const { count, lookAgainMs } = this.#steadiness.of(own, view.context.now());
    if (lookAgainMs !== undefined) view.lookAgain.push(lookAgainMs);
    return count;
  }

  /** None of its instances is ready, and one of them may be again soon. */
  #hasLapsed(view: View, { spec }: Stored<AppWorkload>, own: readonly Instance[]): boolean {
    const left = this.#lapses.leftOf(own, view.context.now());
    if (left === undefined || spec.instances === 0 || own.some(({ ready }) => ready)) return false;
    view.lookAgain.push(left);
    return true;
  }

  #plan(view: View, { proven, failed, lacksRoom }: { proven: boolean; failed: boolean; lacksRoom: boolean }): RolloutPlan {
    const generations = view.workloads.map((workload): Generation => {
      const hash = generationOf(workload);
      const own = view.instances.filter(({ generation }) => generation === hash);
      return {
        hash,
        instances: workload.spec.instances,
        ready: hash === view.hash && !failed ? this.#readyOfTarget(view) : readyOf(view.instances, hash),
        readyIndexes: own.filter(({ ready }) => ready).map(({ index }) => index),
        lapsed:
          hash !== view.hash &&
          (this.#hasLapsed(view, workload, own) || (!lacksRoom && startsAgain(own) && this.#servedBefore(view, hash))),
        present: own.length,
        ending: own.filter(({ ending }) => ending).length,
        proven: hash === view.hash ? proven : this.#provenBefore(view, hash),
        served: this.#servedBefore(view, hash) || (failed && mayServeAgain(this.#recordOf(view, hash))),
        spare: workload.metadata.annotations?.[annotations.spare] === 'true',
        moving: isMoving(workload, own, view.desired),
        created: Date.parse(workload.metadata.creationTimestamp ?? '') || 0,
      };
    });
    const state = {
      desired: view.desired,
      maxInFlight: maxInFlightOf(view.app),
      strategy:
        strategyOf(view.app, spaceOf(view.context.stores, view.app.metadata.namespace)) === 'recreate' && !isCanceled(view.app)
          ? ('recreate' as const)
          : ('rolling' as const),
      decided: isAppDecided(view),
      replacing: isReplacing(view),
      ...defined({ canary: view.canary }),
      routed: view.routed,
      target: view.hash,
      failed,
      canceled: isCanceled(view.app),
      generations,
      carried: parseWeights(view.process.status?.serving),
    };
    const isAlone = generations.every(({ hash, present, instances }) => hash === view.hash || (present === 0 && instances === 0));
    return planRollout({ ...state, settled: isAlone ? undefined : this.#settled(view) });
  }

  /** Scales down first, so that ending instances free resources for new ones. */
  async #act(view: View, plan: RolloutPlan, { spare }: Evacuation): Promise<void> {
    const { context } = view;
    const extra = (hash: string): number => (hash === plan.goal ? spare : 0);
    const wanted = (hash: string): number => (plan.instances[hash] ?? 0) + extra(hash);
    const change = (workload: Stored<AppWorkload>): number => wanted(generationOf(workload)) - workload.spec.instances;
    for (const workload of view.workloads.toSorted((a, b) => change(a) - change(b))) {
      const { namespace, name, resourceVersion, uid } = workload.metadata;
      const hash = generationOf(workload);
      if (plan.remove.includes(hash)) {
        await context.cluster.delete(kinds.appWorkload, namespace, name, { uid, propagation: 'Background', signal: context.signal });
        continue;
      }
      const isMarkLeft = workload.metadata.annotations?.[annotations.spare] === 'true' && wanted(hash) <= view.desired;
      if (change(workload) !== 0 || isMarkLeft) {
        const marks = { [annotations.spare]: extra(hash) > 0 ? 'true' : null };
        const patch = { metadata: { resourceVersion, annotations: marks }, spec: { instances: wanted(hash) } };
        await context.cluster.mergePatch(kinds.appWorkload, namespace, name, patch, { signal: context.signal });
      }
    }
  }

  #generations(
    view: View,
    proof: Proof,
    plan: RolloutPlan,
    { failed, sibling }: Pick<RolloutFacts, 'failed' | 'sibling'>,
  ): GenerationStatus[] {
    const isProven = proof.state === 'proven' || this.#provenBefore(view, view.hash);
    // One instance may be all that is wanted, and a canary all the same: the version before still serves.
    const isWhole = view.canary === undefined || view.canary.others === 0;
    const serves = !failed && isProven && isWhole && view.desired > 0 && readyOf(view.instances, view.hash) >= view.desired;
    const untouched = isUntouched(view.process.status?.rollout, view.hash, view.deployId);
    const verified = this.#saidOf(view, view.hash)?.verified === true || (view.routed && isAnswered(proof));
    const served = this.#servedBefore(view, view.hash) || serves;
    // The whole app serves, and this process by the target: a route to another port can give it another one within the change.
    const isDecided = isAppDecided(view) && view.process.status?.rollout?.phase === 'Serving' && this.#servedBefore(view, view.hash);
    return view.workloads
      .filter((workload) => !plan.remove.includes(generationOf(workload)))
      .map((workload) => {
        const hash = generationOf(workload);
        const isTarget = hash === view.hash;
        return {
          process: view.process.spec.processType,
          hash,
          state: isTarget ? (failed ? 'Failed' : 'Current') : 'Old',
          instances: plan.instances[hash] ?? 0,
          ready: readyOf(view.instances, hash),
          uid: workload.metadata.uid,
          ...(isTarget
            ? marksOfTarget({ verified, served, untouched, siblingFailed: sibling !== undefined })
            : marksOfOther({ ...this.#recordOf(view, hash), hasInstances: workload.spec.instances > 0, isDecided, failed })),
        } satisfies GenerationStatus;
      });
  }

  #servedBefore(view: View, hash: string): boolean {
    return hasServed(this.#saidOf(view, hash), view.process.status?.rollout?.phase);
  }

  /** What the status says of the past of a version. */
  #recordOf(view: View, hash: string): Pick<OtherFacts, 'said' | 'served' | 'isOfChange'> {
    const isOfChange = view.process.status?.rollout?.id === view.deployId;
    return { said: this.#saidOf(view, hash), served: this.#servedBefore(view, hash), isOfChange };
  }

  #saidOf(view: View, hash: string): GenerationStatus | undefined {
    const before = view.process.status?.rollout;
    if (before === undefined || (hash === view.hash && isRemade(before, hash, view.target.metadata.uid))) return undefined;
    return before.generations?.find((generation) => generation.hash === hash);
  }

  #report(view: View, plan: RolloutPlan, facts: RolloutFacts): Omit<StepOutcome, 'guarded'> {
    const weights = printWeights(plan.weights);
    const isStarted = view.app.spec.desiredState === 'STARTED';
    const present = withoutSpare(instancesStatus(view.instances, view.hash), view);
    const status: CFProcessStatus = {
      ...instancesPart(withAbsent(present, view.desired, facts.absent)),
      serving: weights,
      rollout: rolloutStatus(facts, isStarted),
    };
    const soonest = Math.min(...view.lookAgain);
    return Number.isFinite(soonest) ? { status, requeueAfterMs: Math.max(1, Math.ceil(soonest)) } : { status };
  }
}

/** The whole app serves by its present change. */
function isAppDecided({ app: { status }, deployId }: View): boolean {
  return status?.deployment?.id === deployId && status.deployment.phase === 'Serving';
}

/** The whole app serves by its change, and this process since a short time. */
const isReplacing = (view: View): boolean => isAppDecided(view) && servesSinceShort(view);
