// What fails the benches of many pushes and of a deletion: commands that failed, and a deletion that lasts without a word.

import { expect, test } from 'vitest';
import { faultsOfPushes } from '../../bench/concurrent-pushes.ts';
import { faultsOfDeletion } from '../../bench/scale.ts';

test('each push that failed is a fault, with its end', () => {
  const good = { code: 0, stderr: 'a warning' };
  expect(faultsOfPushes([good, good])).toEqual([]);
  expect(faultsOfPushes([good, { code: 1, stderr: 'No room.\nFAILED\n' }])).toEqual(['1 of 2 pushes failed: 1 No room.']);
});

const ran = { code: 0, stdout: "Waiting: 'bench-stopped' is being deleted\nOK\n", stderr: '', milliseconds: 59_000 };

test.each([
  ['that ended in time', {}],
  [
    'that lasted, and said what blocked it',
    { milliseconds: 90_000, stdout: "Waiting: Pod 'x' has the finalizer 'example.org/hold'.\nOK\n" },
  ],
  [
    'that has not ended, and says what blocks it',
    { code: 1, milliseconds: 300_000, stderr: "Space 'x' is still being deleted: still to go: pods." },
  ],
])('a deletion %s has no fault', (_what, more) => {
  expect(faultsOfDeletion({ ...ran, ...more }, '')).toEqual([]);
});

test.each([
  ['whose namespace is left', {}, 'namespace/x', ['the namespace of the deleted space is still there']],
  [
    'that lasted, and named nothing',
    { milliseconds: 61_000, stdout: 'Waiting: its contents are being removed.\nOK\n' },
    '',
    ['the deletion ended with 0 after 61.0 s, and nothing was named that blocks it'],
  ],
  [
    'that failed, and named nothing',
    { code: 1, stderr: "Space 'x' is marked for deletion, but no controller has taken it up." },
    'namespace/x',
    ['the deletion ended with 1 after 59.0 s, and nothing was named that blocks it'],
  ],
])('a deletion %s is a fault', (_what, more, left, faults) => {
  expect(faultsOfDeletion({ ...ran, ...more }, left)).toEqual(faults);
});
