import { expect, test } from 'vitest';
import type { ChangeAction, PlannedChange } from '../../../src/lib/ops/install/applier.ts';
import { needsProof } from '../../../src/lib/ops/install/parts/registry.ts';

const object = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' } };
const stage = (...actions: ChangeAction[]): PlannedChange[] => actions.map((action) => ({ action, object }));

test('a registry that is new or changed is tested, and one that was tested before is not', () => {
  expect(needsProof({ registry: stage('create'), controller: stage('create') })).toBe(true);
  expect(needsProof({ registry: stage('unchanged', 'change'), controller: stage('unchanged') })).toBe(true);
  expect(needsProof({ registry: stage('unchanged'), controller: stage('unchanged', 'change') })).toBe(false);
});

test('a registry is tested again if the previous setup ended at the test', () => {
  expect(needsProof({ registry: stage('unchanged'), controller: stage('create', 'create') })).toBe(true);
});
