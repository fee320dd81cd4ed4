import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KfInfo } from '../../../src/lib/api/kf-info.ts';
import { askRoute } from '../../../src/lib/ops/answer.ts';
import { renderAnswer } from '../../../src/lib/views/apps.ts';

let server: Server;
let port: number;
let asked: string[];

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(`${request.headers.host ?? ''}${request.url ?? ''}`);
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterEach(() => server.close());

const info = (externalUrl?: KfInfo['gateway']['externalUrl']): KfInfo =>
  ({
    gateway: { namespace: 'kf-node', name: 'kf', features: [], ...(externalUrl === undefined ? {} : { externalUrl }) },
  }) as unknown as KfInfo;

test('the first route is asked for by its own host and path, and any status is an answer', async () => {
  const answer = await askRoute(info({ scheme: 'http', port, address: '127.0.0.1' }), 'hello.apps.localhost/api');
  expect(answer).toEqual({ url: `http://hello.apps.localhost:${port}/api`, status: 404 });
  expect(asked).toEqual(['hello.apps.localhost/api']);
  expect(renderAnswer(answer ?? { url: '' })).toBe(`http://hello.apps.localhost:${port}/api answers 404 from here`);
});

test('no answer is a fact with its cause, not a failure', async () => {
  server.close();
  const answer = await askRoute(info({ scheme: 'http', port, address: '127.0.0.1' }), 'hello.apps.localhost');
  expect(answer?.status).toBeUndefined();
  expect(renderAnswer(answer ?? { url: '' })).toMatch(/^http:\/\/hello\.apps\.localhost:\d+ does not answer from here: .*ECONNREFUSED/);
});

test('without an outside address of the gateway, and for a wildcard route, nothing is asked', async () => {
  expect(await askRoute(info(), 'hello.apps.localhost')).toBeUndefined();
  expect(await askRoute(info({ scheme: 'http', port, address: '127.0.0.1' }), '*.apps.localhost')).toBeUndefined();
});
