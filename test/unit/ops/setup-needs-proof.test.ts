import { expect, test } from 'vitest';
import type { ChangeAction, PlannedChange } from '../../../src/lib/ops/install/applier.ts';
import { needsProof } from '../../../src/lib/ops/install/setup.ts';

const stage = (...actions: ChangeAction[]): PlannedChange[] => actions.map((action) => ({ action, object: { metadata: {} } }));

test('a registry that is new or changed is proven, one that was proven before is not', () => {
  expect(needsProof({ registry: stage('create'), programs: stage('create') })).toBe(true);
  expect(needsProof({ registry: stage('unchanged', 'change'), programs: stage('unchanged') })).toBe(true);
  expect(needsProof({ registry: stage('unchanged'), programs: stage('unchanged', 'change') })).toBe(false);
});

test('a setup that ended at the proof is followed by one that proves, not by one that installs over it', () => {
  expect(needsProof({ registry: stage('unchanged'), programs: stage('create', 'create') })).toBe(true);
});
