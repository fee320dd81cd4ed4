// Finds out whether the gateway has loaded a route's present form. It asks the gateway itself, and each app behind a newly mapped route
// once, before the app gets requests.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import {
  backendsIn,
  isAboutRevision,
  mainBackends,
  revisionHeader,
  revisionOf,
  revisionOfAnswer,
  type BackendReference,
  type HttpRoute,
} from '../../lib/api/gateway.ts';
import { conditionTypes, kinds, reasons } from '../../lib/api/group.ts';
import type { CFRoute } from '../../lib/api/types.generated.ts';
import { generationHeader } from '../../templates/http-route.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Context } from '../runtime/reconciler.ts';
import type { Statement } from '../runtime/status.ts';
import { gatewayAddress, processesByApp } from '../relations.ts';
import { httpRouteOf, isTakenOver } from '../shared-routes.ts';
import type { DestinationBackend } from './backends.ts';
import { ask, type Answer } from '../rollout/gateway-request.ts';
import {
  acceptance,
  gatewayCatchUpMs,
  gatewayFairFrom,
  hasRule,
  isSettled,
  markFeature,
  notServed,
  ownError,
  pauseAfter,
} from '../rollout/traffic-probe.ts';

const askTimeoutMs = 3_000;
const retryMs = 100;
const slowRetryMs = 10_000;
/**
 * A gateway with an earlier form goes on sending requests to the earlier backends, and may load the present form at any moment. So it is asked often at
 * first, then less and less up to {@link slowRetryMs}: a path that the gateway rewrites never gets an answer of this route.
 */
const earlierRetryMs = (heldUpMs: number): number => Math.min(Math.max(heldUpMs / 10, 1_000), slowRetryMs);
/** When the gateway cannot be asked for this long, its status in the route counts. */
const unreachableMs = 3_000;
/**
 * A gateway that has not loaded a route after this time has a problem: the route's status reports it, and the gateway is asked less often. A gateway that
 * does not know a Service yet gets more time.
 */
const loadMs = 15_000;
/** An app that answers with 500, 502, 503 or 504 for this long does so by itself. */
const answerMs = 5_000;
/** The replicas of a gateway load a form at different moments, so this many connections ask at once. */
const askedAtOnce = 4;

interface Attempts {
  revision: string;
  since: number;
  count: number;
  /** Since when all requests to the gateway have failed. */
  unreachableSince?: number;
  loadedAt?: number;
  /** The Service that is asked, since when, and the number of answers that did not come from the app. */
  asked?: { name: string; since: number; refusals: number };
  /** Services that have answered a request through this form of the route, or through an earlier form if they are in every form since. */
  answered: Set<string>;
}

/** A Service that is asked, and the generation that its rule is for. */
interface Asked {
  name: string;
  generation: string;
  /** It belongs to a half of the route in another space. */
  isOfOther: boolean;
}

export interface Programmed {
  /** Left out when there is nothing new to report. */
  statement?: Statement;
  requeueAfterMs?: number;
}

const said = (status: 'True' | 'False', reason: string, message: string): Statement => ({
  type: conditionTypes.programmed,
  status,
  reason,
  message,
});

/** The first backend of plain requests that has instances and has not answered through this route yet. On a crowded route some cannot be asked. */
function firstUnasked(context: Context, route: Stored<CFRoute>, live: Stored<HttpRoute>, { answered }: Attempts): Asked | undefined {
  const { namespace } = route.metadata;
  const hasInstances = ({ name }: BackendReference): boolean => {
    const destination = (route.spec.destinations ?? []).find(({ guid }) => name.startsWith(`s-${guid}-`));
    return context.stores
      .of(kinds.process)
      .by(processesByApp.name, `${namespace}/${destination?.appRef.name ?? ''}`)
      .some(({ spec, status }) => spec.processType === destination?.processType && (status?.actualInstances ?? 0) > 0);
  };
  const isOwn = (backend: BackendReference): boolean => (backend.namespace ?? live.metadata.namespace) === namespace;
  const found = mainBackends(live).find(
    (backend) => isOwn(backend) && !answered.has(backend.name) && hasInstances(backend) && hasRule(live, generationOfService(backend)),
  );
  return found === undefined ? undefined : { name: found.name, generation: generationOfService(found), isOfOther: false };
}

/** The next backend that has not answered yet: one of a newly mapped route, or one that waits for its requests. */
function toAsk(
  context: Context,
  route: Stored<CFRoute>,
  live: Stored<HttpRoute>,
  attempts: Attempts,
  entering: readonly DestinationBackend[],
): Asked | undefined {
  // The process reconciler proves changes of weights. A newly mapped route is proven by one answer of each of its backends.
  const mapped = isNewlyMapped(route) ? firstUnasked(context, route, live, attempts) : undefined;
  if (mapped !== undefined) return mapped;
  const waiting = entering.find(({ service, generation }) => !attempts.answered.has(service) && hasRule(live, generation));
  if (waiting === undefined) return undefined;
  return { name: waiting.service, generation: waiting.generation, isOfOther: waiting.route !== route.metadata.uid };
}

/** True while the gateway is not known to have loaded the last change of the route's destinations. */
export const isNewlyMapped = (route: Stored<CFRoute>): boolean =>
  findCondition(route, conditionTypes.programmed)?.observedGeneration !== route.metadata.generation;

/**
 * True when the gateway leads to nothing any more that the route's present form does not name, or has refused this form. It learns of a Service that is gone
 * apart from the form, and answers the requests for it with 500 as long as it has an earlier one.
 */
export const isFollowed = (route: Stored<CFRoute>, live: Stored<HttpRoute>): boolean =>
  isSettled(route, live) || acceptance(live)?.accepted === false;

const generationOfService = ({ name }: BackendReference): string => name.slice(-10);

export class Programming {
  readonly #attempts = new BoundedMap<string, Attempts>(5_000);

  /** Names of the Services that have answered through the route; the set may be changed. */
  answeredOf(route: Stored<CFRoute>): Set<string> {
    return this.#attempts.get(route.metadata.uid)?.answered ?? new Set();
  }

  /**
   * The condition of the route now; asks the gateway in the background when it is not known yet.
   * @param entering backends that get requests when {@link answeredOf} has them: when they have answered, and when the gateway or the app had its time
   */
  look(context: Context, route: Stored<CFRoute>, entering: readonly DestinationBackend[] = []): Programmed {
    const live = httpRouteOf(route, context.stores);
    if (!isTakenOver(route, live)) return {};
    const revision = revisionOf(live);
    if (live === undefined || revision === undefined) return {};
    const before = findCondition(route, conditionTypes.programmed);
    const isKnown = before?.status === 'True' && isAboutRevision(before.message, revision);
    // The form is the same in another generation of the route: the change made no difference for the gateway.
    if (isKnown && entering.length === 0) {
      this.#endAsking(route);
      return { statement: said('True', before.reason, before.message) };
    }
    const attempts = this.#attemptsOf(context, route, live, revision);
    const known = attempts.answered.size;
    const programmed = this.#prove(context, route, live, attempts, entering);
    // The gateway had its time: what it lacks is no reason to keep an app from its requests for ever.
    if (programmed.statement?.status === 'False' || programmed.statement?.reason === 'NotVerified')
      for (const { service } of entering) attempts.answered.add(service);
    if (entering.length === 0) return programmed;
    // Another space's app that waits, or never answers, does not delay what is said of this route.
    const isProven = attempts.loadedAt !== undefined && toAsk(context, route, live, attempts, []) === undefined;
    const whole = isProven ? { ...proven(reasons.loaded, attempts), ...programmed } : programmed;
    return attempts.answered.size > known ? { ...whole, requeueAfterMs: 1 } : whole;
  }

  /** An app that is asked again later, after it lost its instances, gets its time again, and an answer to an earlier question does not count. */
  #endAsking({ metadata: { uid } }: Stored<CFRoute>): void {
    const attempts = this.#attempts.get(uid);
    if (attempts === undefined) return;
    delete attempts.asked;
    delete attempts.unreachableSince;
    attempts.count += 1;
  }

  #attemptsOf(context: Context, route: Stored<CFRoute>, live: Stored<HttpRoute>, revision: string): Attempts {
    const { uid } = route.metadata;
    const known = this.#attempts.get(uid);
    if (known?.revision === revision) return known;
    const answered = new Set(backendsIn(live).flatMap(({ name }) => (known?.answered.has(name) === true ? [name] : [])));
    const fresh = { revision, since: context.now(), count: 0, answered };
    this.#attempts.set(uid, fresh);
    return fresh;
  }

  #prove(
    context: Context,
    route: Stored<CFRoute>,
    live: Stored<HttpRoute>,
    attempts: Attempts,
    entering: readonly DestinationBackend[],
  ): Programmed {
    const taken = acceptance(live);
    if (taken?.accepted !== true) {
      const message = taken?.message ?? 'No gateway controller has looked at the route.';
      return isLate(context, attempts, taken?.lacksBackend === true ? gatewayCatchUpMs : loadMs)
        ? { statement: said('False', 'NotAccepted', message), requeueAfterMs: slowRetryMs }
        : { requeueAfterMs: 1_000 };
    }
    const base = gatewayAddress(context, route);
    if (base === undefined) return proven('NotVerified', attempts);
    const backend = attempts.loadedAt === undefined ? undefined : toAsk(context, route, live, attempts, entering);
    if (attempts.loadedAt !== undefined && backend === undefined) return proven(reasons.loaded, attempts);
    const target = addressed(base, route, live);
    const id = [route.metadata.uid, attempts.revision, attempts.since, attempts.count, backend?.name].join(' ');
    const outcome = context.outside(id, askTimeoutMs, (signal) =>
      backend === undefined
        ? Promise.all(Array.from({ length: askedAtOnce }, () => ask({ ...target, headers: { [revisionHeader]: '?' } }, signal)))
        : ask({ ...target, headers: { [generationHeader]: backend.generation } }, signal).then((answer) => [answer]),
    );
    if (outcome === undefined) return {};
    attempts.count += 1;
    if (backend !== undefined) return this.#answered(context, attempts, backend, outcome.ok ? outcome.value[0] : undefined);
    if (!outcome.ok) return unreachable(context, attempts);
    delete attempts.unreachableSince;
    const forms = outcome.value.map(({ location }) => revisionOfAnswer(location));
    if (forms.some((form) => form !== attempts.revision)) return notLoaded(context, attempts, forms);
    attempts.loadedAt = context.now();
    return toAsk(context, route, live, attempts, entering) === undefined ? proven(reasons.loaded, attempts) : { requeueAfterMs: 1 };
  }

  /**
   * Evaluates the answer of one backend. A gateway can load one form of a route more than once: first without the addresses of a Service
   * that it does not know yet, then with them.
   * @param answer undefined when there was none
   */
  #answered(context: Context, attempts: Attempts, backend: Asked, answer: Answer | undefined): Programmed {
    const { status = ownError, generation } = answer ?? {};
    const isElsewhere = context.info().gateway.features.includes(markFeature) && generation !== backend.generation;
    if (!isElsewhere && !notServed.has(status) && status !== ownError) {
      delete attempts.asked;
      attempts.answered.add(backend.name);
      return { requeueAfterMs: 1 };
    }
    const before = attempts.asked?.name === backend.name ? attempts.asked : { since: context.now(), refusals: 0 };
    const asked = { name: backend.name, since: before.since, refusals: before.refusals + 1 };
    attempts.asked = asked;
    const isOver = context.now() - asked.since > answerMs;
    if (!isOver) return { requeueAfterMs: pauseAfter(asked.refusals) };
    attempts.answered.add(backend.name);
    // What another space's app answers is not said of this route.
    return proven(answer?.status === ownError || backend.isOfOther ? reasons.loaded : reasons.appDoesNotAnswer, attempts);
  }
}

/** The gateway names another form of the route, or something else answers in its place. */
function notLoaded(context: Context, attempts: Attempts, forms: readonly (string | undefined)[]): Programmed {
  if (!isLate(context, attempts)) return { requeueAfterMs: retryMs };
  const isEarlier = forms.some((form) => form !== undefined && form !== attempts.revision);
  const why = isEarlier ? 'still has an earlier form of it' : 'does not answer for it';
  const message = `The gateway has accepted the route, but ${why}; it should have revision ${attempts.revision}.`;
  return isEarlier
    ? { statement: said('False', 'NotLoaded', message), requeueAfterMs: earlierRetryMs(context.now() - attempts.since) }
    : { statement: said('False', reasons.notAnswered, message), requeueAfterMs: slowRetryMs };
}

function unreachable(context: Context, attempts: Attempts): Programmed {
  attempts.unreachableSince ??= context.now();
  const isOver = context.now() - attempts.unreachableSince > unreachableMs;
  return isOver ? proven('NotVerified', attempts) : { requeueAfterMs: retryMs };
}

/** True when the gateway has had its time. After an outage of the API server it gets no news for a while, and that time does not count. */
function isLate({ now, stores }: Context, { since }: Attempts, patienceMs = loadMs): boolean {
  return now() > Math.max(since + patienceMs, gatewayFairFrom(stores));
}

function addressed(base: string, route: Stored<CFRoute>, live: Stored<HttpRoute>): { base: string; host: string; path: string } {
  const host = (route.status?.fqdn ?? live.spec?.hostnames?.[0] ?? '').replace('*', 'kf-probe');
  return { base, host, path: `${(route.spec.path ?? '').replace(/\/$/, '')}/` };
}

function proven(reason: string, { revision }: Attempts): Programmed {
  return { statement: said('True', reason, `The gateway has ${reason === 'NotVerified' ? 'accepted' : 'loaded'} revision ${revision}.`) };
}
