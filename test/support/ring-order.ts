// The order of the files: the session needs a cluster on which nothing else has run, and files that start clusters wait for each other.

import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { sessionFile } from './lanes.ts';

/** How many other files come after each file that starts clusters: so many last longer in the other lanes than it does. */
const between = 5;

/**
 * The session first, then the rest in the given order, but with {@link between} others after each file that starts clusters. Two of these next to each
 * other would leave a lane waiting for as long as the first one takes.
 */
export function ringOrder<T>(files: readonly T[], isSession: (file: T) => boolean, startsClusters: (file: T) => boolean): T[] {
  const rest = files.filter((file) => !isSession(file));
  const starters = rest.filter((file) => startsClusters(file));
  const others = rest.filter((file) => !startsClusters(file));
  const spread = starters.flatMap((file, index) => [file, ...others.slice(index * between, (index + 1) * between)]);
  return [...files.filter((file) => isSession(file)), ...spread, ...others.slice(starters.length * between)];
}

/** The runner's own order, the largest file first, as {@link ringOrder} changes it. */
export class RingOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return ringOrder(
      await super.sort(files),
      ({ moduleId }) => moduleId.endsWith(`/${sessionFile}`),
      ({ moduleId }) => readFileSync(moduleId, 'utf8').includes('\nstartsClusters();\n'),
    );
  }
}
