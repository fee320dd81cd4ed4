// The evidence of a failure: Warnings of Kubernetes about its objects.

import { eventType, type KubeEvent } from '../../api/core.ts';
import type { WhyEvent } from '../../api/results.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';

/** A screen has room for no more. */
const mostEvents = 8;

const timeOf = (event: KubeEvent): string =>
  event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '';

function shown(event: KubeEvent): WhyEvent {
  const { kind = '', name = '' } = event.involvedObject;
  return { time: timeOf(event), object: `${kind} ${name}`, reason: event.reason ?? '', message: (event.message ?? '').trim() };
}

/** The names of objects. */
type Names = Pick<ReadonlySet<string>, 'has'>;

/** The Warnings about the named objects, the newest first; none when the user may not read Events. The cluster keeps them for an hour. */
export async function allWarningsAbout({ cluster, space, signal }: SpaceSession, names: Names): Promise<WhyEvent[]> {
  try {
    const { items } = await cluster.list(eventType, { ns: space.guid, fieldSelector: 'type=Warning', signal });
    return items
      .filter(({ type, involvedObject }) => type === 'Warning' && names.has(involvedObject.name ?? ''))
      .map(shown)
      .toSorted((a, b) => Date.parse(b.time) - Date.parse(a.time));
  } catch (error) {
    if (isForbidden(error)) return [];
    throw error;
  }
}

/** The newest of them, as many as are shown. */
export async function warningsAbout(session: SpaceSession, names: Names): Promise<WhyEvent[]> {
  return (await allWarningsAbout(session, names)).slice(0, mostEvents);
}
