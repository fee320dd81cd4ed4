// Plans how one generation of a process replaces another. Input: the state; output: numbers of instances and weights. Pure.

export interface Generation {
  hash: string;
  /** Requested instances (AppWorkload.spec.instances). */
  instances: number;
  /** Instances that are ready and not ending. */
  ready: number;
  /** The indexes of the ready ones; left out, they are the lowest. */
  readyIndexes?: readonly number[];
  /** None is ready, and one of them may be soon: it was a short time ago and has not crashed, or a version that has served starts again. */
  lapsed?: boolean;
  /** Existing instances, including those that are ending. */
  present: number;
  /** Those of `present` that are ending. */
  ending: number;
  /** May replace another generation: a request reached it, or it has run long enough without a restart. */
  proven: boolean;
  /** It has served the app at least once. */
  served: boolean;
  /** One of its instances is a spare, beside one that leaves its node. */
  spare?: boolean;
  /** The spare may be the only one that serves. */
  moving?: boolean;
  /** Time of creation, for sorting. */
  created: number;
}

export interface RolloutState {
  /** Instances that the user wants; 0 when the app is stopped. */
  desired: number;
  /** Instances that may exist beyond `desired` during a rollout; as many again may exist that are about to be stopped. */
  maxInFlight: number;
  /** `recreate` stops the others before the target starts; default `rolling`. */
  strategy?: 'rolling' | 'recreate';
  /** The step at which a canary pauses; left out, the target replaces the others completely. */
  canary?: CanaryStep;
  /** False while another process of the app is still on its way: until then the version before is kept, for the case that the change is canceled. */
  decided?: boolean;
  /** The change has come to serve, a short time ago: the versions before are about to end. */
  replacing?: boolean;
  /** Requests reach this process through routes. Without routes two versions never run side by side, except for one trial instance. */
  routed: boolean;
  /** Hash of the wanted generation. */
  target: string;
  /** The target has failed. */
  failed: boolean;
  /** The change was canceled: the target is the version from before it. */
  canceled?: boolean;
  /** All existing generations, including the target. */
  generations: readonly Generation[];
  /** The weights of the last plan: which generations serve, even if the gateway has not loaded all of it yet. */
  carried: Readonly<Record<string, number>>;
  /** The weights that all routes have had long enough for the gateway to load them; undefined while they change. */
  settled: Readonly<Record<string, number>> | undefined;
}

/** How many instances each version has at a step of a canary, as in Cloud Foundry. */
export interface CanaryStep {
  /** Instances of the new version; 0 for a process that waits until the canary has ended. */
  instances: number;
  /** Instances of the version before that stay at least. */
  others: number;
  /** Share of the requests; left out, they are spread over all instances. */
  percent?: number;
}

/** @param percent left out: one new instance beside all others */
export function canaryStep(desired: number, percent?: number): CanaryStep {
  const instances = percent === undefined ? 1 : Math.max(1, Math.floor((desired * percent) / 100));
  if (percent === undefined) return { instances, others: desired };
  return { instances, others: percent >= 100 ? 0 : desired - instances + 1, percent };
}

export interface RolloutPlan {
  /** Instances per generation. */
  instances: Record<string, number>;
  /** Share of the requests per generation; a missing generation gets none. */
  weights: Record<string, number>;
  /** Generations without instances that are no longer needed. */
  remove: string[];
  /** The generation that the plan leads to: the target, or after a failure the one that serves in its place. */
  goal: string;
  /** The rollout is done: only the goal has instances, as many as wanted, and all are ready. */
  complete: boolean;
}

const sum = <T>(items: Iterable<T>, of: (item: T) => number): number => [...items].reduce((total, item) => total + of(item), 0);

const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value));

/**
 * Sorts generations; the first ones are kept longest. A generation that serves requests now comes first: a newer one may be ready although
 * it never answered a request, when another push came before it had served or failed. Then most ready instances, most instances, one that has served
 * (a canary of one instance is no match for the version beside it), newest.
 */
function byWorth({ carried }: RolloutState): (a: Generation, b: Generation) => number {
  const serves = ({ hash, ready }: Generation): number => (ready > 0 && (carried[hash] ?? 0) > 0 ? 1 : 0);
  return (a, b) =>
    serves(b) - serves(a) || b.ready - a.ready || b.instances - a.instances || Number(b.served) - Number(a.served) || b.created - a.created;
}

/** Those of `others` that may get requests: generations that have requests now or are proven; if there are none, all that are ready. */
function servingOf(state: RolloutState, others: readonly Generation[]): Generation[] {
  const ready = others.filter((generation) => generation.ready > 0);
  const fit = ready.filter(({ hash, proven }) => proven || (state.carried[hash] ?? 0) > 0);
  return (fit.length > 0 ? fit : ready).toSorted(byWorth(state));
}

/**
 * The generation that served last before a target that has not served yet. It is kept without instances for as long as the target may fail.
 */
function spareOf({ target, generations, decided = true }: RolloutState): Generation | undefined {
  if (decided && generations.some(({ hash, served }) => hash === target && served)) return undefined;
  return generations.filter(({ hash, served }) => hash !== target && served).toSorted((a, b) => b.created - a.created)[0];
}

/**
 * The generation that serves after the target failed: one that has served, with instances if possible. One that never served has the next turn:
 * nobody knows whether it works. After a cancellation the target served before, and as long as an instance of it is ready it is not left for another one.
 */
function fallbackOf(state: RolloutState): Generation | undefined {
  if (!state.failed) return undefined;
  const running = state.generations.filter(({ hash, instances }) => hash !== state.target && instances > 0).toSorted(byWorth(state));
  if (canStay(state)) return undefined;
  const before = running.find(({ served }) => served);
  return before ?? running.find(({ ready, proven }) => ready > 0 && proven) ?? spareOf(state) ?? running[0];
}

/** The target that a cancellation leads back to has failed, but some of its instances still serve. */
function canStay({ failed, canceled, target, generations }: RolloutState): boolean {
  return failed && canceled === true && generations.some(({ hash, served, ready }) => hash === target && served && ready > 0);
}

/** Distributes `total` among generations in order, at most `most` to each. */
function share(generations: readonly Generation[], total: number, most: (generation: Generation) => number): Map<string, number> {
  const shares = new Map<string, number>();
  let left = total;
  for (const generation of generations) {
    const part = clamp(left, 0, most(generation));
    shares.set(generation.hash, part);
    left -= part;
  }
  return shares;
}

/** Ready instances among the first `most`, which stay when it has no more than these: a StatefulSet ends the highest index first. */
function readyBelow({ ready, readyIndexes }: Generation, most: number): number {
  return readyIndexes === undefined ? Math.min(ready, most) : readyIndexes.filter((index) => index < most).length;
}

/** How many instances it must keep so that so many ready ones stay. */
function leastWith({ instances, readyIndexes = [] }: Generation, ready: number): number {
  const last = readyIndexes.toSorted((a, b) => a - b)[ready - 1] ?? -1;
  return Math.min(instances, last + 1);
}

interface Numbers {
  goal: number;
  others: Map<string, number>;
  weights: Record<string, number>;
}

/**
 * The version that stays beside a canary even while none of its instances is ready: the canary never replaces it by itself. One that has no instances
 * starts again if the step has some for it, after the app was scaled to 0.
 */
function besideCanary(step: CanaryStep, others: readonly Generation[]): Generation[] {
  const served = others.filter((generation) => generation.served && (generation.instances > 0 || step.others > 0));
  return served.toSorted((a, b) => Number(b.instances > 0) - Number(a.instances > 0) || b.created - a.created).slice(0, 1);
}

/**
 * Those that stay for a while although none of their instances is ready, since they may be again soon. Without requests of the target, they keep their own:
 * a version that has none does not get them.
 */
function lapsedOf({ carried }: RolloutState, others: readonly Generation[], taken: number): Generation[] {
  const carries = ({ hash }: Generation): boolean => (carried[hash] ?? 0) > 0;
  return others
    .filter((generation) => generation.lapsed === true && generation.instances > 0)
    .filter((generation) => carries(generation) || (taken > 0 && generation.served))
    .toSorted((a, b) => Number(carries(b)) - Number(carries(a)));
}

/** The weights of both versions: those of a reached canary step have its percentage, all others the number of instances. */
function weightsOf({ canary }: RolloutState, goal: Generation, shares: ReadonlyMap<string, number>, taken: number): Record<string, number> {
  const parts = [...shares].filter(([, part]) => part > 0);
  if (taken === 0) return Object.fromEntries(parts);
  const { percent = 100, instances = 0 } = canary ?? {};
  if (percent === 100 || taken < instances || parts.length === 0) return { ...Object.fromEntries(parts), [goal.hash]: taken };
  return { ...Object.fromEntries(parts.map(([hash]) => [hash, 100 - percent])), [goal.hash]: percent * parts.length };
}

/**
 * How many instances are wanted now. A version that has replaced the others does not grow while these leave: until all its instances were ready, they would
 * get requests again.
 */
function wantedBeside(
  { desired, replacing, canary, failed, target, carried }: RolloutState,
  goal: Generation,
  others: readonly Generation[],
): number {
  const hasReplaced = replacing === true && goal.served && goal.hash === target && !failed && canary === undefined && goal.instances > 0;
  const leave = others.some(({ instances }) => instances > 0) && others.every(({ hash }) => (carried[hash] ?? 0) === 0);
  return hasReplaced && leave ? Math.min(desired, goal.instances) : desired;
}

/** Plans a step with both versions side by side: the new one grows, gets requests, then the old one shrinks. A canary pauses on the way. */
function roll(state: RolloutState, goal: Generation, others: readonly Generation[]): Numbers {
  const { maxInFlight, settled, canary, routed } = state;
  const desired = wantedBeside(state, goal, others);
  const most = Math.min(desired, canary?.instances ?? desired);
  const taken = goal.proven ? Math.min(goal.ready, most) : 0;
  const fit = servingOf(state, others);
  const unready = canary === undefined ? lapsedOf(state, others, taken) : besideCanary(canary, others);
  const serving = fit.length > 0 ? fit : unready;
  const keep =
    goal.hash === state.target && canStay(state) ? Math.max(0, desired - goal.instances) : Math.max(canary?.others ?? 0, desired - taken);
  // Beside a canary the version before follows when somebody scales the app.
  const staying = share(serving, keep, ({ instances }) => (canary === undefined ? instances : Math.max(instances, keep)));
  const occupied = sum(staying.values(), (part) => part);
  const leaving = sum(others, ({ instances, present, ending }) => Math.max(instances, present - ending)) - occupied;
  // Instances that are ending do not count. Of those that are still to be stopped, `maxInFlight` do not count either (docs/decisions/0009).
  // For example, 3 are wanted, 1 may be in flight, and 3 old ones stay: 1 new one can be started.
  const roomBeside = (surplus: number): number => desired + maxInFlight - occupied - Math.max(0, surplus - maxInFlight);
  const up = clamp(Math.max(goal.instances, roomBeside(leaving)), 0, most);
  if (serving.length === 0) return { goal: up, others: new Map(), weights: { [goal.hash]: 1 } };

  const rest = ({ hash, instances, moving }: Generation): number => {
    const part = staying.get(hash) ?? 0;
    // One less would be the spare.
    return moving === true && part > 0 ? Math.max(instances, part) : part;
  };
  // What is about to be stopped gets no requests any more, unless nothing else would: then it stays until the new version serves.
  const left = share(serving, keep, (generation) => readyBelow(generation, Math.min(generation.instances, rest(generation))));
  const isLeft = taken > 0 || sum(left.values(), (part) => part) > 0;
  // Without any weights, the new version would get requests before it is proven.
  const shares = isLeft ? left : share(serving, keep, ({ ready, instances }) => (fit.length > 0 ? ready : instances));
  const weights = routed ? weightsOf(state, goal, shares, taken) : {};

  // Instances are stopped only after the gateway has sent requests to their successors for a while.
  const hasSettled = !routed || (settled !== undefined && isSameWeights(settled, weights));
  const least = (generation: Generation): number => Math.max(rest(generation), leastWith(generation, shares.get(generation.hash) ?? 0));
  // Without room for the new version this would last for ever.
  const isHeld = !isLeft && roomBeside(sum(serving, least) - occupied) > 0;
  const stays = (generation: Generation): number => {
    if (!hasSettled) return Math.max(generation.instances, rest(generation));
    return isHeld ? least(generation) : rest(generation);
  };
  return { goal: up, others: new Map(serving.map((generation) => [generation.hash, stays(generation)])), weights };
}

/** Without routes, those that stay beside a trial instance: of a change that was interrupted, the trial instance makes room. */
function unroutedBefore(others: readonly Generation[]): Map<string, number> {
  const served = others.filter((generation) => generation.served && generation.ready > 0 && generation.instances > 0);
  return new Map((served.length > 0 ? served : others).map(({ hash, instances }) => [hash, instances]));
}

/**
 * Plans a step without two versions side by side: one trial instance of the new version, then the old version stops, then the new one
 * grows.
 */
function switchOver(state: RolloutState, goal: Generation, others: readonly Generation[]): Numbers {
  const { desired } = state;
  const serving = others.filter(({ ready }) => ready > 0);
  const left = sum(others, ({ present }) => present);
  const weights = {};
  if (serving.length === 0) return { goal: left === 0 ? desired : Math.min(goal.instances, desired), others: new Map(), weights };
  const trial = Math.min(1, desired);
  if (!goal.proven) return { goal: trial, others: unroutedBefore(others), weights };
  return { goal: Math.min(Math.max(goal.instances, trial), desired), others: new Map(), weights };
}

/** Plans a step without two versions side by side: all others end before the new version starts. */
function recreate({ desired, routed }: RolloutState, goal: Generation, others: readonly Generation[]): Numbers {
  const left = sum(others, ({ present, instances }) => present + instances);
  return {
    goal: left === 0 ? desired : Math.min(goal.instances, desired),
    others: new Map(),
    weights: routed ? { [goal.hash]: 1 } : {},
  };
}

/**
 * Leaves the versions as they are until the canary of another process has ended; the wanted version may run already, if a change before has begun with it.
 * The version that serves most follows when somebody scales the process.
 */
function hold(state: RolloutState, goal: Generation, others: readonly Generation[]): Numbers {
  const { desired, maxInFlight, routed, settled } = state;
  const all = [goal, ...others];
  const shares = share(servingOf(state, all), desired, ({ ready }) => ready);
  const weights = routed ? Object.fromEntries([...shares].filter(([, part]) => part > 0)) : {};
  const isSettled = settled !== undefined && isSameWeights(settled, weights);
  const kept = routed ? new Map(all.map(({ hash, instances }) => [hash, instances])) : unroutedBefore(all);
  const running = all.filter(({ instances }) => instances > 0).toSorted(byWorth(state));
  const first = running[0] ?? all.filter(({ served }) => served).toSorted((a, b) => b.created - a.created)[0];
  const isAlone = all.every(({ hash, present }) => hash === first?.hash || present === 0);
  if (first !== undefined && (routed || isAlone)) {
    const total = sum(kept.values(), (instances) => instances);
    const own = kept.get(first.hash) ?? 0;
    const missing = desired - total;
    // While several versions run, they may have more instances together; so may one whose instance leaves its node.
    const most = isAlone && first.spare !== true ? 0 : maxInFlight;
    if (missing > 0) kept.set(first.hash, own + missing);
    // Nothing is stopped before the gateway has left it.
    else if (-missing > most && (isAlone || !routed || isSettled)) {
      const rest = running.filter((generation) => generation !== first);
      const left = share(rest, Math.max(0, desired - own), ({ hash }) => kept.get(hash) ?? 0);
      for (const [hash, instances] of [...left, [first.hash, Math.max(1, Math.min(own, desired))] as const]) kept.set(hash, instances);
    }
  }
  return { goal: kept.get(goal.hash) ?? 0, others: kept, weights };
}

function motionOf(state: RolloutState, goal: Generation, others: readonly Generation[]): Numbers {
  const { desired, canary, strategy, routed } = state;
  if (desired === 0) return { goal: 0, others: new Map(), weights: { [goal.hash]: 1 } };
  if (strategy === 'recreate') return recreate(state, goal, others);
  if (canary?.instances === 0) return hold(state, goal, others);
  return routed || canary !== undefined ? roll(state, goal, others) : switchOver(state, goal, others);
}

function isSameWeights(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((hash) => (a[hash] ?? 0) === (b[hash] ?? 0));
}

/**
 * Plans the next step. Rules:
 * - A generation that serves never shrinks before its successor serves.
 * - Pods that serve nothing stop first, except those of a version that may be ready again soon.
 * - There are never more than `desired + maxInFlight` instances, plus at most `maxInFlight` that are about to be stopped.
 * - After a failure the generation that still serves takes over; the failed target is kept without instances, so that people can examine
 *   it.
 */
export function planRollout(given: RolloutState): RolloutPlan {
  const { desired, target, generations, canary, ...rest } = given;
  const wanted = generations.find(({ hash }) => hash === target);
  if (wanted === undefined) throw new Error(`The wanted generation ${target} is not among the existing ones.`);
  const goal = fallbackOf(given) ?? wanted;
  // After a failure no step of the canary counts any more: the version before takes all requests back.
  const state: RolloutState = { ...rest, desired, target, generations, ...(canary === undefined || goal !== wanted ? {} : { canary }) };
  const others = generations.filter(({ hash }) => hash !== goal.hash);
  // After a failure the goal is mostly a generation that served before, so it counts as proven; a target that is ready, since another process failed,
  // waits for its first ready instance.
  const proven = goal === wanted && !canStay(given) ? goal : { ...goal, proven: goal.ready > 0 || wanted.ready === 0 };
  const numbers = motionOf(state, proven, others);
  const instances = Object.fromEntries(others.map(({ hash }) => [hash, numbers.others.get(hash) ?? 0]));
  instances[goal.hash] = numbers.goal;
  const isEmpty = (generation: Generation): boolean =>
    generation.instances === 0 && instances[generation.hash] === 0 && generation.present === 0;
  const kept = [wanted, spareOf(state)];
  const remove = others.filter((generation) => !kept.includes(generation) && isEmpty(generation)).map(({ hash }) => hash);
  const complete =
    numbers.goal === desired &&
    goal.ready >= desired &&
    others.every((generation) => generation.instances === 0 && generation.present === 0);
  return { instances, weights: numbers.weights, remove, goal: goal.hash, complete };
}

/** `status.serving`: `<hash>=<weight>,…`, sorted. */
export function printWeights(weights: Readonly<Record<string, number>>): string {
  return Object.entries(weights)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([hash, weight]) => `${hash}=${String(weight)}`)
    .join(',');
}

export function parseWeights(text: string | undefined): Record<string, number> {
  const parts = (text ?? '').split(',').map((part) => part.split('='));
  return Object.fromEntries(parts.flatMap(([hash = '', weight]) => (hash === '' ? [] : [[hash, Number(weight)]])));
}
