// How often a missing Secret with credentials is looked for.

import { expect, test } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { CFServiceInstance } from '../../../src/lib/api/types.generated.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { missingSecretRetryMs } from '../../../src/controller/services/instance.ts';
import { asStored } from '../../support/stored.ts';

const now = Date.parse('2026-11-26T12:00:00Z');

function instance(name: string, ageMs: number): ReturnType<typeof asStored<CFServiceInstance>> {
  return asStored({
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: kinds.serviceInstance.kind,
    metadata: { name, creationTimestamp: new Date(now - ageMs).toISOString() },
    spec: { displayName: name, secretName: `${name}-credentials`, type: 'user-provided' },
  } as CFServiceInstance);
}

function contextWith(howMany: number): Context {
  const store = new Store<CFServiceInstance>();
  for (let n = 0; n < howMany; n += 1) store.put(instance(`db-${String(n)}`, 60_000));
  return { now: () => now, stores: { of: () => store, has: () => true } } as unknown as Context;
}

test.each([
  ['at once for a new instance, however many there are', 1_000, 1_000, 150],
  ['less often for a new one that has waited for some time', 1_000, 8_000, 1_000],
  ['every 2 s for one that waits longer', 1, 60_000, 2_000],
  ['not more than 20 times in a second for all together', 1_000, 60_000, 50_000],
])('%s', (_, howMany, ageMs, expected) => {
  expect(missingSecretRetryMs(contextWith(howMany), instance('db', ageMs))).toBe(expected);
});
