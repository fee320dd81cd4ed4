// How the generations of a process change places: state in, numbers of instances and weights out. Pure.

export interface Generation {
  hash: string;
  /** Instances asked for now (AppWorkload.spec.instances). */
  instances: number;
  /** Instances that answer and are not about to end. */
  ready: number;
  /** Instances that exist, those about to end included. */
  present: number;
  /** Those of `present` whose end has begun. */
  ending: number;
  /** Fit to take the place of another: reached by a request, or running without a fall for long enough. */
  proven: boolean;
  /** It has served the app once. */
  served: boolean;
  /** Creation, for order. */
  created: number;
}

export interface RolloutState {
  /** Instances that the user wants; 0 when the app is stopped. */
  desired: number;
  /** Instances that may exist beyond `desired` while generations change; as many again may be there that are to end. */
  maxInFlight: number;
  /** Requests reach this process through routes. Without them two versions never run side by side, but for one trial. */
  routed: boolean;
  /** Hash of the generation that is wanted. */
  target: string;
  /** The target has failed. */
  failed: boolean;
  /** All that exist, the target among them. */
  generations: readonly Generation[];
  /** The weights that were planned last: who serves, whether or not the gateway knows all of it yet. */
  carried: Readonly<Record<string, number>>;
  /** The weights that all routes carry and have carried long enough for the gateway; undefined while they change. */
  settled: Readonly<Record<string, number>> | undefined;
}

export interface RolloutPlan {
  /** Instances per generation. */
  instances: Record<string, number>;
  /** Share of the requests per generation; a generation that is missing gets none. */
  weights: Record<string, number>;
  /** Generations that are empty and no longer needed. */
  remove: string[];
  /** The generation that the plan leads to: the target, or the one that serves in its place after a failure. */
  goal: string;
  /** Nothing is left to do: only the goal has instances, as many as wanted, and all are ready. */
  complete: boolean;
}

const sum = <T>(items: Iterable<T>, of: (item: T) => number): number => [...items].reduce((total, item) => total + of(item), 0);

const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value));

/**
 * Best to keep first: what serves requests now. A version may be ready, newer, and never have answered a request, when another push came
 * before it was known to serve or to have failed; then most ready instances, most instances, newest.
 */
function byWorth({ carried }: RolloutState): (a: Generation, b: Generation) => number {
  const serves = ({ hash, ready }: Generation): number => (ready > 0 && (carried[hash] ?? 0) > 0 ? 1 : 0);
  return (a, b) => serves(b) - serves(a) || b.ready - a.ready || b.instances - a.instances || b.created - a.created;
}

/** Those of `others` that requests may go to: who carries them now or has proven itself; any that is ready where there is no such one. */
function servingOf(state: RolloutState, others: readonly Generation[]): Generation[] {
  const ready = others.filter((generation) => generation.ready > 0);
  const fit = ready.filter(({ hash, proven }) => proven || (state.carried[hash] ?? 0) > 0);
  return (fit.length > 0 ? fit : ready).toSorted(byWorth(state));
}

/** What served last before a target that has not served yet: kept, empty, as long as the target may fail. */
function spareOf({ target, generations }: RolloutState): Generation | undefined {
  if (generations.some(({ hash, served }) => hash === target && served)) return undefined;
  return generations.filter(({ hash, served }) => hash !== target && served).toSorted((a, b) => b.created - a.created)[0];
}

/** What goes on serving when the target failed: of those that still have instances, else what served before the app was stopped. */
function fallbackOf(state: RolloutState): Generation | undefined {
  if (!state.failed) return undefined;
  const running = state.generations.filter(({ hash, instances }) => hash !== state.target && instances > 0).toSorted(byWorth(state))[0];
  return running ?? spareOf(state);
}

/** Hands out `total` among generations in order, at most `most` to each. */
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

interface Numbers {
  goal: number;
  others: Map<string, number>;
  weights: Record<string, number>;
}

/** Side by side: a step up, served, a step down. */
function roll(state: RolloutState, goal: Generation, others: readonly Generation[]): Numbers {
  const { desired, maxInFlight, settled } = state;
  const serving = servingOf(state, others);
  const taken = goal.proven ? Math.min(goal.ready, desired) : 0;
  const keep = Math.max(0, desired - taken);
  const staying = share(serving, keep, ({ instances }) => instances);
  const occupied = sum(staying.values(), (part) => part);
  const leaving = sum(others, ({ instances, present, ending }) => Math.max(instances, present - ending)) - occupied;
  // Instances whose end has begun do not count. Of those that are still to end, `maxInFlight` do not count either (docs/decisions/0009). For example,
  // 3 are wanted, 1 may be in flight, and 3 old ones stay: there is room for 1 new one.
  const room = desired + maxInFlight - occupied - Math.max(0, leaving - maxInFlight);
  const up = clamp(Math.max(goal.instances, room), 0, desired);
  if (serving.length === 0) return { goal: up, others: new Map(), weights: { [goal.hash]: 1 } };

  const shares = share(serving, keep, ({ ready }) => ready);
  const weights: Record<string, number> = Object.fromEntries([...shares].filter(([, part]) => part > 0));
  if (taken > 0) weights[goal.hash] = taken;

  // Instances go only after the gateway has sent to their successors for a while.
  const hasSettled = settled !== undefined && isSameWeights(settled, weights);
  const kept = hasSettled ? staying : new Map(serving.map(({ hash, instances }) => [hash, instances]));
  return { goal: up, others: kept, weights };
}

/** One after the other: the new version is tried with one instance, then the old one ends, then the new one grows. */
function switchOver(state: RolloutState, goal: Generation, others: readonly Generation[]): Numbers {
  const { desired } = state;
  const serving = others.filter(({ ready }) => ready > 0);
  const left = sum(others, ({ present }) => present);
  const weights = {};
  if (serving.length === 0) return { goal: left === 0 ? desired : Math.min(goal.instances, desired), others: new Map(), weights };
  const trial = Math.min(1, desired);
  if (!goal.proven) return { goal: trial, others: new Map(others.map(({ hash, instances }) => [hash, instances])), weights };
  return { goal: Math.min(Math.max(goal.instances, trial), desired), others: new Map(), weights };
}

function isSameWeights(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((hash) => (a[hash] ?? 0) === (b[hash] ?? 0));
}

/**
 * The next step. Rules: what serves never shrinks before its successor does serve; pods that serve nothing go first; never more instances than
 * `desired + maxInFlight` and, of those that are to end, one step more; a failed target gives its place back to what still serves and is kept, empty, for reading.
 */
export function planRollout(state: RolloutState): RolloutPlan {
  const { desired, target, generations } = state;
  const wanted = generations.find(({ hash }) => hash === target);
  if (wanted === undefined) throw new Error(`The wanted generation ${target} is not among the existing ones.`);
  const goal = fallbackOf(state) ?? wanted;
  const others = generations.filter(({ hash }) => hash !== goal.hash);
  // What serves after a failure has proven itself; it is there already.
  const proven = goal === wanted ? goal : { ...goal, proven: true };
  const numbers: Numbers =
    desired === 0 ? { goal: 0, others: new Map(), weights: { [goal.hash]: 1 } } : (state.routed ? roll : switchOver)(state, proven, others);
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
