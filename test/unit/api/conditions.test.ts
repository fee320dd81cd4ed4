import { expect, test } from 'vitest';
import { isReady, removeCondition, setCondition } from '../../../src/lib/api/conditions.ts';
import type { Condition } from '../../../src/lib/api/object.ts';

const ready: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Ready',
  message: '',
  observedGeneration: 2,
  lastTransitionTime: '2026-01-01T00:00:00Z',
};
const later = new Date('2026-02-01T10:00:00.500Z');

test('a condition of an older generation does not count', () => {
  expect(isReady({ metadata: { generation: 3 }, status: { conditions: [ready] } })).toBe(false);
  expect(isReady({ metadata: { generation: 2 }, status: { conditions: [ready] } })).toBe(true);
});

test('an object without status is not ready', () => {
  expect(isReady({ metadata: { generation: 1 } })).toBe(false);
});

test('the transition time stays if the status stays', () => {
  const [changed] = setCondition([ready], { ...ready, message: 'still', observedGeneration: 3 }, later);
  expect(changed).toEqual({ ...ready, message: 'still', observedGeneration: 3 });
});

test('the transition time changes with the status, in whole seconds', () => {
  const [changed] = setCondition([ready], { ...ready, status: 'False', reason: 'Unknown' }, later);
  expect(changed?.lastTransitionTime).toBe('2026-02-01T10:00:00Z');
});

test('setting a condition changes neither the other conditions nor the given list', () => {
  const before = Object.freeze([ready]);
  const after = setCondition(before, { type: 'Claimed', status: 'True', reason: 'Claimed', message: '' }, later);
  expect(after.map((condition) => condition.type)).toEqual(['Ready', 'Claimed']);
  expect(removeCondition(after, 'Ready').map((condition) => condition.type)).toEqual(['Claimed']);
});
