// What the controller says of a route, against a server that answers as gateways do while they take in a change.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { processesByApp, routesByApp } from '../../../src/controller/relations.ts';
import { Programming } from '../../../src/controller/routes/programming.ts';
import { isSettled, Proofs } from '../../../src/controller/rollout/traffic-probe.ts';
import { OutsideCalls } from '../../../src/controller/runtime/outside.ts';
import type { Context, Stores } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { httpRouteType, revisionOf, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import type { CFProcess, CFRoute } from '../../../src/lib/api/types.generated.ts';
import { buildHttpRoute } from '../../../src/templates/http-route.ts';

const generations = ['0000000001', '0000000002'] as const;
const route = {
  metadata: { name: 'r', namespace: 'ns', uid: 'r-uid', generation: 1 },
  spec: {
    host: 'a',
    path: '/Path',
    domainRef: { name: 'd', namespace: 'cf' },
    destinations: ['one', 'two'].map((app) => ({ guid: `d-${app}`, appRef: { name: app }, processType: 'web' })),
  },
  status: { uri: 'a.example.com/Path', fqdn: 'a.example.com' },
} as unknown as CFRoute;

const processOf = (app: string): CFProcess =>
  ({
    metadata: { name: `p-${app}`, namespace: 'ns', uid: `p-${app}-uid` },
    spec: { appRef: { name: app }, processType: 'web', healthCheck: { type: 'port' } },
    status: { actualInstances: 1 },
  }) as unknown as CFProcess;

function httpRoute(live?: HttpRoute, serves = true, served: readonly string[] = generations): HttpRoute {
  const built = buildHttpRoute({
    route, fqdn: 'a.example.com', gateway: { namespace: 'g', name: 'kf' }, serving: {}, marks: true, serves, pathExpressions: true, live,
    backends: served.map((generation) => ({ service: `s-d-${generation === generations[0] ? 'one' : 'two'}-${generation}`, port: 8080, generation, weight: 1 })),
  }); // prettier-ignore
  const conditions = ['Accepted', 'ResolvedRefs'].map((type) => ({
    type,
    status: 'True' as const,
    reason: type,
    message: '',
    lastTransitionTime: '',
  }));
  return {
    ...built,
    metadata: { ...built.metadata, generation: (live?.metadata.generation ?? 0) + 1 },
    status: { parents: [{ parentRef: { name: 'kf' }, conditions }] },
  };
}

let server: Server | undefined;
afterEach(() => server?.close());

/** A gateway that gives, request for request, what `answer` says; `asked` are the generations that requests named. The form `cut` is no answer at all. */
async function gateway(
  answer: (generation: string, count: number) => { status: number; marked?: boolean },
  revision: (count: number) => string | undefined,
) {
  const asked: string[] = [];
  let revisions = 0;
  const own = createServer((request, response) => {
    const generation = request.headers['kf-generation'] as string | undefined;
    if (generation === undefined) {
      revisions += 1;
      const form = revision(revisions) ?? 'none';
      if (form === 'cut') request.socket.destroy();
      else response.writeHead(302, { location: `//${form}.loaded.kf.invalid/` }).end();
      return;
    }
    asked.push(`${request.headers.host ?? ''}${request.url ?? ''} ${generation}`);
    const { status, marked = true } = answer(generation, asked.length);
    response.writeHead(status, { ...(marked ? { 'kf-generation': generation } : {}), 'content-length': 0 }).end();
  });
  server = own;
  await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve));
  return { asked, address: `http://127.0.0.1:${(own.address() as AddressInfo).port}` };
}

interface Scene {
  context: Context;
  pass: (ms: number) => void;
  /** The route's form as it is from now on. */
  put: (live: HttpRoute) => void;
}

function contextOf(address: string, live: HttpRoute): Scene {
  const [routes, httpRoutes, processes] = [new Store<CFRoute>(), new Store<HttpRoute>(), new Store<CFProcess>()];
  routes.addIndex(routesByApp.name, routesByApp.of);
  routes.put(route);
  httpRoutes.put(live);
  processes.addIndex(processesByApp.name, processesByApp.of);
  for (const app of ['one', 'two']) processes.put(processOf(app));
  const stores = {
    of: <T extends KubeObject>(type: ResourceType<T>) =>
      type.kind === httpRouteType.kind ? httpRoutes : type.kind === kinds.route.kind ? routes : processes,
  } as unknown as Stores;
  const calls = new OutsideCalls();
  let now = 1_700_000_000_000;
  const context = {
    stores,
    now: () => now,
    info: () => ({ gateway: { features: ['HTTPRouteResponseHeaderModification'], internalAddress: address } }),
    outside: <T>(id: string, timeoutMs: number, work: (signal: AbortSignal) => Promise<T>) =>
      calls.ask({ id, space: 'ns', timeoutMs }, () => undefined, work),
  } as unknown as Context;
  return { context, pass: (ms) => (now += ms), put: (next) => httpRoutes.put(next) };
}

/** Looks until there is something to say; the clock moves by what each look asks to wait. */
async function statementOf(programming: Programming, { context, pass }: Scene) {
  for (;;) {
    const { statement, requeueAfterMs = 0 } = programming.look(context, route);
    if (statement !== undefined) return statement;
    pass(requeueAfterMs);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

const said = (address: string, live: HttpRoute) => statementOf(new Programming(), contextOf(address, live));

test('a gateway that has loaded a route without its Services answers 500, as the Gateway API demands: that is not the app', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    (_generation, count) => ({ status: count <= 2 ? 500 : 200 }),
    () => revisionOf(live),
  );
  expect(await said(address, live)).toMatchObject({ status: 'True', reason: 'Loaded', message: expect.stringContaining(`${revisionOf(live) ?? '?'}.`) as string });
  const [one, two] = generations.map((generation) => `a.example.com/Path/ ${generation}`);
  expect(asked).toEqual([one, one, one, two]);
}); // prettier-ignore

test('every app behind a route has to answer, and an answer from elsewhere is none', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    (generation, count) => (generation === generations[1] && count <= 4 ? { status: 404, marked: false } : { status: 404 }),
    () => revisionOf(live),
  );
  expect((await said(address, live)).reason).toBe('Loaded');
  expect(asked.map((line) => line.split(' ')[1])).toEqual([generations[0], ...Array.from({ length: 4 }, () => generations[1])]);
});

test('an app that answers with 500 by itself is believed after some seconds, and asked seldom until then', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    () => ({ status: 500 }),
    () => revisionOf(live),
  );
  expect((await said(address, live)).reason).toBe('Loaded');
  expect(asked.length).toBeLessThan(12);
});

test('all replicas of a gateway that are met have to name the form', async () => {
  const live = httpRoute();
  let last = 0;
  const { address } = await gateway(
    () => ({ status: 200 }),
    (count) => ((last = count) === 3 ? 'older' : revisionOf(live)),
  );
  expect((await said(address, live)).reason).toBe('Loaded');
  expect(last).toBe(8);
});

test('a gateway that took a route late is given its time when it does not answer at first', async () => {
  const live = httpRoute();
  const { address } = await gateway(
    () => ({ status: 200 }),
    (count) => (count <= 4 ? 'cut' : revisionOf(live)),
  );
  const scene = contextOf(address, { ...live, status: { parents: [] } });
  const programming = new Programming();
  expect(programming.look(scene.context, route).statement).toBeUndefined();
  scene.pass(9_000);
  scene.put(live);
  expect((await statementOf(programming, scene)).reason).toBe('Loaded');
});

test('a gateway that never answers is taken at its word', async () => {
  const live = httpRoute();
  const { address } = await gateway(
    () => ({ status: 200 }),
    () => 'cut',
  );
  expect((await said(address, live)).reason).toBe('NotVerified');
});

test('a generation that was away has to answer again when it comes back', async () => {
  const both = httpRoute();
  const second = httpRoute(both, true, generations.slice(1));
  const again = httpRoute(second);
  let live = both;
  const { asked, address } = await gateway(
    () => ({ status: 200 }),
    () => revisionOf(live),
  );
  const scene = contextOf(address, both);
  const programming = new Programming();
  for (live of [both, second, again]) {
    scene.put(live);
    expect((await statementOf(programming, scene)).reason).toBe('Loaded');
  }
  expect(asked.map((line) => line.split(' ')[1])).toEqual([...generations, generations[0]]);
});

test('a process is not proven by a 500 of the gateway either', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    (_generation, count) => ({ status: count <= 2 ? 500 : 200 }),
    () => revisionOf(live),
  );
  const { context, pass } = contextOf(address, live);
  const proofs = new Proofs();
  for (;;) {
    const proof = proofs.check(context, processOf('one'), generations[0], [], 8080);
    if (proof.state !== 'awaited') {
      expect(proof).toEqual({ state: 'proven', through: 'gateway' });
      break;
    }
    pass(proof.lookAgainMs ?? 0);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(asked).toHaveLength(3);
});

test('a form that comes back has another revision, so that its first time is not taken for its second', () => {
  const first = httpRoute();
  const silent = httpRoute(first, false);
  const again = httpRoute(silent);
  const [a, b, c] = [first, silent, again].map(revisionOf);
  expect(new Set([a, b, c]).size).toBe(3);
  expect(revisionOf(httpRoute(again))).toBe(c);
  const knows = (message: string) =>
    ({ ...route, status: { conditions: [{ type: 'Programmed', status: 'True', reason: 'Loaded', message }] } }) as unknown as CFRoute;
  expect(isSettled(knows(`The gateway has loaded revision ${a ?? '?'}.`), again)).toBe(false);
  expect(isSettled(knows(`The gateway has loaded revision ${c ?? '?'}.`), again)).toBe(true);
  expect(isSettled(route, again)).toBe(false);
});
