// How long a command waits until a quota is in force.

import { afterEach, expect, test, vi } from 'vitest';
import { resourceQuotaType } from '../../../src/lib/api/core.ts';
import { annotations, limitsName } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFQuota } from '../../../src/lib/api/types.generated.ts';
import { untilApplied } from '../../../src/lib/ops/tenancy/quota-wait.ts';
import type { Session } from '../../../src/lib/session/session.ts';
import { sleep } from '../../../src/lib/wait.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const quota = { metadata: { name: 'q', generation: 2 }, spec: { displayName: 'small' } } as Stored<CFQuota>;
const why = 'the controller has not applied it yet';

afterEach(() => vi.useRealTimers());

/** Waits for a quota that no controller applies. @returns how long, in seconds, and what is said then */
async function waited(answerMs: number): Promise<[seconds: number, unapplied: unknown]> {
  vi.useFakeTimers();
  const cluster = new MemoryCluster();
  const metadata = { namespace: 'space', name: limitsName, annotations: { [annotations.defaultLimits]: '{}' } };
  await cluster.create(resourceQuotaType, { metadata, spec: { hard: {} } });
  if (answerMs > 0) cluster.intercept = () => sleep(answerMs);
  const session = { cluster, signal: new AbortController().signal, report: () => undefined } as unknown as Session;
  const start = performance.now();
  const waiting = untilApplied(session, [{ name: 'dev', guid: 'space' }], 'space', quota).then((unapplied): [number, unknown] => [
    (performance.now() - start) / 1_000,
    unapplied,
  ]);
  await vi.advanceTimersByTimeAsync(600_000);
  return waiting;
}

test('a quota that is not applied is waited for 40 s', async () => {
  expect(await waited(0)).toEqual([40, [{ space: 'dev', why }]]);
});

test('the time that an API server takes to answer counts too', async () => {
  const [seconds, unapplied] = await waited(4_500);
  expect(unapplied).toEqual([{ space: 'dev', why }]);
  expect(seconds).toBeLessThanOrEqual(45);
});
