// The evidence of a failure: its last lines, and Warnings of Kubernetes about its objects.

import { eventType, type KubeEvent } from '../../api/core.ts';
import type { CauseCode } from '../../api/causes.ts';
import { linesIn, type KeptLines, type Lines } from '../../api/kept-lines.ts';
import type { Stored } from '../../api/object.ts';
import type { WhyDetails, WhyEvent } from '../../api/results.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { logOfFailure } from '../apps/last-lines.ts';

/** A screen has room for no more. */
export const mostEvents = 8;

const timeOf = (event: KubeEvent): string =>
  event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '';

function shown(event: KubeEvent): WhyEvent {
  const { kind = '', name = '' } = event.involvedObject;
  return { time: timeOf(event), object: `${kind} ${name}`, reason: event.reason ?? '', message: (event.message ?? '').trim() };
}

/** What is kept of a build or a task that has ended, and where its lines were read. */
type KeptEnd = KeptLines & { pod?: string; container?: string; logLost?: string };

function linesOr(log: Lines, { logLost }: KeptEnd): Pick<WhyDetails, 'log' | 'logLost'> {
  return log.tail.length > 0 ? { log } : defined({ logLost });
}

/** The last lines that the controller kept of a build or a task, or why there are none. */
export const keptLinesOf = (kept: KeptEnd): Pick<WhyDetails, 'log' | 'logLost'> => linesOr(linesIn(kept), kept);

/** The last lines that the controller kept of a build or a task that failed, otherwise those that can be read now, or why there are none. */
export async function lastLinesOf(
  { cluster, signal }: SpaceSession,
  app: Stored<CFApp>,
  kept: KeptEnd,
  cause?: CauseCode,
): Promise<Pick<WhyDetails, 'log' | 'logLost'>> {
  // The kubelet of a lost node would be waited for until the time limit.
  return cause === 'node-lost' ? keptLinesOf(kept) : linesOr(await logOfFailure(cluster, app, kept, signal), kept);
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
