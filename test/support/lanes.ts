// The cluster ring runs up to two files at a time, each lane on a cluster of its own: files change, fill and restart a cluster, and often wait for it.

import { spawnSync } from 'node:child_process';

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

/** How long this machine takes to start Node, in milliseconds: the shortest of some starts, since other programs may run beside. */
export function startOfNodeMs(): number {
  const starts = Array.from({ length: 8 }, () => {
    const started = performance.now();
    spawnSync(process.execPath, ['-e', '0']);
    return performance.now() - started;
  });
  return Math.min(...starts);
}

/**
 * How many files to run at a time. Where processes start fast, a file leaves the processor idle for half of its time; where they start slowly, one file
 * keeps it nearly busy, and a second cluster costs more than what is left (docs/decisions/0094).
 */
export const lanesFor = (startMs: number): number => (startMs > 70 ? 1 : 2);

/** How many files of the ring run at a time. */
export function laneCount(): number {
  return Math.max(1, readLanes().length);
}

/** The variables of the cluster for a worker of the test runner. @param worker its number, from 1 */
export function laneOf(worker: number): Record<string, string> {
  return readLanes()[worker - 1] ?? {};
}
