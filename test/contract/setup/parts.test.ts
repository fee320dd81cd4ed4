// Parts are applied in their order and become ready in parallel; a failed one ends the waits of the others.

import { expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { applyParts, proveParts, type PlannedPart } from '../../../src/lib/ops/install/installation.ts';
import { inOrder, type Part, type SetupRun } from '../../../src/lib/ops/install/part.ts';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import type { OpEvent } from '../../../src/lib/events.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

function runIn(cluster: MemoryCluster, told: string[] = []): SetupRun {
  const report = (event: OpEvent): void => void told.push(...(event.type === 'install-part' ? [event.part] : []));
  return { cluster, report, plan: resolvePlan({}, '1.0.0', 'hostport'), asked: {}, changes: () => [] };
}

function planned(part: Partial<Part> & { name: string }): PlannedPart {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: part.name, namespace: 'kf-system' } };
  const whole: Part = { requires: [], objects: () => [object], ...part };
  return { part: whole, changes: [{ action: 'create', object }] };
}

const ordered = (...all: PlannedPart[]): PlannedPart[] =>
  inOrder(all.map(({ part }) => part)).flatMap((part) => all.filter((one) => one.part === part));
const isThere = (cluster: MemoryCluster, name: string): boolean => cluster.peek(configMapType, 'kf-system', name) !== undefined;

test('a part waits for those that it requires, and others are applied meanwhile', async () => {
  const cluster = new MemoryCluster();
  const told: string[] = [];
  const slow = Promise.withResolvers<void>();
  const done = applyParts(
    runIn(cluster, told),
    ordered(
      planned({ name: 'controller', after: () => slow.promise }),
      planned({ name: 'gateway' }),
      planned({ name: 'org', requires: ['controller', 'gateway'] }),
    ),
  );
  await expect.poll(() => isThere(cluster, 'gateway')).toBe(true);
  expect(isThere(cluster, 'org')).toBe(false);
  slow.resolve();
  await done;
  expect(isThere(cluster, 'org')).toBe(true);
  expect(told).toEqual(['controller', 'gateway', 'org']);
});

test('if a part does not get ready nothing that requires it is applied, and the waits of others end', async () => {
  const cluster = new MemoryCluster();
  let ended: unknown;
  const waits = ({ signal }: SetupRun): Promise<void> =>
    new Promise((_, reject) => signal?.addEventListener('abort', () => reject((ended = signal.reason) as Error)));
  const parts = ordered(
    planned({ name: 'controller', after: waits }),
    planned({ name: 'registry', after: () => Promise.reject(new Error('no volume')) }),
    planned({ name: 'space', requires: ['registry'] }),
  );
  await expect(applyParts(runIn(cluster), parts)).rejects.toThrow('no volume');
  expect([isThere(cluster, 'registry'), isThere(cluster, 'space')]).toEqual([true, false]);
  expect(String(ended)).toContain('no volume');
});

test('a check starts with its part, and its result is read when all are ready', async () => {
  const cluster = new MemoryCluster();
  const seen: string[] = [];
  const prove = (): (() => Promise<{ reach: { url: string; reachable: boolean } }>) => {
    seen.push(`begun, org: ${String(isThere(cluster, 'org'))}`);
    return () => {
      seen.push(`asked, org: ${String(isThere(cluster, 'org'))}`);
      return Promise.resolve({ reach: { url: 'http://x', reachable: true } });
    };
  };
  const network = { policies: 'off' as const };
  const parts = ordered(
    planned({ name: 'gateway', prove }),
    planned({ name: 'network-check', prove: () => () => Promise.resolve({ network }) }),
    planned({ name: 'org', requires: ['gateway'] }),
  );
  expect(await proveParts(await applyParts(runIn(cluster), parts))).toEqual({ network, reach: { url: 'http://x', reachable: true } });
  expect(seen).toEqual(['begun, org: false', 'asked, org: true']);
});
