// What is known of the life of a container that is followed.

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
