// Whether the gateway works by a route's present form: asked of the gateway itself, and of the app behind the route once, when it is newly mapped.

import { findCondition } from '../../lib/api/conditions.ts';
import { httpRouteType, mainBackends, revisionHeader, revisionOf, revisionOfAnswer, type HttpRoute } from '../../lib/api/gateway.ts';
import { conditionTypes, kinds, reasons } from '../../lib/api/group.ts';
import type { CFRoute } from '../../lib/api/types.generated.ts';
import { generationHeader } from '../../templates/http-route.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Context } from '../runtime/reconciler.ts';
import type { Statement } from '../runtime/status.ts';
import { processesByApp } from '../relations.ts';
import { acceptance, ask, notServed } from '../rollout/traffic-probe.ts';

const askTimeoutMs = 3_000;
const retryMs = 100;
const slowRetryMs = 10_000;
/** A gateway that cannot be asked for so long is taken at its word in the route's status. */
const unreachableMs = 3_000;
/** A gateway that has not loaded a route by then has trouble; it is told, and asked more seldom. */
const loadMs = 15_000;
/** An app that answers with 502, 503 or 504 for so long does so by itself. */
const answerMs = 5_000;

interface Attempts {
  revision: string;
  since: number;
  count: number;
  loadedAt?: number;
}

export interface Programmed {
  /** Left out: nothing new to say. */
  statement?: Statement;
  requeueAfterMs?: number;
}

const said = (status: 'True' | 'False', reason: string, message: string): Statement => ({
  type: conditionTypes.programmed,
  status,
  reason,
  message,
});

/** The generation of the app that plain requests get, when it has instances that could answer. */
function servingGeneration(context: Context, route: CFRoute, live: HttpRoute): string | undefined {
  const { namespace = '' } = route.metadata;
  const hasInstances = (route.spec.destinations ?? []).some(({ appRef, processType }) =>
    context.stores
      .of(kinds.process)
      .by(processesByApp.name, `${namespace}/${appRef.name ?? ''}`)
      .some(({ spec, status }) => spec.processType === processType && (status?.actualInstances ?? 0) > 0),
  );
  return hasInstances ? mainBackends(live)[0]?.name.slice(-10) : undefined;
}

export class Programming {
  readonly #attempts = new BoundedMap<string, Attempts>(5_000);

  /** What is to be said of the route now; asks the gateway in the background where that is not known yet. */
  look(context: Context, route: CFRoute): Programmed {
    const live = context.stores.of(httpRouteType).get(route.metadata.namespace, route.metadata.name ?? '');
    const revision = revisionOf(live);
    if (live === undefined || revision === undefined) return {};
    const before = findCondition(route, conditionTypes.programmed);
    const isKnown = before?.status === 'True' && before.message.endsWith(`${revision}.`);
    // The same form for another generation: what changed of the route changed nothing for the gateway.
    if (isKnown) return { statement: said('True', before.reason, before.message) };
    return this.#prove(context, route, live, this.#attemptsOf(context, route, revision));
  }

  #attemptsOf(context: Context, route: CFRoute, revision: string): Attempts {
    const { uid = '' } = route.metadata;
    const known = this.#attempts.get(uid);
    if (known?.revision === revision) return known;
    const fresh = { revision, since: context.now(), count: 0 };
    this.#attempts.set(uid, fresh);
    return fresh;
  }

  #prove(context: Context, route: CFRoute, live: HttpRoute, attempts: Attempts): Programmed {
    const taken = acceptance(live);
    if (taken?.accepted !== true) {
      const message = taken?.message ?? 'No gateway controller has looked at the route.';
      return isLate(context, attempts)
        ? { statement: said('False', 'NotAccepted', message), requeueAfterMs: slowRetryMs }
        : { requeueAfterMs: 1_000 };
    }
    const base = context.info().gateway.internalAddress ?? '';
    if (base === '') return proven('NotVerified', attempts);
    const generation = attempts.loadedAt === undefined ? undefined : servingGeneration(context, route, live);
    const headers = generation === undefined ? { [revisionHeader]: '?' } : { [generationHeader]: generation };
    const id = `${route.metadata.uid ?? ''} ${attempts.revision} ${String(attempts.count)}`;
    const outcome = context.outside(id, askTimeoutMs, (signal) => ask({ ...addressed(base, route, live), headers }, signal));
    if (outcome === undefined) return {};
    attempts.count += 1;
    if (!outcome.ok) return context.now() - attempts.since > unreachableMs ? proven('NotVerified', attempts) : { requeueAfterMs: retryMs };
    if (generation !== undefined) return this.#answered(context, attempts, outcome.value.status);
    return this.#loaded(context, route, live, attempts, revisionOfAnswer(outcome.value.location));
  }

  #loaded(context: Context, route: CFRoute, live: HttpRoute, attempts: Attempts, revision: string | undefined): Programmed {
    if (revision !== attempts.revision) {
      const message = 'The gateway has taken the route and does not work by it yet.';
      return isLate(context, attempts)
        ? { statement: said('False', 'NotLoaded', message), requeueAfterMs: slowRetryMs }
        : { requeueAfterMs: retryMs };
    }
    attempts.loadedAt = context.now();
    // Changes of weights are proven by the process; a route that is newly mapped by one answer of what it leads to.
    const isMapped = findCondition(route, conditionTypes.programmed)?.observedGeneration !== route.metadata.generation;
    return isMapped && servingGeneration(context, route, live) !== undefined ? { requeueAfterMs: 1 } : proven(reasons.loaded, attempts);
  }

  #answered(context: Context, attempts: Attempts, status: number): Programmed {
    if (!notServed.has(status)) return proven(reasons.loaded, attempts);
    const isOver = context.now() - (attempts.loadedAt ?? 0) > answerMs;
    return isOver ? proven('AppDoesNotAnswer', attempts) : { requeueAfterMs: retryMs };
  }
}

const isLate = (context: Context, { since }: Attempts): boolean => context.now() - since > loadMs;

function addressed(base: string, route: CFRoute, live: HttpRoute): { base: string; host: string; path: string } {
  const host = (route.status?.fqdn ?? live.spec?.hostnames?.[0] ?? '').replace('*', 'kf-probe');
  return { base, host, path: `${(route.spec.path ?? '').replace(/\/$/, '')}/` };
}

function proven(reason: string, { revision }: Attempts): Programmed {
  return { statement: said('True', reason, `The gateway works by revision ${revision}.`) };
}
