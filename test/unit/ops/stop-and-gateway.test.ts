// After a stop: the gateway must have loaded the route without the app's instances.

import { expect, test, vi } from 'vitest';
import { httpRouteType, revisionRule } from '../../../src/lib/api/gateway.ts';
import { kinds, reasons } from '../../../src/lib/api/group.ts';
import type { OpEvent } from '../../../src/lib/ops/events.ts';
import { waitUntilSilent } from '../../../src/lib/ops/routes/programming.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 'space';
const revision = 'r2';

/** The events of a stop while the controller says this of the route, whose present form sends nothing to the app. */
async function stopWhile(status: 'True' | 'False', reason: string, message: string): Promise<OpEvent['type'][]> {
  vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 1_000 });
  const cluster = new MemoryCluster();
  const destinations = [{ guid: 'd', appRef: { name: 'a' }, port: 8080, protocol: 'http1', weight: null }];
  const spec = { host: 'web', path: '', domainRef: { name: 'domain', namespace: 'cf' }, destinations };
  const condition = { type: 'Programmed', status, reason, message, lastTransitionTime: '2030-01-01T00:00:00Z' };
  await cluster.create(kinds.route, { metadata: { name: 'r', namespace: ns }, spec } as never);
  await cluster.mergePatch(kinds.route, ns, 'r', { status: { conditions: [condition] } }, { subresource: 'status' });
  await cluster.create(httpRouteType, { metadata: { name: 'r', namespace: ns }, spec: { rules: [revisionRule(revision, [])] } });
  const app = await cluster.create(kinds.app, {
    metadata: { name: 'a', namespace: ns },
    spec: { displayName: 'web', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  } as never);
  const seen: OpEvent['type'][] = [];
  const report = ({ type }: OpEvent): void => void seen.push(type);
  await waitUntilSilent({ cluster, space: { guid: ns, name: ns }, report } as unknown as SpaceSession, app);
  vi.useRealTimers();
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
  expect(events.slice(-2)).toEqual(['done', 'not-silent']);
});
