// When a generation counts as reached by a request, with a server that answers as gateways do.

import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Instance } from '../../../src/controller/instances/instances.ts';
import { acceptance, Proofs, type Candidate, type Proof, turnedDownAt } from '../../../src/controller/rollout/traffic-probe.ts';
import { httpRouteType, revisionOf, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { CFProcess } from '../../../src/lib/api/types.generated.ts';
import { closeGateways, contextOf, gateway, generations, httpRoute, processOf, route, unresolved, type Scene } from './route-scene.ts';
import type { Stored } from '../../../src/lib/api/object.ts';

afterEach(closeGateways);

const [generation, other] = generations;
const instanceAt = (address: string): Instance => ({ ready: true, address }) as Instance;

/** An instance of the version that answers by itself. */
async function instance(status = 200): Promise<{ address: string; port: number }> {
  const { address } = await gateway(
    () => ({ status, marked: false }),
    () => undefined,
  );
  return { address: '127.0.0.1', port: Number(new URL(address).port) };
}

const candidate: Candidate = { generation, instances: [], port: 8080, isChecked: true };

interface Looked {
  proof: Proof;
  /** The time that has passed on the clock of the scene. */
  afterMs: number;
}

/** Checks until it is proven or refused; the clock moves by the wait that each check requests. */
async function proofOf(
  { context, pass }: Scene,
  process: Stored<CFProcess>,
  instances: readonly Instance[] = [],
  port = 8080,
  isChecked = true,
): Promise<Looked> {
  const proofs = new Proofs();
  const start = context.now();
  for (;;) {
    const proof = proofs.check(context, process, { generation, instances, port, isChecked });
    if (proof.state !== 'awaited') return { proof, afterMs: context.now() - start };
    pass(proof.lookAgainMs ?? 0);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** A process whose health check is the process itself. */
function unchecked(otherReady: number): Stored<CFProcess> {
  const process = processOf('one');
  const rollout = {
    id: 'x',
    phase: 'Starting',
    generations: [{ process: 'web', hash: other, state: 'Old', instances: 1, ready: otherReady }],
  };
  return {
    ...process,
    spec: { ...process.spec, healthCheck: { type: 'process' } },
    status: { actualInstances: 1, rollout },
  } as Stored<CFProcess>;
}

const answering = async (status: number, marked = true, features?: readonly string[]): Promise<Scene> => {
  const { address } = await gateway(
    () => ({ status, marked }),
    () => undefined,
  );
  return contextOf(address, httpRoute(), features);
};

describe('NotServing', () => {
  test.each([502, 503, 504])('is the reason when the gateway answers %i for 15 s', async (status) => {
    const { proof, afterMs } = await proofOf(await answering(status), processOf('one'));
    expect(proof).toEqual({
      state: 'refused',
      reason: 'NotServing',
      cause: 'not-serving',
      message: `Requests to a.example.com/Path/ are answered with ${status}.`,
    });
    expect(afterMs).toBeGreaterThan(15_000);
    expect(afterMs).toBeLessThanOrEqual(15_100);
  });

  test('is the reason also while another health check, the process itself, waits for the next start', async () => {
    expect((await proofOf(await answering(502), unchecked(0))).proof).toMatchObject({ state: 'refused', reason: 'NotServing' });
  });

  test('is the reason too when the gateway answers 500 now and then, as for a connection that the app resets', async () => {
    const { address } = await gateway(
      (_generation, count) => ({ status: count % 3 === 0 ? 500 : 502 }),
      () => undefined,
    );
    const { proof } = await proofOf(contextOf(address, httpRoute()), processOf('one'));
    expect(proof).toMatchObject({ state: 'refused', reason: 'NotServing' });
  });

  test('is not the reason if the app answers before that', async () => {
    const { address } = await gateway(
      (_generation, count) => ({ status: count <= 100 ? 503 : 404 }),
      () => undefined,
    );
    expect((await proofOf(contextOf(address, httpRoute()), processOf('one'))).proof).toEqual({ state: 'proven', through: 'gateway' });
  });

  test.each([
    ['2 s', 'where no other version serves', 0, 2_000],
    ['15 s', 'where another version serves', 1, 15_000],
  ])(
    'is not the reason if the health check of the app is its process: the app counts as serving after %s %s',
    async (_time, _where, ready, least) => {
      const { proof, afterMs } = await proofOf(await answering(502), unchecked(ready), [], 8080, false);
      expect(proof).toEqual({ state: 'proven', through: 'gateway' });
      expect(afterMs).toBeGreaterThan(least);
      expect(afterMs).toBeLessThanOrEqual(least + 100);
    },
  );
});

describe('RouteNotAccepted', () => {
  const refusedAt = '2026-01-01T00:00:00Z';
  const refusing = (type: 'Accepted' | 'ResolvedRefs'): Stored<HttpRoute> => {
    const live = httpRoute();
    const [parent] = live.status?.parents ?? [];
    const conditions = (parent?.conditions ?? []).map((condition) =>
      condition.type === type
        ? { ...condition, status: 'False' as const, reason: 'NoMatch', message: 'no listener takes it', lastTransitionTime: refusedAt }
        : condition,
    );
    return { ...live, status: { parents: [{ parentRef: { name: 'kf' }, conditions }] } };
  };

  test.each(['Accepted', 'ResolvedRefs'] as const)(
    "is the reason when the condition %s stays False, with the gateway's message",
    async (type) => {
      const { proof, afterMs } = await proofOf(contextOf('http://127.0.0.1:9', refusing(type)), processOf('one'));
      expect(proof).toEqual({
        state: 'refused',
        reason: 'RouteNotAccepted',
        cause: 'route-not-programmed',
        message: 'The gateway did not take the route a.example.com/Path: NoMatch: no listener takes it',
      });
      expect(afterMs).toBe(16_000);
    },
  );

  test('is the reason of a newer route too, since requests move only when all routes do', async () => {
    const { address, asked } = await gateway(() => ({ status: 200 }), () => undefined); // prettier-ignore
    const scene = contextOf(address, httpRoute());
    const named = { name: 'r-newer', uid: 'r-newer-uid', creationTimestamp: '2026-08-07T10:16:20Z' };
    scene.context.stores.of(kinds.route).put({ ...route, metadata: { ...route.metadata, ...named } });
    const newer = refusing('ResolvedRefs');
    scene.put({ ...newer, metadata: { ...newer.metadata, name: named.name } });
    const { proof, afterMs } = await proofOf(scene, processOf('one'));
    expect(proof).toMatchObject({ state: 'refused', reason: 'RouteNotAccepted', cause: 'route-not-programmed' });
    expect([afterMs, asked]).toEqual([16_000, []]);
  });

  test('is the reason only after a longer time when the gateway does not know a Service or its addresses', async () => {
    const { proof, afterMs } = await proofOf(contextOf('http://127.0.0.1:9', unresolved(httpRoute(), 'BackendNotFound')), processOf('one'));
    const message = 'The gateway did not take the route a.example.com/Path: BackendNotFound: endpointslices not found';
    expect(proof).toMatchObject({ state: 'refused', reason: 'RouteNotAccepted', message });
    expect(afterMs).toBe(96_000);
  });

  test('is the reason when no gateway controller processes the route, with a message', async () => {
    const { proof } = await proofOf(contextOf('http://127.0.0.1:9', { ...httpRoute(), status: { parents: [] } }), processOf('one'));
    expect(proof).toMatchObject({
      state: 'refused',
      reason: 'RouteNotAccepted',
      cause: 'gateway-down',
      message: expect.stringMatching(/: no gateway controller looked at it$/) as string,
    });
  });

  test('is known with its time when the gateway turns the route down as a whole', () => {
    const live = refusing('Accepted');
    expect(turnedDownAt(live)).toBe(Date.parse(refusedAt));
    expect(turnedDownAt(refusing('ResolvedRefs'))).toBeUndefined();
  });

  test('is not the reason for a form that the gateway has not processed yet', () => {
    const live = refusing('Accepted');
    const [parent] = live.status?.parents ?? [];
    const old = (parent?.conditions ?? []).map((condition) => ({ ...condition, observedGeneration: 1 }));
    const newer = {
      ...live,
      metadata: { ...live.metadata, generation: 2 },
      status: { parents: [{ parentRef: { name: 'kf' }, conditions: old }] },
    };
    expect(acceptance(newer)).toBeUndefined();
    expect(acceptance({ ...newer, metadata: { ...newer.metadata, generation: 1 } })?.accepted).toBe(false);
  });
});

describe('if the gateway cannot be asked from inside the cluster', () => {
  test('because it has no address, an instance is asked', async () => {
    const { address, port } = await instance();
    const { proof } = await proofOf(contextOf(undefined, httpRoute()), processOf('one'), [instanceAt(address)], port);
    expect(proof).toEqual({ state: 'proven', through: 'instance' });
  });

  test('because it has refused connections for 3 s, an instance is asked', async () => {
    const { address: closed } = await gateway(
      () => ({ status: 200 }),
      () => undefined,
    );
    closeGateways();
    const { address, port } = await instance();
    const { proof, afterMs } = await proofOf(contextOf(closed, httpRoute()), processOf('one'), [instanceAt(address)], port);
    expect(proof).toEqual({ state: 'proven', through: 'instance' });
    expect(afterMs).toBeGreaterThan(3_000);
  });

  test('and no instance either, the version counts as it is', async () => {
    expect((await proofOf(contextOf(undefined, httpRoute()), processOf('one'))).proof).toEqual({ state: 'proven', through: 'nothing' });
    const { address, port } = await instance();
    closeGateways();
    const closed = await proofOf(contextOf(undefined, httpRoute()), processOf('one'), [instanceAt(address)], port);
    expect(closed.proof).toEqual({ state: 'proven', through: 'nothing' });
    expect(closed.afterMs).toBeGreaterThan(3_000);
  });
});

test('a version whose instance does not answer in time, when there is no gateway to ask, counts as it is', async () => {
  const scene = contextOf(undefined, httpRoute());
  // Its code is a number.
  const late = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
  const context = { ...scene.context, outside: () => ({ ok: false, error: late }) } as unknown as typeof scene.context;
  const { proof, afterMs } = await proofOf({ ...scene, context }, processOf('one'), [instanceAt('192.0.2.1')]);
  expect(proof).toEqual({ state: 'proven', through: 'nothing' });
  expect(afterMs).toBeGreaterThan(3_000);
});

describe('a version that speaks only HTTP/2', () => {
  /** The routes of the app: the older one has HTTP/1.1, the other HTTP/2. */
  function withBoth({ context }: Scene): void {
    const store = context.stores.of(kinds.route) as unknown as { put: (route: unknown) => void };
    const destination = { guid: 'd-one', appRef: { name: 'one' }, processType: 'web' };
    for (const [name, protocol] of [['r', 'http1'], ['s', 'http2']] as const) {
      const metadata = { ...route.metadata, name, uid: name, creationTimestamp: name };
      store.put({ ...route, metadata, status: { fqdn: `${protocol}.example.com` }, spec: { ...route.spec, destinations: [{ ...destination, protocol }] } });
    }
  } // prettier-ignore

  test('serves when it answers by one of its routes', async () => {
    const { address, asked } = await gateway(
      (_generation, _count, host) => ({ status: host === 'http2.example.com' ? 200 : 502 }),
      () => undefined,
    );
    const scene = contextOf(address, httpRoute());
    withBoth(scene);
    const httpRoutes = scene.context.stores.of(httpRouteType) as unknown as { put: (live: unknown) => void };
    httpRoutes.put({ ...httpRoute(), metadata: { ...httpRoute().metadata, name: 's' } });
    const { proof, afterMs } = await proofOf(scene, processOf('one'));
    expect(proof).toEqual({ state: 'proven', through: 'gateway' });
    expect(asked.map((line) => line.split('/')[0])).toEqual(['http1.example.com', 'http2.example.com']);
    expect(afterMs).toBeLessThan(1_000);
  });

  test('has answered when it is asked itself, for want of a gateway', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const { proof, afterMs } = await proofOf(contextOf(undefined, httpRoute()), processOf('one'), [instanceAt('127.0.0.1')], port);
      expect([proof, afterMs]).toEqual([{ state: 'proven', through: 'instance' }, 0]);
    } finally {
      server.close();
    }
  });
});

describe('an answer that does not come from the rule of the generation', () => {
  test('never counts if the gateway marks answers: after 15 s an instance is asked', async () => {
    const { address, port } = await instance();
    const { proof, afterMs } = await proofOf(await answering(200, false), processOf('one'), [instanceAt(address)], port);
    expect(proof).toEqual({ state: 'proven', through: 'unnamed' });
    expect(afterMs).toBeGreaterThan(15_000);
    expect((await proofOf(await answering(200, false), processOf('one'))).proof).toEqual({ state: 'proven', through: 'unanswered' });
  });

  test('is a 404 if the gateway cannot mark answers, for 1 s', async () => {
    const { proof, afterMs } = await proofOf(await answering(404, false, []), processOf('one'));
    expect(proof).toEqual({ state: 'proven', through: 'gateway' });
    expect(afterMs).toBeGreaterThan(1_000);
    expect(afterMs).toBeLessThanOrEqual(1_200);
    const { address, port } = await instance();
    const answered = await proofOf(await answering(200, false, []), processOf('one'), [instanceAt(address)], port);
    expect([answered.proof, answered.afterMs < 100]).toEqual([{ state: 'proven', through: 'gateway' }, true]);
  });

  test.each([
    ['marks answers', undefined],
    ['cannot mark answers', []],
  ])('proves nothing while an instance itself answers 503, if the gateway %s', async (_, features) => {
    const { address, port } = await instance(503);
    const { proof, afterMs } = await proofOf(await answering(200, false, features), processOf('one'), [instanceAt(address)], port);
    expect(proof).toMatchObject({ state: 'refused', reason: 'NotServing', cause: 'not-serving' });
    // It has the time for that from its first own answer.
    expect(afterMs).toBeGreaterThan(15_000);
  });
});

describe('500, which the app may send as well as a gateway that does not know its Service', () => {
  test('proves that the app serves after 5 s', async () => {
    const { proof, afterMs } = await proofOf(await answering(500, false, []), processOf('one'));
    expect(proof).toEqual({ state: 'proven', through: 'gateway' });
    expect(afterMs).toBeGreaterThan(5_000);
    expect(afterMs).toBeLessThanOrEqual(6_000);
  });

  test('proves it after an outage only when the gateway has had its time to catch up, and 5 s more', async () => {
    const scene = await answering(500, false, []);
    scene.reconnect();
    const { proof, afterMs } = await proofOf(scene, processOf('one'));
    expect(proof).toEqual({ state: 'proven', through: 'gateway' });
    expect(afterMs).toBeGreaterThan(100_000);
    expect(afterMs).toBeLessThanOrEqual(101_000);
  });
});

test('a route is tested only when it has the rule of the generation', () => {
  const live = httpRoute(undefined, true, [other]);
  const { context } = contextOf('http://127.0.0.1:9', live);
  expect(revisionOf(live)).toBeDefined();
  expect(new Proofs().check(context, processOf('one'), candidate)).toMatchObject({
    state: 'awaited',
    message: 'The gateway has not taken the route a.example.com/Path yet',
  });
});

test('a proven route is not tested again until it is forgotten', async () => {
  const { address, asked } = await gateway(
    () => ({ status: 200 }),
    () => undefined,
  );
  const { context } = contextOf(address, httpRoute());
  const proofs = new Proofs();
  const process = processOf('one');
  const untilProven = async (): Promise<void> => {
    while (proofs.check(context, process, candidate).state !== 'proven') await new Promise((resolve) => setTimeout(resolve, 1));
  };
  await untilProven();
  await untilProven();
  expect(asked).toHaveLength(1);
  proofs.forget(process, generation);
  await untilProven();
  expect(asked).toHaveLength(2);
});
