import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { laneCount, sessionFile } from './test/support/lanes.ts';
import { RingOrder } from './test/support/ring-order.ts';

/**
 * How long tests of a ring wait for what they name (`until`, `expect.poll`): far longer than it takes, since a busy machine is no failure, and
 * shorter than a test may take, so that a failure says what was awaited.
 */
function patience(milliseconds: number): { env: Record<string, string>; expect: { poll: { timeout: number; interval: number } } } {
  return { env: { KF_TEST_PATIENCE_MS: String(milliseconds) }, expect: { poll: { timeout: milliseconds, interval: 20 } } };
}

/*
 * Without isolation the files of a worker share its modules: half of the processor time of tests in the runner's own process went into loading them again
 * for each file (docs/decisions/0093). So a file leaves modules, environment and timers as it found them.
 */
/** One project per ring (docs/internals.md); `npm run test:<ring>` picks one. */
export default defineConfig({
  test: {
    disableConsoleIntercept: true,
    // The summary of all rings prints an error's message and no difference: without this it would say `expected [ 'a', …(14) ]`.
    chaiConfig: { truncateThreshold: 2000 },
    // One worker less than cores is the runner's own choice; on two cores the contract ring, which mostly waits, takes half the time with two.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: RingOrder },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          isolate: false,
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          ...patience(40_000),
        },
      },
      {
        extends: true,
        test: {
          name: 'contract',
          isolate: false,
          include: ['test/contract/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          ...patience(60_000),
        },
      },
      {
        extends: true,
        test: {
          name: 'api',
          include: ['test/api/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
          fileParallelism: false,
          ...patience(120_000),
        },
      },
      {
        extends: true,
        test: {
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts', sessionFile],
          setupFiles: ['test/support/lane.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          maxWorkers: laneCount(),
          ...patience(120_000),
        },
      },
    ],
  },
});
