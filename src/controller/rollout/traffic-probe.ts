// Proof that a generation serves: one request that reaches it and no other, through the gateway where there is one, else to an instance itself.

import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { findCondition } from '../../lib/api/conditions.ts';
import { httpRouteType, revisionOf, type HttpRoute } from '../../lib/api/gateway.ts';
import { conditionTypes, reasons, type DeploymentFailure } from '../../lib/api/group.ts';
import type { KfInfo } from '../../lib/api/kf-info.ts';
import type { Condition, Stored } from '../../lib/api/object.ts';
import type { CFProcess, CFRoute } from '../../lib/api/types.generated.ts';
import { generationHeader } from '../../templates/http-route.ts';
import type { Instance } from '../instances/instances.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Context } from '../runtime/reconciler.ts';
import { routesTo } from '../relations.ts';
import { defined } from '../../lib/defined.ts';

/** What answered: `nothing` where neither can be reached from here, `earlier` when the status says that something did, and no more. */
export type Through = 'gateway' | 'instance' | 'nothing' | 'earlier';

/** How a generation's proof stands. */
export type Proof =
  | { state: 'proven'; through: Through }
  | { state: 'awaited'; message: string; lookAgainMs?: number }
  | { state: 'refused'; reason: DeploymentFailure; message: string };

interface Attempts {
  /** Tells these questions from those of an earlier try, whose answers may still be on their way. */
  serial: number;
  since: number;
  count: number;
  unreachableSince?: number;
  direct: boolean;
  last?: string;
  /** Since when, and how often in a row, the answer was 500. */
  errors?: { since: number; count: number };
  proven?: Through;
}

const retryMs = 100;
const requestTimeoutMs = 5_000;
/** Answers of the gateway itself that pass once it knows the new pods; longer than this is the app's fault. */
const refusalPatienceMs = 15_000;
const gatewayPatienceMs = 3_000;
/** A first version without a check of its port gets so long to answer; then it counts as it is. */
const firstAnswerMs = 2_000;
/** Clients of an API server that was away ask again after a pause that grows to a minute and more; a gateway knows of nothing new until then. */
const catchUpMs = 95_000;
/** A gateway that marks nothing may still answer 404 for a route that it has not loaded. */
const unmarkedPatienceMs = 1_000;
export const notServed: ReadonlySet<number> = new Set([502, 503, 504]);
/**
 * Of an app, or, as the Gateway API demands it, of a gateway that does not know a route's Service or its addresses yet. Nothing in the answer tells
 * which of the two: the gateway's passes.
 */
export const ownError = 500;
/** An app that answers with 500 for so long does so by itself, and serves. */
const ownErrorMs = 5_000;

/** Between requests that may reach an app: few of them fill its log, the first come soon. */
export function pauseAfter(refusals: number): number {
  return Math.min(retryMs * 2 ** (refusals - 1), 1_000);
}

interface Target {
  base: string;
  host: string;
  path: string;
  generation: string;
}

interface Question {
  base: string;
  host: string;
  path: string;
  headers: Record<string, string>;
}

export interface Answer {
  status: number;
  /** The generation whose rule answered, where the gateway says so. */
  generation?: string | undefined;
  location?: string | undefined;
}

const one = (header: string | string[] | undefined): string | undefined => (Array.isArray(header) ? header[0] : header);

/** Says in an app's log whose request it was. */
const userAgent = 'kf-controller (kf asks once whether the app answers)';

/** One GET; follows nothing, reads no body. A path never names another address: developers write it, and `//host:port/` would be one to a URL parser. */
export function ask({ base, host, path, headers: more }: Question, signal: AbortSignal): Promise<Answer> {
  const url = new URL(base);
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const headers = { host, ...more, 'user-agent': userAgent, connection: 'close' };
  return new Promise((resolve, reject) => {
    const request = send(url, { path, headers, signal, agent: false, servername: host, rejectUnauthorized: false }, (response) => {
      // An app may send without end: what it sends is not read, and its connection ends here.
      response.destroy();
      const { location } = response.headers;
      resolve({ status: response.statusCode ?? 0, generation: one(response.headers[generationHeader]), location });
    });
    request.on('error', reject);
    request.end();
  });
}

function conditionOf(route: Stored<HttpRoute>, type: string): Condition | undefined {
  const found = (route.status?.parents ?? []).flatMap(({ conditions = [] }) => conditions).filter((condition) => condition.type === type);
  return found.find(({ observedGeneration }) => observedGeneration === undefined || observedGeneration >= (route.metadata.generation ?? 0));
}

/** What the gateway says of a route: undefined while it has not looked at its present form. */
export function acceptance(route: Stored<HttpRoute>): { accepted: boolean; message: string } | undefined {
  const [accepted, resolved] = [conditionOf(route, 'Accepted'), conditionOf(route, 'ResolvedRefs')];
  if (accepted === undefined) return undefined;
  const bad = [accepted, resolved].find((condition) => condition !== undefined && condition.status !== 'True');
  return { accepted: bad === undefined, message: bad === undefined ? '' : `${bad.reason}: ${bad.message}` };
}

/**
 * The gateway has loaded the present form of the route, as it says itself; or it cannot be asked, and nothing is left to wait for. A word about another
 * form says nothing of this one.
 */
export function isSettled(route: Stored<CFRoute>, live: Stored<HttpRoute> | undefined): boolean {
  const revision = revisionOf(live);
  if (revision === undefined) return true;
  const known = findCondition(route, conditionTypes.programmed);
  if (known?.message.endsWith(`${revision}.`) !== true) return false;
  return known.status === 'True' || known.reason === reasons.notAnswered;
}

function hasRule(route: Stored<HttpRoute>, generation: string): boolean {
  return (route.spec?.rules ?? []).some(
    (rule) => rule.matches?.some((match) => match.headers?.some(({ value }) => value === generation)) === true,
  );
}

/**
 * A process whose check is that it runs need not answer requests, as in cf, although it has a route (every app gets one). It is asked all the same, for
 * so long: another version that serves is kept until then, in case that this one listens a moment later.
 */
function answerPatienceOf(process: Stored<CFProcess>, generation: string): { answerMs?: number } {
  if (process.spec.healthCheck.type !== 'process') return {};
  const hasOther = (process.status?.rollout?.generations ?? []).some(({ hash, ready }) => hash !== generation && ready > 0);
  return { answerMs: hasOther ? refusalPatienceMs : firstAnswerMs };
}

export class Proofs {
  readonly #attempts = new BoundedMap<string, Attempts>(5_000);
  #tries = 0;

  /** Asks anew next time. */
  forget(process: Stored<CFProcess>, generation: string): void {
    this.#attempts.delete(this.#key(process, generation));
  }

  /** What answered when the generation was proven; `earlier` when another controller, or an earlier try, found that. */
  through(process: Stored<CFProcess>, generation: string): Through {
    return this.#attempts.get(this.#key(process, generation))?.proven ?? 'earlier';
  }

  /** Where the proof of a generation with ready instances stands; sends requests in the background. */
  check(context: Context, process: Stored<CFProcess>, generation: string, instances: readonly Instance[], port: number): Proof {
    const attempts = this.#attemptsOf(process, generation, context.now(), context.stores.of(httpRouteType).steadySince);
    if (attempts.proven !== undefined) return { state: 'proven', through: attempts.proven };
    const proof = this.#look(context, process, { generation, instances, port }, attempts);
    if (proof.state === 'proven') attempts.proven = proof.through;
    return proof;
  }

  #look(
    context: Context,
    process: Stored<CFProcess>,
    own: { generation: string; instances: readonly Instance[]; port: number },
    attempts: Attempts,
  ): Proof {
    const { generation } = own;
    const mapped = routesTo(process, context.stores)[0];
    const info = context.info();
    if (mapped !== undefined && !attempts.direct) {
      const awaited = this.#awaitGateway(context, mapped.route, generation, attempts);
      if (awaited !== undefined) return awaited;
    }
    const target = this.#target(info, mapped?.route, generation, attempts, own);
    if (target === undefined) return { state: 'proven', through: 'nothing' };
    return this.#evaluate(context, attempts, target, { info, ...answerPatienceOf(process, generation) });
  }

  /** Undefined once the gateway has taken the route with the generation's rule. */
  #awaitGateway(context: Context, route: Stored<CFRoute>, generation: string, attempts: Attempts): Proof | undefined {
    const waited = context.now() - attempts.since;
    const live = context.stores.of(httpRouteType).get(route.metadata.namespace, route.metadata.name);
    const taken = live === undefined || !hasRule(live, generation) ? undefined : acceptance(live);
    const address = route.status?.uri ?? route.spec.host ?? '';
    if (taken?.accepted === true) return undefined;
    if (waited > refusalPatienceMs) {
      const why = taken === undefined ? 'no gateway controller looked at it' : taken.message;
      return { state: 'refused', reason: 'RouteNotAccepted', message: `The gateway did not take the route ${address}: ${why}` };
    }
    return { state: 'awaited', message: `The gateway has not taken the route ${address} yet`, lookAgainMs: 1_000 };
  }

  #target(
    info: KfInfo,
    route: Stored<CFRoute> | undefined,
    generation: string,
    attempts: Attempts,
    own: { instances: readonly Instance[]; port: number },
  ): Target | undefined {
    const host = (route?.status?.fqdn ?? 'localhost').replace('*', 'kf-probe');
    const path = `${(route?.spec.path ?? '').replace(/\/$/, '')}/`;
    const gateway = info.gateway.internalAddress;
    if (gateway !== undefined && gateway !== '' && route !== undefined && !attempts.direct)
      return { base: gateway, host, path, generation };
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
    if (!outcome.ok) return this.#unreachable(attempts, target, now, (outcome.error as Error).message);
    delete attempts.unreachableSince;
    const { status, generation } = outcome.value;
    // A gateway may answer 500 also for a connection that an app cut: only 500 and nothing else is the app's own word.
    if (status !== ownError) delete attempts.errors;
    const marked = generation === target.generation;
    const waited = now - attempts.since;
    if (notServed.has(status)) return this.#unserved(attempts, target, { status, waited, ...defined({ answerMs }) });
    if (status === ownError && !attempts.direct) {
      attempts.errors ??= { since: now, count: 0 };
      attempts.errors.count += 1;
      attempts.last = `Requests to ${target.host}${target.path} are answered with 500.`;
      if (now - attempts.errors.since <= ownErrorMs)
        return { state: 'awaited', message: attempts.last, lookAgainMs: pauseAfter(attempts.errors.count) };
    }
    const marks = info.gateway.features.includes(markFeature) && !attempts.direct;
    const isOwn = attempts.direct || marked || (status !== 404 && !marks) || waited > (marks ? refusalPatienceMs : unmarkedPatienceMs);
    if (!isOwn) return { state: 'awaited', message: `The gateway has not loaded the route ${target.host} yet`, lookAgainMs: retryMs };
    return { state: 'proven', through: attempts.direct ? 'instance' : 'gateway' };
  }

  /** The gateway answers in place of the version. */
  #unserved(attempts: Attempts, { host, path }: Target, seen: { status: number; waited: number; answerMs?: number }): Proof {
    const { status, waited, answerMs } = seen;
    attempts.last = `The gateway does not reach the new version of ${host} yet (${String(status)}).`;
    // It does not have to answer: its check says that it runs.
    if (answerMs !== undefined && waited > answerMs) return { state: 'proven', through: 'gateway' };
    if (waited <= refusalPatienceMs) return { state: 'awaited', message: attempts.last, lookAgainMs: retryMs };
    return { state: 'refused', reason: 'NotServing', message: `Requests to ${host}${path} are answered with ${String(status)}.` };
  }

  #unreachable(attempts: Attempts, target: Target, now: number, message: string): Proof {
    attempts.unreachableSince ??= now;
    const tooLong = now - attempts.unreachableSince > gatewayPatienceMs;
    if (!tooLong) return { state: 'awaited', message: `${target.base} does not answer: ${message}`, lookAgainMs: retryMs };
    if (attempts.direct) return { state: 'proven', through: 'nothing' };
    attempts.direct = true;
    delete attempts.unreachableSince;
    return { state: 'awaited', message: `${target.base} does not answer, asking an instance itself`, lookAgainMs: 1 };
  }

  #key(process: Stored<CFProcess>, generation: string): string {
    return `${process.metadata.uid} ${generation}`;
  }

  #attemptsOf(process: Stored<CFProcess>, generation: string, now: number, steadySince: number): Attempts {
    const key = this.#key(process, generation);
    const fair = steadySince === 0 ? 0 : steadySince + catchUpMs;
    const known = this.#attempts.get(key);
    if (known !== undefined) {
      // While the API server was away, gateways heard of nothing: their time starts anew.
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

/** A feature that the Gateway API leaves to implementations and has no name for: paths matched by regular expressions (RE2). */
export const pathExpressionFeature = 'kf:PathRegularExpression';
