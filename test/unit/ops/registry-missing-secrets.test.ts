// The message if a Secret of the registry is missing.

import { expect, test } from 'vitest';
import { readPushCredential } from '../../../src/lib/ops/registry/access.ts';
import { readRegistryKeys } from '../../../src/lib/ops/registry/gate.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const info = { registry: { pushHost: 'registry.kf-system.svc:5000' }, controller: { namespace: 'kf-system' } } as Parameters<
  typeof readRegistryKeys
>[1];

test('the message about a missing push credential of a space names the Secret', async () => {
  await expect(readPushCredential(new MemoryCluster(), 's-1')).rejects.toThrow(
    "The space has no credential for the registry yet (Secret 'kf-registry-push').",
  );
});

test('the message about a missing key of the registry names the Secret', async () => {
  await expect(readRegistryKeys(new MemoryCluster(), info)).rejects.toThrow(
    "The key of the registry is missing (Secret 'kf-system/kf-registry-key').",
  );
});
