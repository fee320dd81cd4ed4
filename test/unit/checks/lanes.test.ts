import { afterEach, expect, it, vi } from 'vitest';
import { laneCount, laneOf, lanesEnv } from '../../support/lanes.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

it('each worker of the test runner has a cluster of its own', () => {
  for (const [name, value] of Object.entries(lanesEnv([{ KUBECONFIG: 'a' }, { KUBECONFIG: 'b' }]))) vi.stubEnv(name, value);
  expect([laneCount(), laneOf(1), laneOf(2)]).toEqual([2, { KUBECONFIG: 'a' }, { KUBECONFIG: 'b' }]);
});

it('without clusters one file runs at a time, and finds no variables of a cluster', () => {
  expect([laneCount(), laneOf(1)]).toEqual([1, {}]);
});
