import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KfInfo } from '../../../src/lib/api/kf-info.ts';
import type { AppDetails } from '../../../src/lib/api/results.ts';
import { askRoute, routeToAsk } from '../../../src/lib/ops/routes/route-check.ts';
import { renderAnswer } from '../../../src/lib/views/apps.ts';

let server: Server;
let port: number;
let asked: string[];

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(`${request.headers.host ?? ''}${request.url ?? ''}`);
    const isGateway = request.headers['kf-route-revision'] !== undefined && request.headers.host !== 'other.apps.localhost';
    if (isGateway) response.writeHead(302, { location: `http://0123456789.loaded.kf.invalid${request.url ?? ''}` }).end();
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterEach(() => server.close());

const none = { url: '', reachable: false };
const info = (externalUrl?: KfInfo['gateway']['externalUrl']): KfInfo =>
  ({
    gateway: { namespace: 'kf-node', name: 'kf', features: [], ...(externalUrl === undefined ? {} : { externalUrl }) },
  }) as unknown as KfInfo;

test('the gateway gets a request for the first route with its host and path, and apps are not asked directly', async () => {
  const answer = await askRoute(info({ scheme: 'http', port, address: '127.0.0.1' }), 'hello.apps.localhost/api');
  expect(answer).toEqual({ url: `http://hello.apps.localhost:${port}/api`, reachable: true });
  expect(asked).toEqual(['hello.apps.localhost/api']);
  expect(renderAnswer(answer ?? none)).toBe(`http://hello.apps.localhost:${port}/api answers from here`);
});

test('an answer that does not come from this route is reported as such', async () => {
  const answer = await askRoute(info({ scheme: 'http', port, address: '127.0.0.1' }), 'other.apps.localhost');
  expect(answer).toEqual({ url: `http://other.apps.localhost:${port}`, reachable: false, status: 404 });
  expect(renderAnswer(answer ?? none)).toContain('does not lead to the app from here: something answers with 404');
});

test('a missing answer is reported with its cause, and is not a failure', async () => {
  server.close();
  const answer = await askRoute(info({ scheme: 'http', port, address: '127.0.0.1' }), 'hello.apps.localhost');
  expect(answer?.status).toBeUndefined();
  expect(renderAnswer(answer ?? none)).toMatch(/^http:\/\/hello\.apps\.localhost:\d+ does not answer from here: .*ECONNREFUSED/);
});

test('without an outside address of the gateway, or for a wildcard route, no request is sent', async () => {
  expect(await askRoute(info(), 'hello.apps.localhost')).toBeUndefined();
  expect(await askRoute(info({ scheme: 'http', port, address: '127.0.0.1' }), '*.apps.localhost')).toBeUndefined();
});

test.each<[string, ReturnType<typeof routeToAsk>, object, object]>([
  ['an app that listens', { route: 'a.example.com', about: {} }, {}, {}],
  ['an app of which only the process is checked', { route: 'a.example.com', about: { unchecked: true } }, {}, { healthCheck: 'process' }],
  ['an app without instances', undefined, {}, { instances: 0 }],
  ['a stopped app', undefined, { state: 'stopped' }, {}],
  ['an app without a route', undefined, { routes: [] }, {}],
  ['an app with an internal route too', { route: 'b.example.com', about: {} }, { routes: ['a.apps.internal', 'b.example.com'] }, {}],
  ['an app with internal routes only', undefined, { routes: ['a.apps.internal'] }, {}],
  ['an app without a web process', undefined, {}, { type: 'worker' }],
])('the route that a push tests: %s', (_case, expected, app, web) => {
  const processes = [{ type: 'web', instances: 1, healthCheck: 'port', ...web }];
  const details = { state: 'started', routes: ['a.example.com', 'b.example.com'], processes, ...app } as unknown as AppDetails;
  expect(routeToAsk(details)).toEqual(expected);
});

test('an app without a test request is not reported as answering', () => {
  expect(renderAnswer({ url: 'http://a.example.com', reachable: true, unchecked: true })).toBe(
    "http://a.example.com leads to the app from here; whether it answers is not known: its health check is 'process'",
  );
});
