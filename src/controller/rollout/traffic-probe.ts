// Proves that a generation serves: one request that reaches this generation only, through the gateway if there is one, otherwise directly
// to an instance.

import { findCondition } from '../../lib/api/conditions.ts';
import { httpRouteType, isLoaded, revisionOf, type HttpRoute } from '../../lib/api/gateway.ts';
import type { CauseCode } from '../../lib/api/causes.ts';
import { conditionTypes, type DeploymentFailure } from '../../lib/api/group.ts';
import type { KfInfo } from '../../lib/api/kf-info.ts';
import type { Condition, Stored } from '../../lib/api/object.ts';
import type { CFProcess, CFRoute } from '../../lib/api/types.generated.ts';
import { generationHeader } from '../../templates/http-route.ts';
import type { Instance } from '../instances/instances.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Context, Stores } from '../runtime/reconciler.ts';
import { gatewayAddress, routesTo, type MappedDestination } from '../relations.ts';
import { httpRouteOf } from '../shared-routes.ts';
import { defined } from '../../lib/defined.ts';
import { ask } from './gateway-request.ts';
import { refusalOf } from './route-refusal.ts';

/**
 * Which way the answer came. `unnamed`: from an instance, since the gateway's answers name no version; `unanswered`: from none, in the same case.
 * `nothing`: neither the gateway nor an instance can be reached from here. `earlier`: the status says that the generation was proven, but not how.
 */
export type Through = 'gateway' | 'instance' | 'unnamed' | 'unanswered' | 'nothing' | 'earlier';

/** State of a generation's proof. */
export type Proof =
  | { state: 'proven'; through: Through }
  | { state: 'awaited'; message: string; lookAgainMs?: number }
  | { state: 'refused'; reason: DeploymentFailure; cause: CauseCode; message: string };

interface Attempts {
  /** Distinguishes these requests from those of an earlier try, whose answers may still arrive. */
  serial: number;
  since: number;
  count: number;
  unreachableSince?: number;
  /** An instance itself is asked. */
  direct: boolean;
  /** An answer came that does not name its version, so an instance is asked: `gateway` where the gateway cannot mark answers, else `unnamed`. */
  heard?: 'gateway' | 'unnamed';
  last?: string;
  /** Since when, and how often in a row, the answer was 500. */
  errors?: { since: number; count: number };
  proven?: Through;
}

/** The version itself has answered, or its gateway for it. */
export const isAnswered = (proof: Proof): boolean =>
  proof.state === 'proven' && proof.through !== 'nothing' && proof.through !== 'unanswered';

/** What counts when no instance can be asked from where the controller runs. */
const withoutInstance = ({ heard }: Attempts): Through => (heard === 'unnamed' ? 'unanswered' : (heard ?? 'nothing'));

const retryMs = 100;
const requestTimeoutMs = 5_000;
/** The gateway itself sends these answers until it knows the new pods; after this time they are the app's fault. */
export const refusalPatienceMs = 15_000;
const gatewayPatienceMs = 3_000;
/** A first version whose port is not checked gets this long to answer; then it counts as proven. */
const firstAnswerMs = 2_000;
/**
 * After an outage of the API server, its clients reconnect with pauses that grow to more than a minute. Until then a gateway gets no news.
 */
export const gatewayCatchUpMs = 95_000;

/** Until when the silence of a gateway does not count, in milliseconds by the API server's clock: it gets no news while that server is away. */
export function gatewayFairFrom(stores: Stores): number {
  const { steadySince } = stores.of(httpRouteType);
  return steadySince === 0 ? 0 : steadySince + gatewayCatchUpMs;
}

/** A gateway that does not mark its answers may still answer 404 for a route that it has not loaded. */
const unmarkedPatienceMs = 1_000;
export const notServed: ReadonlySet<number> = new Set([502, 503, 504]);
/**
 * The app may send this status, or the gateway, which the Gateway API requires to send it while it does not know a route's Service or its
 * addresses yet. The answer does not show which of the two sent it, but the gateway stops sending it after a while.
 */
export const ownError = 500;
/** An app that answers with 500 for this long does so by itself, and counts as serving. */
const ownErrorMs = 5_000;

/**
 * The pause between requests that may reach an app. It starts short, for a quick result, and grows, so that the app's log does not fill
 * with them.
 */
export function pauseAfter(refusals: number): number {
  return Math.min(retryMs * 2 ** (refusals - 1), 1_000);
}

interface Target {
  base: string;
  host: string;
  path: string;
  generation: string;
}

/**
 * One route of each protocol that the gateway speaks to the app, in turn: a version may speak only one of them, and it serves when it answers by that
 * one. Of several routes with one protocol the oldest is asked.
 */
function routeToAsk(mapped: readonly MappedDestination[], count: number): MappedDestination | undefined {
  const byProtocol = new Map(mapped.toReversed().map((one) => [one.destination.protocol ?? 'http1', one]));
  const oldestFirst = mapped.filter((one) => byProtocol.get(one.destination.protocol ?? 'http1') === one);
  return oldestFirst[count % Math.max(oldestFirst.length, 1)];
}

/** True when something answered that is no HTTP/1.1: an instance that speaks only HTTP/2 does. The code of a time limit is a number. */
const isOtherProtocol = ({ code }: Error & { code?: unknown }): boolean => typeof code === 'string' && code.startsWith('HPE_');

function conditionOf(route: Stored<HttpRoute>, type: string): Condition | undefined {
  const found = (route.status?.parents ?? []).flatMap(({ conditions = [] }) => conditions).filter((condition) => condition.type === type);
  return found.find(({ observedGeneration }) => observedGeneration === undefined || observedGeneration >= (route.metadata.generation ?? 0));
}

/** A gateway's status of a route. */
export interface Acceptance {
  accepted: boolean;
  message: string;
  /**
   * The gateway does not know a Service, or its addresses. The controller has written the Service before the route, so the gateway learns of it; Kubernetes
   * may write the addresses late.
   */
  lacksBackend: boolean;
}

/** The gateway's status of a route; undefined while the gateway has not looked at its present form. */
export function acceptance(route: Stored<HttpRoute>): Acceptance | undefined {
  const [accepted, resolved] = [conditionOf(route, 'Accepted'), conditionOf(route, 'ResolvedRefs')];
  if (accepted === undefined) return undefined;
  const bad = [accepted, resolved].find((condition) => condition !== undefined && condition.status !== 'True');
  if (bad === undefined) return { accepted: true, message: '', lacksBackend: false };
  return { accepted: false, message: `${bad.reason}: ${bad.message}`, lacksBackend: bad.reason === 'BackendNotFound' };
}

/** Since when the gateway has turned down the route as a whole, milliseconds by the API server's clock; undefined when it has not done so now. */
export function turnedDownAt(route: Stored<HttpRoute>): number | undefined {
  const accepted = conditionOf(route, 'Accepted');
  return accepted?.status === 'False' ? Date.parse(accepted.lastTransitionTime) || 0 : undefined;
}

/** The gateway has looked at the present form of the route, and does not take it. */
const isRefused = (route: Stored<HttpRoute> | undefined): boolean => route !== undefined && acceptance(route)?.accepted === false;

/**
 * True when the gateway says that it has loaded the present form of the route, or when it cannot be asked and there is nothing to wait for.
 * A statement about another form does not count.
 */
export function isSettled(route: Stored<CFRoute>, live: Stored<HttpRoute> | undefined): boolean {
  const revision = revisionOf(live);
  if (revision === undefined) return true;
  return isLoaded(findCondition(route, conditionTypes.programmed), revision);
}

/** True when a request with the header can select the generation. */
export function hasRule(route: Stored<HttpRoute>, generation: string): boolean {
  return (route.spec?.rules ?? []).some(
    (rule) => rule.matches?.some((match) => match.headers?.some(({ value }) => value === generation)) === true,
  );
}

/**
 * How long to wait for an answer when the health check is only that the process runs. As in cf, such a process need not answer requests,
 * although it has a route (every app gets one). It still gets requests for this long: another version that serves is kept until then, in
 * case the new one starts to listen a moment later.
 */
function answerPatienceOf(process: Stored<CFProcess>, { generation, isChecked }: Candidate): { answerMs?: number } {
  if (isChecked) return {};
  const hasOther = (process.status?.rollout?.generations ?? []).some(({ hash, ready }) => hash !== generation && ready > 0);
  return { answerMs: hasOther ? refusalPatienceMs : firstAnswerMs };
}

/** The generation that is to be proven. */
export interface Candidate {
  generation: string;
  instances: readonly Instance[];
  port: number;
  /** A probe checks its port. The process may have another health check by now, which waits for the next start. */
  isChecked: boolean;
}

export class Proofs {
  readonly #attempts = new BoundedMap<string, Attempts>(5_000);
  #tries = 0;

  /** The next check sends requests again. */
  forget(process: Stored<CFProcess>, generation: string): void {
    this.#attempts.delete(this.#key(process, generation));
  }

  /** Which way the answer came when the generation was proven; `earlier` when another controller or an earlier try proved it. */
  through(process: Stored<CFProcess>, generation: string): Through {
    return this.#attempts.get(this.#key(process, generation))?.proven ?? 'earlier';
  }

  /** The state of the proof of a generation with ready instances; sends requests in the background. */
  check(context: Context, process: Stored<CFProcess>, own: Candidate): Proof {
    const attempts = this.#attemptsOf(process, own.generation, context.now(), gatewayFairFrom(context.stores));
    if (attempts.proven !== undefined) return { state: 'proven', through: attempts.proven };
    const proof = this.#look(context, process, own, attempts);
    if (proof.state === 'proven') attempts.proven = proof.through;
    return proof;
  }

  #look(context: Context, process: Stored<CFProcess>, own: Candidate, attempts: Attempts): Proof {
    const { generation } = own;
    const routes = routesTo(process, context.stores);
    const lacking = this.#awaitRoutes(context, routes, generation, attempts);
    if (lacking !== undefined) return lacking;
    const mapped = routeToAsk(routes, attempts.count);
    const info = context.info();
    if (mapped !== undefined && !attempts.direct) {
      // Requests move only when all routes do, so one that the gateway has refused would be waited for without end.
      const refused = routes.filter(({ route }) => route !== mapped.route && isRefused(httpRouteOf(route, context.stores)));
      for (const { route } of [mapped, ...refused]) {
        const awaited = this.#awaitGateway(context, route, generation, attempts);
        if (awaited !== undefined) return awaited;
      }
    }
    const target = this.#target(context, mapped?.route, generation, attempts, own);
    if (target === undefined) return { state: 'proven', through: withoutInstance(attempts) };
    return this.#evaluate(context, attempts, target, { info, ...answerPatienceOf(process, own) });
  }

  /** Undefined unless the cluster refuses what one of the routes needs to lead to the generation: then requests could never move to it. */
  #awaitRoutes(context: Context, routes: readonly MappedDestination[], generation: string, { since }: Attempts): Proof | undefined {
    for (const { route } of routes) {
      const refusal = refusalOf(route);
      const live = refusal === undefined ? undefined : httpRouteOf(route, context.stores);
      if (refusal === undefined || (live !== undefined && hasRule(live, generation))) continue;
      const { since: refusedSince, ...why } = refusal;
      if (context.now() - Math.max(since, refusedSince) > refusalPatienceMs) return { state: 'refused', ...why };
      return { state: 'awaited', message: why.message, lookAgainMs: 1_000 };
    }
    return undefined;
  }

  /** Undefined once the gateway has accepted the route with the generation's rule. */
  #awaitGateway(context: Context, route: Stored<CFRoute>, generation: string, attempts: Attempts): Proof | undefined {
    const waited = context.now() - attempts.since;
    const live = httpRouteOf(route, context.stores);
    const taken = live === undefined || !hasRule(live, generation) ? undefined : acceptance(live);
    const address = route.status?.uri ?? route.spec.host ?? '';
    if (taken?.accepted === true) return undefined;
    if (waited > (taken?.lacksBackend === true ? gatewayCatchUpMs : refusalPatienceMs)) {
      const why = taken === undefined ? 'no gateway controller looked at it' : taken.message;
      const cause = taken === undefined ? 'gateway-down' : 'route-not-programmed';
      return { state: 'refused', reason: 'RouteNotAccepted', cause, message: `The gateway did not take the route ${address}: ${why}` };
    }
    return { state: 'awaited', message: `The gateway has not taken the route ${address} yet`, lookAgainMs: 1_000 };
  }

  #target(
    context: Context,
    route: Stored<CFRoute> | undefined,
    generation: string,
    attempts: Attempts,
    own: { instances: readonly Instance[]; port: number },
  ): Target | undefined {
    const host = (route?.status?.fqdn ?? 'localhost').replace('*', 'kf-probe');
    const path = `${(route?.spec.path ?? '').replace(/\/$/, '')}/`;
    const gateway = route === undefined ? undefined : gatewayAddress(context, route);
    if (gateway !== undefined && !attempts.direct) return { base: gateway, host, path, generation };
    attempts.direct = true;
    const address = own.instances.find(({ ready, address: ip }) => ready && ip !== undefined)?.address;
    if (address === undefined) return undefined;
    const literal = address.includes(':') ? `[${address}]` : address;
    return { base: `http://${literal}:${String(own.port)}`, host, path, generation };
  }

  #evaluate(context: Context, attempts: Attempts, target: Target, { info, answerMs }: { info: KfInfo; answerMs?: number }): Proof {
    const outcome = context.outside(
      `${target.base} ${target.host} ${target.generation} ${attempts.serial} ${attempts.count}`,
      requestTimeoutMs,
      (signal) => ask({ ...target, headers: { [generationHeader]: target.generation } }, signal),
    );
    if (outcome === undefined) return { state: 'awaited', message: attempts.last ?? `Waiting for an answer of ${target.host}` };
    attempts.count += 1;
    const now = context.now();
    if (!outcome.ok) {
      const error = outcome.error as Error;
      if (attempts.direct && isOtherProtocol(error)) return { state: 'proven', through: attempts.heard ?? 'instance' };
      return this.#unreachable(attempts, target, now, error.message);
    }
    delete attempts.unreachableSince;
    const { status, generation } = outcome.value;
    // A gateway may also answer 500 for a connection that an app cut. So only an unbroken series of 500 counts as the app's own answer.
    if (status !== ownError) delete attempts.errors;
    const marked = generation === target.generation;
    const waited = now - attempts.since;
    if (notServed.has(status)) return this.#unserved(attempts, target, { status, waited, ...defined({ answerMs }) });
    if (status === ownError && !attempts.direct) {
      attempts.errors ??= { since: now, count: 0 };
      attempts.errors.count += 1;
      attempts.last = `Requests to ${target.host}${target.path} are answered with 500.`;
      // A gateway without news after an outage may not know the Service yet.
      if (now - Math.max(attempts.errors.since, attempts.since) <= ownErrorMs)
        return { state: 'awaited', message: attempts.last, lookAgainMs: pauseAfter(attempts.errors.count) };
    }
    if (attempts.direct) return { state: 'proven', through: attempts.heard ?? 'instance' };
    if (marked) return { state: 'proven', through: 'gateway' };
    return this.#unnamed(attempts, target, { marks: info.gateway.features.includes(markFeature), status, waited });
  }

  /** The gateway's answer does not say which version sent it: another one may have. */
  #unnamed(attempts: Attempts, { host }: Target, seen: { marks: boolean; status: number; waited: number }): Proof {
    const { marks, status, waited } = seen;
    if (waited <= (marks ? refusalPatienceMs : unmarkedPatienceMs) && (marks || status === 404))
      return { state: 'awaited', message: `The gateway has not loaded the route ${host} yet`, lookAgainMs: retryMs };
    attempts.direct = true;
    attempts.since += waited;
    attempts.heard = marks ? 'unnamed' : 'gateway';
    return {
      state: 'awaited',
      message: `The answer of ${host} does not say which version sent it, asking an instance itself`,
      lookAgainMs: 1,
    };
  }

  /** Evaluates an answer that the gateway sent in place of the version. */
  #unserved(attempts: Attempts, { host, path }: Target, seen: { status: number; waited: number; answerMs?: number }): Proof {
    const { status, waited, answerMs } = seen;
    attempts.last = `${attempts.direct ? 'An instance of' : 'The gateway does not reach'} the new version of ${host} ${attempts.direct ? 'does not serve ' : ''}yet (${String(status)}).`;
    // The process does not have to answer: its check is only that it runs.
    if (answerMs !== undefined && waited > answerMs) return { state: 'proven', through: 'gateway' };
    if (waited <= refusalPatienceMs) return { state: 'awaited', message: attempts.last, lookAgainMs: retryMs };
    return {
      state: 'refused',
      reason: 'NotServing',
      cause: 'not-serving',
      message: `Requests to ${host}${path} are answered with ${String(status)}.`,
    };
  }

  #unreachable(attempts: Attempts, target: Target, now: number, message: string): Proof {
    attempts.unreachableSince ??= now;
    const tooLong = now - attempts.unreachableSince > gatewayPatienceMs;
    if (!tooLong) return { state: 'awaited', message: `${target.base} does not answer: ${message}`, lookAgainMs: retryMs };
    if (attempts.direct) return { state: 'proven', through: withoutInstance(attempts) };
    attempts.direct = true;
    delete attempts.unreachableSince;
    return { state: 'awaited', message: `${target.base} does not answer, asking an instance itself`, lookAgainMs: 1 };
  }

  #key(process: Stored<CFProcess>, generation: string): string {
    return `${process.metadata.uid} ${generation}`;
  }

  #attemptsOf(process: Stored<CFProcess>, generation: string, now: number, fair: number): Attempts {
    const key = this.#key(process, generation);
    const known = this.#attempts.get(key);
    if (known !== undefined) {
      // While the API server was away, gateways got no news, so their time starts again.
      known.since = Math.max(known.since, fair);
      return known;
    }
    this.#tries += 1;
    const fresh: Attempts = { serial: this.#tries, since: Math.max(now, fair), count: 0, direct: false };
    this.#attempts.set(key, fresh);
    return fresh;
  }
}

/** Feature of a gateway that lets a rule mark its answers (ResponseHeaderModifier). */
export const markFeature = 'HTTPRouteResponseHeaderModification';

/** A feature that the Gateway API leaves to implementations and does not name: paths matched by regular expressions (RE2). */
export const pathExpressionFeature = 'kf:PathRegularExpression';
