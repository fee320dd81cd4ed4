import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ask } from '../../../src/controller/rollout/gateway-request.ts';
import { Proofs } from '../../../src/controller/rollout/traffic-probe.ts';
import { routesByApp } from '../../../src/controller/relations.ts';
import type { Instance } from '../../../src/controller/instances/instances.ts';
import type { Context, Stores } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { httpRouteType, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import { reachThroughGateway } from '../../../src/lib/ops/routes/http-probe.ts';
import type { CFProcess, CFRoute } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

const start = 1_700_000_000_000;
const seconds = 1_000;

const process = asStored({
  metadata: { name: 'p', namespace: 'ns', uid: 'p-uid' },
  spec: { appRef: { name: 'a' }, processType: 'web' },
} as CFProcess);
const route = asStored({
  metadata: { name: 'r', namespace: 'ns', uid: 'r-uid', resourceVersion: '1' },
  spec: { host: 'a', domainRef: { name: 'd', namespace: 'cf' }, destinations: [{ appRef: { name: 'a' }, processType: 'web' }] },
  status: { uri: 'a.example.com', fqdn: 'a.example.com' },
} as unknown as CFRoute);

/** A route that no gateway has processed, in a view whose last gap was `gapBefore` ms before `start` (undefined: none). */
function scene(gapBefore?: number) {
  const routes = new Store<CFRoute>();
  routes.addIndex(routesByApp.name, routesByApp.of);
  routes.put(route);
  const httpRoutes = new Store<HttpRoute>();
  if (gapBefore !== undefined) httpRoutes.steadySince = start - gapBefore;
  let now = start;
  const stores = {
    of: <T extends KubeObject>(type: ResourceType<T>) => (type.kind === httpRouteType.kind ? httpRoutes : routes),
  } as unknown as Stores;
  const context = {
    stores,
    now: () => now,
    info: () => ({ gateway: { features: [], internalAddress: 'http://gateway' } }),
  } as unknown as Context;
  const proofs = new Proofs();
  const look = (afterMs: number) => {
    now = start + afterMs;
    return proofs.check(context, process, { generation: 'g', instances: [], port: 8080, isChecked: true }).state;
  };
  return { context, look, gap: (afterMs: number) => (httpRoutes.steadySince = start + afterMs) };
}

describe('a gateway that has not processed a route', () => {
  test('is waited for, and then named as the cause', () => {
    const { look } = scene();
    expect(look(0)).toBe('awaited');
    expect(look(15 * seconds)).toBe('awaited');
    expect(look(15 * seconds + 1)).toBe('refused');
  });

  test('gets the time that its client needs to reconnect if the API server was away during the push', () => {
    const { look, gap } = scene();
    expect(look(0)).toBe('awaited');
    gap(10 * seconds);
    expect(look(100 * seconds)).toBe('awaited');
    expect(look(121 * seconds)).toBe('refused');
  });

  test('gets that time also if the API server was away shortly before', () => {
    const { look } = scene(30 * seconds);
    expect(look(0)).toBe('awaited');
    expect(look(75 * seconds)).toBe('awaited');
    expect(look(81 * seconds)).toBe('refused');
  });

  test('gets no more time than others much later', () => {
    const { look } = scene(3_600 * seconds);
    expect(look(0)).toBe('awaited');
    expect(look(16 * seconds)).toBe('refused');
  });
});

test('a new probe does not use the answer to an earlier one', () => {
  const asked: string[] = [];
  const { context } = scene();
  const own = { ...context, outside: (id: string) => void asked.push(id) } as unknown as Context;
  const proofs = new Proofs();
  const instances = [{ ready: true, address: '10.0.0.1' }] as unknown as readonly Instance[];
  const unrouted = { ...process, spec: { ...process.spec, processType: 'worker', healthCheck: { type: 'port' } } } as Stored<CFProcess>;
  const look = () => proofs.check(own, unrouted, { generation: 'g', instances, port: 8080, isChecked: true }).state;
  expect([look(), look()]).toEqual(['awaited', 'awaited']);
  proofs.forget(unrouted, 'g');
  expect(look()).toBe('awaited');
  expect([asked[0] === asked[1], asked[1] === asked[2]]).toEqual([true, false]);
});

describe('a request of a probe', () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  test.each(['//127.0.0.1:1/latest/', '//user@127.0.0.1:1/x/', '//', '/../x/'])(
    'goes to the given address, whatever a path such as %s names',
    async (path) => {
      const asked: string[] = [];
      const listening = createServer((request, response) => {
        asked.push(request.url ?? '');
        response.end();
      });
      server = listening;
      await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
      const base = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
      expect((await ask({ base, host: 'a', path, headers: {} }, new AbortController().signal)).status).toBe(200);
      expect(asked).toEqual([path]);
    },
  );
});

describe('an answer without an end', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  /** A server that sends as long as the client reads; `closed` once the client has disconnected. */
  async function startEndless(): Promise<{ port: number; closed: Promise<void> }> {
    let leave: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (leave = resolve));
    const endless = createServer((_request, response) => {
      const more = (): void => {
        if (response.destroyed) return;
        if (response.write('x'.repeat(65_536))) setImmediate(more);
        else response.once('drain', more);
      };
      response.once('close', leave);
      more();
    });
    server = endless;
    await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve));
    return { port: (endless.address() as AddressInfo).port, closed };
  }

  test('is not read, and the controller closes the connection', async () => {
    const { port, closed } = await startEndless();
    const answer = await ask({ base: `http://127.0.0.1:${port}`, host: 'a', path: '/', headers: {} }, new AbortController().signal);
    expect(answer.status).toBe(200);
    await closed;
  });

  test('does not delay the command that asks whether a URL answers', async () => {
    const { port, closed } = await startEndless();
    const gateway = { scheme: 'http' as const, port, address: '127.0.0.1' };
    expect(await reachThroughGateway(gateway, 'a', '/', 5_000)).toMatchObject({ ok: true, status: 200 });
    await closed;
  });
});
