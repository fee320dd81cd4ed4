// What is known of the life of a container that is followed.

import { defined } from '../defined.ts';
import { timeOf, type LogGap } from './entry.ts';
import { LogPosition } from './position.ts';
import type { ReadOutcome } from './read.ts';
import { Rotations } from './rotation.ts';
import type { ContainerLife } from './targets.ts';

export interface Life extends ContainerLife {
  position: LogPosition;
  rotations: Rotations;
  /** The position before the last ended connection. */
  before: LogPosition;
  /** Read to its end after the container had ended. */
  isComplete: boolean;
  /** The last connection found nothing more and ended normally: the kubelet does that only when the container has ended. */
  endedQuietly: boolean;
  /** How the last connection that the kubelet accepted ended; undefined before the first. */
  lastEnd?: ReadOutcome['how'];
  /** That connection left a text without a newline: it is read without `follow` when the container has ended. */
  hasRest: boolean;
}

/** A life of which nothing was read. @param position where its reading begins */
export const lifeFrom = (seen: ContainerLife, position: LogPosition): Life => ({
  ...seen,
  position,
  rotations: new Rotations(),
  before: new LogPosition(),
  isComplete: false,
  endedQuietly: false,
  hasRest: false,
});

/**
 * The gap after the last line if the reading of a container ends now; undefined while it runs, and when it was read to its end.
 * @param last its last life @param read the one that is read
 */
export function unreadRest(last: ContainerLife | undefined | 'unknown', read?: Life): LogGap | undefined {
  if (last === undefined || last === 'unknown' || !last.isOver) return undefined;
  const life = read?.id === last.id ? read : undefined;
  if (life?.isComplete === true || life?.endedQuietly === true) return undefined;
  const began = last.startedAt && timeOf(new Date(last.startedAt));
  return { ...defined({ from: life?.position.last ?? began }), reason: 'not read in time' };
}
