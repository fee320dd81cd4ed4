import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFOrg } from '../../../src/lib/api/types.generated.ts';
import { KfError } from '../../../src/lib/errors.ts';
import { waitForController, type Written } from '../../../src/lib/ops/controller-wait.ts';
import type { OpEvent } from '../../../src/lib/events.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

let cluster: MemoryCluster;
let org: Stored<CFOrg>;
let events: OpEvent[];

beforeEach(async () => {
  vi.useFakeTimers();
  cluster = new MemoryCluster();
  org = await cluster.create(kinds.org, { metadata: { name: 'org', namespace: 'cf' }, spec: { displayName: 'shop' } });
  events = [];
});
afterEach(() => void vi.useRealTimers());

const isDone = (seen: CFOrg): boolean => seen.metadata.annotations?.['done'] === 'yes';

function wait(options: Partial<Written<CFOrg>> = {}): Promise<CFOrg> {
  const session = { cluster, signal: new AbortController().signal, report: (event: OpEvent) => void events.push(event) };
  const written = { type: kinds.org, object: org, what: "'shop'", ...options };
  return waitForController(session, written, isDone, () => ({ type: 'awaiting-controller' }));
}

it('the wait is reported until the controller has made the change', async () => {
  const waiting = wait();
  await vi.advanceTimersByTimeAsync(100);
  expect(events).toEqual([{ type: 'awaiting-controller' }]);
  await cluster.mergePatch(kinds.org, 'cf', 'org', { metadata: { annotations: { done: 'yes' } } });
  expect((await waiting).metadata.annotations).toEqual({ done: 'yes' });
  expect(events.at(-1)).toEqual({ type: 'done' });
});

it('without a controller the change is reported as accepted after 20 s', async () => {
  const waiting = wait().catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(20_001);
  const error = await waiting;
  expect(error).toMatchObject({
    code: 'accepted',
    message: "'shop' is accepted, but no controller has taken it up; it waits in the cluster.",
  });
  expect(events.at(-1)).toEqual({ type: 'done' });
});

it('a controller that reports what it waits for counts as present, but late', async () => {
  const late = (_last: CFOrg, waitedMs: number): KfError => new KfError('timeout', `not after ${waitedMs} ms`);
  const waiting = wait({ late, patienceMs: 1000 }).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(1001);
  expect(await waiting).toMatchObject({ code: 'timeout', message: 'not after 1000 ms' });
});

it('the wait ends if the object is deleted', async () => {
  const waiting = wait().catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(100);
  await cluster.delete(kinds.org, 'cf', 'org');
  await vi.advanceTimersByTimeAsync(100);
  expect(await waiting).toMatchObject({ code: 'not-found', message: "'shop' was deleted meanwhile." });
});
