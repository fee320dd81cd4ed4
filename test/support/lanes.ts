// The cluster ring runs two files at a time, each lane on a cluster of its own: files change, fill and restart a cluster, and most of the time
// they wait for it.

/** The session, a file of the ring that `npm run session` runs alone. */
export const sessionFile = 'test/session/session.test.ts';

/** Held by a file that starts clusters of its own, because one of them compares the firewall of the host before and after. */
export const startsClustersLock = 'starts-clusters';

const variable = 'KF_TEST_CLUSTERS';

/** The variables of each lane's cluster, as one variable for the test runner. */
export function lanesEnv(envs: readonly Record<string, string>[]): Record<string, string> {
  return { [variable]: JSON.stringify(envs) };
}

function readLanes(): Record<string, string>[] {
  return JSON.parse(process.env[variable] ?? '[]') as Record<string, string>[];
}

/** How many files of the ring run at a time. */
export function laneCount(): number {
  return Math.max(1, readLanes().length);
}

/** The variables of the cluster for a worker of the test runner. @param worker its number, from 1 */
export function laneOf(worker: number): Record<string, string> {
  return readLanes()[worker - 1] ?? {};
}
