// The Secret with the key of the registry's gate.

import { expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { ensureRegistryKey } from '../../../src/lib/ops/registry/key.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const metadata = { name: 'kf-registry-key', namespace: 'kf-system' };

test('is created once: two setups at the same time have the same key', async () => {
  const cluster = new MemoryCluster();
  const [one, two] = await Promise.all([ensureRegistryKey(cluster), ensureRegistryKey(cluster)]);
  expect(one).toEqual(two);
  expect(one).toHaveLength(64);
  expect(await ensureRegistryKey(cluster)).toEqual(one);
});

test.each([{}, { key: '' }])('is not guessed if the Secret has none: %j', async (data) => {
  const cluster = new MemoryCluster();
  await cluster.create(secretType, { metadata, data });
  await expect(ensureRegistryKey(cluster)).rejects.toThrow("The Secret 'kf-system/kf-registry-key' has no 'key'.");
});
