// The condition that ends `--no-wait`.

import { expect, test } from 'vitest';
import type { DeploymentStatus, GenerationStatus } from '../../../src/lib/api/types.generated.ts';
import { hasFirstInstance } from '../../../src/lib/ops/apps/first-instance.ts';

const old: GenerationStatus = { process: 'web', hash: 'a', state: 'Old', instances: 3, ready: 3 };
const next = (ready: number, more: Partial<GenerationStatus> = {}): GenerationStatus => ({
  ...{ process: 'web', hash: 'b', state: 'Current', instances: 1, ready },
  ...more,
});
const status = (phase: DeploymentStatus['phase'], more: Partial<DeploymentStatus>): DeploymentStatus => ({
  ...{ id: '1', phase, process: 'web' },
  ...more,
});

test.each<[string, boolean, DeploymentStatus]>([
  ['an instance that starts', false, status('Starting', { reason: 'Instances', generations: [old, next(0)] })],
  ['an instance that is ready', true, status('Starting', { reason: 'Instances', generations: [old, next(1)] })],
  ['one whose first answer is awaited', false, status('Starting', { reason: 'Serving', generations: [old, next(1)] })],
  ['one beside others that fail their check', false, status('Starting', { reason: 'HealthCheckFailed', generations: [old, next(1)] })],
  ['one that has answered', true, status('Starting', { reason: 'HealthCheckFailed', generations: [old, next(1, { verified: true })] })],
  ['a process that has not looked at the change', false, status('Pending', { reason: 'Reconciling', generations: [next(1)] })],
  ['a change that cannot begin', false, status('Pending', { reason: 'VcapServicesNotWritten', generations: [next(1)] })],
  ['a worker that lags behind', true, status('Pending', { process: 'worker', generations: [next(1, { verified: true })] })],
  [
    'a worker that lags behind a web without routes',
    true,
    status('Pending', { process: 'worker', generations: [next(1, { served: true })] }),
  ],
  ['a worker that lags behind a web that has not answered', false, status('Pending', { process: 'worker', generations: [next(1)] })],
  ['a worker that lags behind a web that starts', false, status('Pending', { process: 'worker', generations: [next(0)] })],
  ['an app without instances', true, status('Serving', {})],
])('%s: enough for --no-wait is %j', (_case, enough, deployment) => {
  expect(hasFirstInstance(deployment)).toBe(enough);
});
