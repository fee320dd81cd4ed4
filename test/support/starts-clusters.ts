// Files that start clusters themselves run one after the other: one of them compares the firewall of the host before and after.

import { afterAll, beforeAll } from 'vitest';
import { withLock } from '../../tools/cluster/state.ts';
import { startsClustersLock } from './lanes.ts';

/** As long as all tests of another such file may take. */
const longest = 1_800_000;

/** Call it first in the file: the lock is then held until all other hooks of the file have run. */
export function startsClusters(): void {
  let release = (): void => undefined;
  let held = Promise.resolve();
  beforeAll(
    () =>
      new Promise<void>((resolve, reject) => {
        held = withLock(startsClustersLock, () => new Promise<void>((done) => ((release = done), resolve())));
        held.catch(reject);
      }),
    longest,
  );
  afterAll(async () => {
    release();
    await held;
  });
}
