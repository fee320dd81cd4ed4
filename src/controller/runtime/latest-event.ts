// Events that others wrote about an object. Some causes are in an Event only: the objects themselves do not name them.

import { eventType, type KubeEvent } from '../../lib/api/core.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { Context } from './reconciler.ts';

/** Milliseconds by the API server's clock at which an Event was repeated last; 0 when it has no time. */
export function eventTime({ series, lastTimestamp, eventTime: first, metadata }: Stored<KubeEvent>): number {
  return Date.parse(series?.lastObservedTime ?? lastTimestamp ?? first ?? metadata.creationTimestamp ?? '') || 0;
}

/**
 * The newest Event with this reason about the object; the API server lists Events by name, not by time. With `before` (milliseconds of the wall
 * clock) an Event that was last repeated before that time is preferred to later ones.
 */
export async function latestEvent(
  context: Context,
  object: { ns: string; uid: string },
  reason: string,
  before = Infinity,
): Promise<Stored<KubeEvent> | undefined> {
  const fieldSelector = `involvedObject.uid=${object.uid}`;
  const { items } = await context.cluster.list(eventType, { ns: object.ns, fieldSelector, signal: context.signal });
  const byTime = items.filter((event) => event.reason === reason).toSorted((a, b) => eventTime(a) - eventTime(b));
  return byTime.findLast((event) => eventTime(event) < before) ?? byTime.at(-1);
}
