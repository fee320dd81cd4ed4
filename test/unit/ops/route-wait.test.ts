// How long a command waits until the gateway has loaded a route.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Condition, Stored } from '../../../src/lib/api/object.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { waitUntilProgrammed } from '../../../src/lib/ops/routes/programming.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

let cluster: MemoryCluster;
let route: Stored<CFRoute>;
let outcome: unknown;

beforeEach(async () => {
  vi.useFakeTimers();
  cluster = new MemoryCluster();
  route = await cluster.create(kinds.route, { metadata: { name: 'r', namespace: 'ns' }, spec: { domainRef: { name: 'd' } } });
  outcome = 'it waits';
  const session = { cluster, signal: new AbortController().signal, report: () => undefined } as unknown as SpaceSession;
  waitUntilProgrammed(session, route, 'shop.example.com').then(
    () => (outcome = 'loaded'),
    (error: unknown) => (outcome = error),
  );
});
afterEach(() => void vi.useRealTimers());

/** Reports conditions as the controller does. */
async function say(...said: [type: string, status: Condition['status'], message?: string][]): Promise<void> {
  const seen = { observedGeneration: route.metadata.generation ?? 0 };
  const conditions = said.map(([type, status, message = '']) => ({
    type,
    status,
    reason: 'Any',
    message,
    lastTransitionTime: '',
    ...seen,
  }));
  await cluster.mergePatch(kinds.route, 'ns', 'r', { status: { conditions } }, { subresource: 'status' });
  await vi.advanceTimersByTimeAsync(10);
}

it('a gateway that the controller waits for gets more time than a controller that may be absent', async () => {
  await say(['Ready', 'True']);
  await vi.advanceTimersByTimeAsync(100_000);
  expect(outcome).toBe('it waits');
  await say(['Ready', 'True'], ['Programmed', 'True']);
  expect(outcome).toBe('loaded');
});

it('a controller that reports nothing ends the wait after 20 s', async () => {
  await vi.advanceTimersByTimeAsync(20_001);
  expect(outcome).toMatchObject({ code: 'accepted', message: expect.stringContaining('no controller has taken it up') as string });
});

it('a gateway that loads nothing ends the wait in the end', async () => {
  await say(['Ready', 'True']);
  await vi.advanceTimersByTimeAsync(120_001);
  expect(outcome).toMatchObject({
    code: 'timeout',
    message: expect.stringContaining('the gateway has not loaded it after 120 s') as string,
  });
});

it('what the controller reports as failed ends the wait at once', async () => {
  await say(['Ready', 'True'], ['Programmed', 'False', 'NotAllowedByListeners: no listener']);
  expect(outcome).toMatchObject({
    code: 'failed',
    message: 'The gateway does not take the route shop.example.com: NotAllowedByListeners: no listener',
  });
});
