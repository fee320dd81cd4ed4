// Errors in the controller's log: nothing for expected waits, the message for answers of others, the stack for bugs of kf.

import { afterEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { watch, type Reconciler } from '../../../src/controller/runtime/reconciler.ts';
import { namespaceType, serviceType } from '../../../src/lib/api/core.ts';
import { errorFromAnswer } from '../../../src/lib/kube/errors.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';

interface Line {
  level: string;
  message: string;
  error?: { name: string; message: string; stack?: string };
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const refusal = (ns: string): Error =>
  errorFromAnswer(
    403,
    JSON.stringify({
      kind: 'Status',
      reason: 'Forbidden',
      message: `leases is forbidden: User "controller" cannot list resource "leases" in API group "coordination.k8s.io" in the namespace "${ns}"`,
    }),
  );
const terminating = errorFromAnswer(
  403,
  JSON.stringify({
    kind: 'Status',
    reason: 'Forbidden',
    message: 'secrets "x" is forbidden: unable to create new content in namespace ns because it is being terminated',
    details: { causes: [{ reason: 'NamespaceTerminating', message: 'namespace ns is being terminated' }] },
  }),
);

/** Runs a reconciler that fails three times with `error`, in a namespace made `ageMs` ago; returns the log after its success. */
async function logOf(error: Error, ageMs: number): Promise<Line[]> {
  const cluster = new MemoryCluster();
  await cluster.create(namespaceType, { metadata: { name: 'ns', labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } });
  const creationTimestamp = new Date(Date.now() - ageMs).toISOString();
  await cluster.mergePatch(namespaceType, undefined, 'ns', { metadata: { creationTimestamp } });
  await cluster.create(serviceType, { metadata: { name: 'a', namespace: 'ns' } });
  let failures = 0;
  let succeeded = false;
  const reconciler: Reconciler = {
    name: 'test',
    watches: [watch(serviceType)],
    reads: [namespaceType],
    reconcile: () => {
      failures += 1;
      if (failures <= 3) return Promise.reject(error);
      succeeded = true;
      return Promise.resolve(undefined);
    },
  };
  const lines: Line[] = [];
  const manager = new Manager({
    cluster,
    sources: [],
    reconcilers: [reconciler],
    leader: { ns: 'kf-system', name: 'l', identity: 'one' },
    rootNamespace: 'cf',
    log: createLogger('info', (line) => void lines.push(JSON.parse(line) as Line)),
  });
  const aborter = new AbortController();
  const running = manager.run(aborter.signal);
  stops.push(async () => {
    aborter.abort();
    await running;
  });
  await vi.waitFor(() => expect(succeeded).toBe(true), { timeout: patienceMs, interval: 10 });
  return lines.filter(({ level }) => level === 'warn' || level === 'error');
}

test('a right that is not in force yet in a new namespace is not logged', async () => {
  expect(await logOf(refusal('ns'), 1_000)).toEqual([]);
});

test('a refusal in a namespace that is being deleted is not logged', async () => {
  expect(await logOf(terminating, 3_600_000)).toEqual([]);
});

test('a right that is missing for long is logged with a message, without a stack', async () => {
  const lines = await logOf(refusal('ns'), 3_600_000);
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatchObject({ level: 'warn', message: 'reconcile failed', error: { name: 'KubeError' } });
  expect(lines[0]?.error?.message).toContain('may not list "leases.coordination.k8s.io" in the namespace "ns"');
  expect(lines[0]?.error?.stack).toBeUndefined();
});

test('a bug of kf is logged with its stack', async () => {
  const lines = await logOf(new TypeError('x is not a function'), 1_000);
  expect(lines[0]?.error?.stack).toContain('run-log.test.ts');
});
