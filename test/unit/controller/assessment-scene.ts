// The view of one process from which a version is assessed.

import type { Instance, Instances, Problem } from '../../../src/controller/instances/instances.ts';
import { Assessor, type Assessment, type View } from '../../../src/controller/rollout/assessment.ts';
import type { Proof } from '../../../src/controller/rollout/traffic-probe.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import type { AppWorkload, DeploymentStatus } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

export const start = 1_700_000_000_000;
export const hash = 'aaaaaaaaaa';
export const proven: Proof = { state: 'proven', through: 'gateway' };
export const awaited: Proof = { state: 'awaited', message: '' };

export const crashed: Problem = {
  reason: 'Crashed',
  cause: 'exit-code',
  message: 'It ended with exit code 1.',
  final: true,
  container: 'application',
  exitCode: 1,
};
export const unhealthy: Problem = {
  reason: 'HealthCheckFailed',
  cause: 'start-timeout',
  message: 'It did not answer on port 8080 within 60 s.',
  final: true,
  byTime: true,
};
export const unschedulable: Problem = {
  reason: 'Unschedulable',
  cause: 'no-room',
  message: 'No node can run the instance.',
  final: true,
  byTime: true,
};
export const quota: Problem = { reason: 'QuotaExceeded', cause: 'quota', message: 'The quota of the space is used up.', final: true };

export const workload = asStored({
  metadata: { name: `p-${hash}`, namespace: 'ns', uid: 'w-uid' },
  spec: {
    GUID: 'p',
    version: '0',
    instances: 1,
    image: `registry.example/ns/a-droplets@sha256:${'0'.repeat(64)}`,
    processType: 'web',
    ports: [8080],
    startupProbe: { failureThreshold: 60, httpGet: { path: '/health', port: 8080 } },
    resources: { limits: { memory: '128Mi' } },
  },
} as unknown as AppWorkload);

export function instance(more: Partial<Instance> = {}): Instance {
  return {
    index: 0, generation: hash, pod: 'pod-0', uid: 'pod-uid', state: 'STARTING', ready: false, ending: false, created: start, restarts: 0,
    startedAt: start, ...more,
  }; // prettier-ignore
}

export interface Given {
  instances?: Instance[];
  desired?: number;
  /** The earlier status. */
  before?: Partial<DeploymentStatus>;
  seam?: Partial<Instances>;
  /** Milliseconds since the start. */
  at?: number;
}

interface Seen {
  view: View;
  events: { reason: string; message: string }[];
  /** The earliest requested check. */
  soonest: () => number | undefined;
}

export function viewOf({ instances = [], desired = 1, before, seam = {}, at = 60_000 }: Given): Seen {
  const events: Seen['events'] = [];
  const context = {
    now: () => start + at,
    event: (_type: unknown, _object: unknown, { reason, message }: { reason: string; message: string }) => events.push({ reason, message }),
  } as unknown as Context;
  const state = before?.phase === 'Failed' ? ('Failed' as const) : ('Current' as const);
  const served = before?.phase === 'Serving' ? { served: true } : {};
  const generations = [{ process: 'web', hash, state, instances: 1, ready: 1, uid: 'w-uid', ...served }];
  const rollout = before === undefined ? undefined : { id: 'deploy', phase: 'Starting' as const, generations, ...before };
  const view = {
    context,
    app: { metadata: { name: 'a', namespace: 'ns' } },
    process: { metadata: { name: 'p', namespace: 'ns' }, spec: { processType: 'web' }, status: { rollout } },
    target: workload,
    hash,
    workloads: [workload],
    instances,
    desired,
    routed: true,
    deployId: 'deploy',
    lookAgain: [] as number[],
    seam: {
      of: () => instances,
      missing: () => Promise.resolve(undefined),
      lastCheck: () => Promise.resolve(undefined),
      problemNow: (_: string, { problem }: Instance) => Promise.resolve(problem),
      steadySince: () => 0,
      logEnds: () => Promise.resolve({ head: [], omitted: 0, tail: [] }),
      ...seam,
    },
  } as unknown as View;
  return { view, events, soonest: () => (view.lookAgain.length === 0 ? undefined : Math.min(...view.lookAgain)) };
}

export const assess = (given: Given, proof: Proof = awaited): Promise<Assessment> => new Assessor().assess(viewOf(given).view, proof);
