// After a stop: the gateway must have loaded the route without the app's instances.

import { expect, test, vi } from 'vitest';
import { httpRouteType, revisionRule } from '../../../src/lib/api/gateway.ts';
import { kinds, reasons } from '../../../src/lib/api/group.ts';
import type { OpEvent } from '../../../src/lib/events.ts';
import { waitUntilUnrouted } from '../../../src/lib/ops/routes/unrouted.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { apiError, MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 'space';
const revision = 'r2';

/** The events of a stop if the controller reports this about the route, whose present form sends nothing to the app. */
async function stopWhile(
  status: 'True' | 'False',
  reason: string,
  message: string,
  { routes = 1, intercept }: { routes?: number; intercept?: MemoryCluster['intercept'] } = {},
): Promise<OpEvent['type'][]> {
  vi.useFakeTimers();
  const cluster = new MemoryCluster();
  const destinations = [{ guid: 'd', appRef: { name: 'a' }, port: 8080, protocol: 'http1', weight: null }];
  const spec = { host: 'web', path: '', domainRef: { name: 'domain', namespace: 'cf' }, destinations };
  const condition = { type: 'Programmed', status, reason, message, lastTransitionTime: '2030-01-01T00:00:00Z' };
  for (let index = 0; index < routes; index += 1) {
    const name = `r${String(index)}`;
    await cluster.create(kinds.route, { metadata: { name, namespace: ns }, spec } as never);
    await cluster.mergePatch(kinds.route, ns, name, { status: { conditions: [condition] } }, { subresource: 'status' });
    await cluster.create(httpRouteType, { metadata: { name, namespace: ns }, spec: { rules: [revisionRule(revision, [])] } });
  }
  const app = await cluster.create(kinds.app, {
    metadata: { name: 'a', namespace: ns },
    spec: { displayName: 'web', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  } as never);
  if (intercept !== undefined) cluster.intercept = intercept;
  const seen: OpEvent['type'][] = [];
  const report = ({ type }: OpEvent): void => void seen.push(type);
  const waiting = waitUntilUnrouted({ cluster, space: { guid: ns, name: ns }, report } as unknown as SpaceSession, app);
  await Promise.all([waiting, vi.advanceTimersByTimeAsync(30_000)]).finally(() => vi.useRealTimers());
  return seen;
}

test('the wait ends when the gateway has loaded the present form', async () => {
  expect(await stopWhile('True', 'Programmed', `The gateway has loaded revision ${revision}.`)).toEqual(['done']);
});

test('the wait ends if another server answers in place of the gateway', async () => {
  expect(await stopWhile('False', reasons.notAnswered, `Something else answers; it should have revision ${revision}.`)).toEqual(['done']);
});

test('a gateway that still has an earlier form is reported', async () => {
  const events = await stopWhile('False', 'NotLoaded', `The gateway still has an earlier form of it; it should have revision ${revision}.`);
  expect(events.slice(-2)).toEqual(['done', 'still-routed']);
});

const loaded = ['True', 'Programmed', `The gateway has loaded revision ${revision}.`] as const;

test.each(['list', 'get'])('a %s that fails for a moment is repeated', async (failing) => {
  let failures = 0;
  const intercept: MemoryCluster['intercept'] = (verb) => {
    if (verb === failing && failures++ < 2) throw apiError(503, 'ServiceUnavailable', 'The server is restarting.');
  };
  expect((await stopWhile(...loaded, { intercept })).at(-1)).toBe('done');
  expect(failures).toBeGreaterThan(2);
});

test('a read that is refused ends the wait', async () => {
  const intercept: MemoryCluster['intercept'] = (verb) => {
    if (verb === 'get') throw apiError(403, 'Forbidden', 'No.');
  };
  await expect(stopWhile(...loaded, { intercept })).rejects.toMatchObject({ code: 'forbidden' });
});

test('the routes of an app are read a few at a time, and each only until no request reaches the app', async () => {
  const reads: string[] = [];
  let [now, most] = [0, 0];
  const intercept: MemoryCluster['intercept'] = async (verb, type, name) => {
    if (verb !== 'get') return;
    reads.push(`${type.plural}/${name}`);
    most = Math.max(most, ++now);
    await Promise.resolve();
    now -= 1;
  };
  await stopWhile(...loaded, { routes: 40, intercept });
  expect(reads).toHaveLength(80);
  expect(most).toBeLessThanOrEqual(10);
});
