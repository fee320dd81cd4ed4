// An instance that gets no node for a reason that is none of the nodes: the scheduler has not looked at them, or it failed.

import { expect, test } from 'vitest';
import { problemOf } from '../../../src/controller/instances/pod-state.ts';

const now = Date.parse('2026-01-01T00:01:00Z');

test.each([
  ['SchedulingGated', 'Scheduling is blocked due to non-empty scheduling gates'],
  ['SchedulerError', 'running PreFilter plugin "NodeResourcesFit": timeout'],
])('an instance without a node, for the reason %s, is not said to lack room', (reason, message) => {
  const scheduled = { type: 'PodScheduled', status: 'False' as const, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' };
  const pod = {
    metadata: { name: 'p', namespace: 'ns', uid: 'u', resourceVersion: '1' },
    status: { phase: 'Pending' as const, conditions: [scheduled] },
  };
  const expectations = { startSeconds: 60, port: 8080 };
  const facts = { now, expectations, firstSeen: () => now, wasSeen: () => false, nodesInMotion: () => ({ away: ['node-1'], until: 0 }) };
  expect(problemOf(pod, facts)).toMatchObject({ cause: 'unknown', message: `The instance gets no node: ${message}`, final: true });
});
