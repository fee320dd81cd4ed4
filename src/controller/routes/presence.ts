// Which destinations of a route get requests: those with ready instances, as long as there are any.

import { mainBackends, type HttpRoute } from '../../lib/api/gateway.ts';
import type { Stored } from '../../lib/api/object.ts';
import { byDestination } from '../../templates/route-room.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import type { Context } from '../runtime/reconciler.ts';
import type { Backends, DestinationBackend } from './backends.ts';

/** The gateway learns of an instance's address later than the controller. A destination that had no instance gets requests after this time. */
const enterMs = 2_000;

type Presence = 'stays' | 'enters' | 'away';

interface Destination {
  backends: DestinationBackend[];
  presence: Presence;
  /** After so many milliseconds it gets requests. */
  entersIn: number;
}

const hasShare = ({ weight }: DestinationBackend): boolean => weight > 0;

/** When a destination was first seen with a ready instance. The clock of a node may be wrong, and then the time in its pods is too. */
const firstSeen = new Remembered(() => new BoundedMap<string, number>(5_000));

function look(context: Context, own: DestinationBackend[], named: ReadonlySet<string>): Destination {
  const [now, seen, key] = [context.now(), context.memory.of(firstSeen), `${own[0]?.route ?? ''}/${own[0]?.destination ?? ''}`];
  const serving = own.filter((backend) => hasShare(backend) && backend.isReady);
  if (serving.length === 0) {
    seen.delete(key);
    return { backends: own, presence: 'away', entersIn: 0 };
  }
  const first = seen.get(key) ?? now;
  seen.set(key, first);
  const since = Math.min(first, ...serving.map(({ readySince = now }) => readySince));
  const isNamed = serving.some(({ service }) => named.has(service));
  const entersIn = isNamed ? 0 : since + enterMs - now;
  return { backends: own, presence: entersIn > 0 ? 'enters' : 'stays', entersIn };
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

/**
 * Leaves out destinations without ready instances while others have some. A process that waits for its weights does not see them in the route until they
 * are there. If no destination has instances, all keep their shares, and the gateway answers for them.
 * @param live the HTTPRoute as it is now
 * @returns the backends, and after how many milliseconds they change by themselves
 */
export function present(context: Context, all: Backends, live: Stored<HttpRoute> | undefined): Backends & { changesInMs?: number } {
  const named = new Set(mainBackends(live).map(({ name }) => name));
  const groups = byDestination(all.backends).map((own) => look(context, own, named));
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
  const waits = out.filter(({ presence }) => presence === 'enters').map(({ entersIn }) => entersIn);
  return { ...all, backends, serving, ...(waits.length === 0 ? {} : { changesInMs: Math.min(...waits) }) };
}
