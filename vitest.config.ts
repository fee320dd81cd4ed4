import { defineConfig } from 'vitest/config';

/** One project per ring (docs/internals.md); `npm run test:<ring>` picks one. */
export default defineConfig({
  test: {
    disableConsoleIntercept: true,
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 20_000 } },
      { extends: true, test: { name: 'contract', include: ['test/contract/**/*.test.ts'], testTimeout: 60_000 } },
      {
        extends: true,
        test: { name: 'api', include: ['test/api/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false },
      },
      {
        extends: true,
        test: {
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
