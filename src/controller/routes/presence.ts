// Which destinations of a route get requests: those with ready instances that the gateway reaches, as long as there are any.

import { mainBackends, type HttpRoute } from '../../lib/api/gateway.ts';
import type { Stored } from '../../lib/api/object.ts';
import { byDestination } from '../../templates/route-room.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import type { Context } from '../runtime/reconciler.ts';
import { gatewayCatchUpMs } from '../rollout/traffic-probe.ts';
import type { Backends, DestinationBackend } from './backends.ts';
import { defined } from '../../lib/defined.ts';

/** The gateway learns of an instance's address later than the controller. A destination that had no instance gets requests after this time. */
const enterMs = 2_000;

type Presence = 'stays' | 'enters' | 'away';

interface Destination {
  backends: DestinationBackend[];
  presence: Presence;
  /** After so many milliseconds it gets requests at the latest. */
  entersIn: number;
  /** It waits for an answer of these. */
  asked?: DestinationBackend[];
}

/** What is known of the gateway. */
interface Gateway {
  /** Services that plain requests reach now. */
  named: ReadonlySet<string>;
  /** Services that have answered a request through the gateway; undefined when it cannot be asked. */
  answered: Set<string> | undefined;
}

const hasShare = ({ weight }: DestinationBackend): boolean => weight > 0;

/** When a destination was first seen with a ready instance. The clock of a node may be wrong, and then the time in its pods is too. */
const firstSeen = new Remembered(() => new BoundedMap<string, number>(5_000));

function look(context: Context, own: DestinationBackend[], { named, answered }: Gateway): Destination {
  const [now, seen, key] = [context.now(), context.memory.of(firstSeen), `${own[0]?.route ?? ''}/${own[0]?.destination ?? ''}`];
  const serving = own.filter((backend) => hasShare(backend) && backend.isReady);
  if (serving.length === 0) {
    seen.delete(key);
    for (const { service } of own) answered?.delete(service);
    return { backends: own, presence: 'away', entersIn: 0 };
  }
  const first = seen.get(key) ?? now;
  seen.set(key, first);
  const since = Math.min(first, ...serving.map(({ readySince = now }) => readySince));
  const isNamed = ({ service }: DestinationBackend): boolean => named.has(service);
  const entersIn = serving.some(isNamed) ? 0 : since + enterMs - now;
  if (entersIn > 0) return { backends: own, presence: 'enters', entersIn };
  const latest = first + gatewayCatchUpMs - now;
  const isAsked = answered !== undefined && latest > 0 && !own.some(isNamed) && !serving.every(({ service }) => answered.has(service));
  return isAsked
    ? { backends: own, presence: 'enters', entersIn: latest, asked: serving }
    : { backends: own, presence: 'stays', entersIn: 0 };
}

const sum = (backends: readonly DestinationBackend[]): number => backends.reduce((total, { weight }) => total + weight, 0);

/** Gives the shares of versions without ready instances to those of the same destination that have some. */
function withinDestination(own: readonly DestinationBackend[], isOnly: boolean): DestinationBackend[] {
  const present = own.filter(({ isReady }) => isReady);
  const [all, left] = [sum(own), sum(present)];
  if (left === 0 || left === all) return [...own];
  const factor = isOnly ? 1 : all / left;
  return own.map((backend) => ({ ...backend, weight: backend.isReady ? Math.round(backend.weight * factor) : 0 }));
}

export interface Present extends Backends {
  /** After how many milliseconds the backends change by themselves. */
  changesInMs?: number;
  /** Backends that get requests when they have answered through the gateway. Until then their weight is 0. */
  entering: DestinationBackend[];
  /** `uid` of each route, or half, of which a destination waits for its requests. */
  awaited: ReadonlySet<string>;
}

/**
 * Leaves out destinations without ready instances while others have some, and those that the gateway may not reach yet: it can load a route before it
 * knows the addresses of a Service. A process that waits for its weights does not see them in the route until they are there. If no destination has
 * instances, all keep their shares, and the gateway answers for them.
 * @param live the HTTPRoute as it is now
 * @param answered names of the Services that have answered a request through this route; undefined when the gateway cannot be asked. A Service
 * without ready instances is removed from it.
 */
export function present(context: Context, all: Backends, live: Stored<HttpRoute> | undefined, answered?: Set<string>): Present {
  const named = new Set(mainBackends(live).map(({ name }) => name));
  const groups = byDestination(all.backends).map((own) => look(context, own, { named, answered }));
  const shared = groups.filter(({ backends }) => backends.some(hasShare));
  const isOnly = shared.length < 2;
  const best = (['stays', 'enters'] as const).find((presence) => shared.some((one) => one.presence === presence));
  const isIn = ({ presence }: Destination): boolean => best === undefined || presence === 'stays' || presence === best;
  const out = shared.filter((destination) => !isIn(destination));
  const serving = { ...all.serving };
  for (const { backends, presence } of out)
    for (const { process, route } of backends) {
      delete serving[process];
      // A half of a shared route is taken over when its destinations get requests.
      if (presence === 'enters') delete serving[route];
    }
  const backends = groups.flatMap((destination) =>
    out.includes(destination)
      ? destination.backends.map((backend) => ({ ...backend, weight: 0 }))
      : withinDestination(destination.backends, isOnly),
  );
  const waiting = out.filter(({ presence }) => presence === 'enters');
  const awaited = new Set(waiting.flatMap((one) => one.backends.map(({ route }) => route)));
  const entering = waiting.flatMap(({ asked = [] }) => asked);
  const changesInMs = waiting.length === 0 ? undefined : Math.min(...waiting.map(({ entersIn }) => entersIn));
  return { ...all, backends, serving, entering, awaited, ...defined({ changesInMs }) };
}
