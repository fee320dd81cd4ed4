// A route with two apps, a clock that tests move, and a server that answers as gateways do.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { processesByApp, routesByApp } from '../../../src/controller/relations.ts';
import { markFeature } from '../../../src/controller/rollout/traffic-probe.ts';
import { OutsideCalls } from '../../../src/controller/runtime/outside.ts';
import type { Context, Stores } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { httpRouteType, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import type { CFProcess, CFRoute } from '../../../src/lib/api/types.generated.ts';
import { buildHttpRoute } from '../../../src/templates/http-route.ts';
import { asStored } from '../../support/stored.ts';

export const generations = ['0000000001', '0000000002'] as const;
export const route = asStored({
  metadata: { name: 'r', namespace: 'ns', uid: 'r-uid', generation: 1 },
  spec: {
    host: 'a',
    path: '/Path',
    domainRef: { name: 'd', namespace: 'cf' },
    destinations: ['one', 'two'].map((app) => ({ guid: `d-${app}`, appRef: { name: app }, processType: 'web' })),
  },
  status: { uri: 'a.example.com/Path', fqdn: 'a.example.com' },
});

export const processOf = (app: string): Stored<CFProcess> =>
  asStored({
    metadata: { name: `p-${app}`, namespace: 'ns', uid: `p-${app}-uid` },
    spec: { appRef: { name: app }, processType: 'web', healthCheck: { type: 'port' } },
    status: { actualInstances: 1 },
  } as unknown as CFProcess);

export function httpRoute(live?: Stored<HttpRoute>, serves = true, served: readonly string[] = generations): Stored<HttpRoute> {
  const built = buildHttpRoute({
    route, fqdn: 'a.example.com', gateway: { namespace: 'g', name: 'kf' }, serving: {}, marks: true, serves, pathExpressions: true, live,
    backends: served.map((generation) => {
      const destination = generation === generations[0] ? 'd-one' : 'd-two';
      return { service: `s-${destination}-${generation}`, port: 8080, destination, generation, weight: 1, isReady: true };
    }),
  }); // prettier-ignore
  const conditions = ['Accepted', 'ResolvedRefs'].map((type) => ({
    type,
    status: 'True' as const,
    reason: type,
    message: '',
    lastTransitionTime: '',
  }));
  return asStored({
    ...built,
    metadata: { ...built.metadata, generation: (live?.metadata.generation ?? 0) + 1 },
    status: { parents: [{ parentRef: { name: 'kf' }, conditions }] },
  });
}

/** The gateway has looked at the route and does not resolve its references. */
export function unresolved(live: Stored<HttpRoute>, reason: string): Stored<HttpRoute> {
  const [parent] = live.status?.parents ?? [];
  const conditions = (parent?.conditions ?? []).map((one) =>
    one.type === 'ResolvedRefs' ? { ...one, status: 'False' as const, reason, message: 'endpointslices not found' } : one,
  );
  return { ...live, status: { parents: [{ parentRef: { name: 'kf' }, conditions }] } };
}

const servers: Server[] = [];

/** Stops the gateways of a test. */
export function closeGateways(): void {
  for (const server of servers.splice(0)) server.close();
}

/**
 * A gateway that returns the results of `answer`, request for request; `asked` are the generations in the requests. For `cut` it sends no answer; without a
 * form the answer is of another server.
 */
export async function gateway(
  answer: (generation: string, count: number, host: string) => { status: number; marked?: boolean } | 'cut',
  revision: (count: number) => string | undefined,
) {
  const asked: string[] = [];
  let revisions = 0;
  const own = createServer((request, response) => {
    const generation = request.headers['kf-generation'] as string | undefined;
    if (generation === undefined) {
      revisions += 1;
      const form = revision(revisions);
      if (form === 'cut') request.socket.destroy();
      else if (form === undefined) response.writeHead(404).end();
      else response.writeHead(302, { location: `//${form}.loaded.kf.invalid/` }).end();
      return;
    }
    asked.push(`${request.headers.host ?? ''}${request.url ?? ''} ${generation}`);
    const given = answer(generation, asked.length, request.headers.host ?? '');
    if (given === 'cut') return request.socket.destroy();
    const { status, marked = true } = given;
    response.writeHead(status, { ...(marked ? { 'kf-generation': generation } : {}), 'content-length': 0 }).end();
  });
  servers.push(own);
  await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve));
  return { asked, address: `http://127.0.0.1:${(own.address() as AddressInfo).port}` };
}

export interface Scene {
  context: Context;
  pass: (ms: number) => void;
  /** Sets the route's present form. */
  put: (live: Stored<HttpRoute>) => void;
  /** The API server was away and answers again. */
  reconnect: () => void;
}

/** Without `address`: a gateway that cannot be asked from inside the cluster. */
export function contextOf(address: string | undefined, live: Stored<HttpRoute>, features: readonly string[] = [markFeature]): Scene {
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
    info: () => ({ gateway: { features, internalAddress: address } }),
    outside: <T>(id: string, timeoutMs: number, work: (signal: AbortSignal) => Promise<T>) =>
      calls.ask({ id, space: 'ns', timeoutMs }, () => undefined, work),
  } as unknown as Context;
  return { context, pass: (ms) => (now += ms), put: (next) => httpRoutes.put(next), reconnect: () => (httpRoutes.steadySince = now) };
}
