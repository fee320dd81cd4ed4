// Which processes a change leaves as they are, by the status of the change before.

import { expect, test } from 'vitest';
import { isUntouched } from '../../../src/controller/rollout/untouched.ts';
import type { DeploymentStatus, GenerationStatus } from '../../../src/lib/api/types.generated.ts';

type Phase = DeploymentStatus['phase'];

const rollout = (phase: Phase, more: Partial<GenerationStatus>, step?: number): Pick<DeploymentStatus, 'id' | 'phase' | 'step' | 'generations'> => ({
  id: 'before',
  phase,
  ...(step === undefined ? {} : { step }),
  generations: [{ process: 'web', hash: 'a', state: 'Current', instances: 1, ready: 1, uid: 'u', ...more }],
}); // prettier-ignore

test.each<[string, boolean, Parameters<typeof isUntouched>[0]]>([
  ['serves by it', true, rollout('Serving', { served: true })],
  ['goes on with an update to it', true, rollout('Starting', { served: true })],
  ['goes on with an update to it, which has not served', false, rollout('Starting', {})],
  ['pauses with a canary of it', false, rollout('Paused', { served: true }, 1)],
  ['goes on with a canary of it', false, rollout('Starting', { served: true }, 2)],
  ['was left alone, and an instance starts', true, rollout('Starting', { served: true, untouched: true })],
  ['was left alone, and failed', false, rollout('Failed', { served: true, untouched: true, state: 'Failed' })],
  ['was hindered until this change came', true, rollout('Pending', { served: true, untouched: true, state: 'Old' })],
  ['was hindered during a canary of it', false, rollout('Pending', { served: true })],
  ['has returned from it', false, rollout('Failed', { served: true, state: 'Failed' })],
  ['has no status', false, undefined],
])('a process that %s is left alone by the next change: %s', (_, expected, before) => {
  expect(isUntouched(before, 'a', 'present')).toBe(expected);
});

test('within a change the mark of its first look counts', () => {
  expect(isUntouched(rollout('Starting', { untouched: true }), 'a', 'before')).toBe(true);
  expect(isUntouched(rollout('Serving', { served: true }), 'a', 'before')).toBe(false);
});
