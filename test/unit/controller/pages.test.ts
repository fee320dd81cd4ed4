import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createPages } from '../../../src/controller/pages/pages.ts';

let server: Server;
beforeEach(async () => {
  server = createPages();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => server.close());

interface Page {
  status: number;
  headers: Record<string, unknown>;
  body: string;
}

function ask(method: string, path: string, host: string, sent = ''): Promise<Page> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: '127.0.0.1', method, path, headers: { host }, agent: false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => (body += text));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }));
    });
    outgoing.on('error', reject);
    outgoing.end(sent);
  });
}

test("the page is cf's answer for an unknown route, with a header that names the origin", async () => {
  const page = await ask('GET', '/any?a=b', 'shop.apps.example.com:80');
  expect(page.status).toBe(404);
  expect(page.headers).toMatchObject({
    'x-cf-routererror': 'unknown_route',
    'cache-control': 'no-store',
    'content-type': 'text/plain; charset=utf-8',
  });
  expect(page.body).toContain("404 Not Found: Requested route ('shop.apps.example.com:80') does not exist.");
  expect(page.body).toContain('its app is stopped');
});

test('the page has no body for HEAD, and is the same for POST', async () => {
  const head = await ask('HEAD', '/', 'x.example.com');
  expect([head.status, head.body]).toEqual([404, '']);
  expect((await ask('POST', '/', 'x.example.com', 'a'.repeat(1_000_000))).status).toBe(404);
});

test('the page shows only the characters of a host name that are valid there', async () => {
  const { body } = await ask('GET', '/', "<script>'x'</script>");
  expect(body).toContain("Requested route ('?script??x???script?') does not exist.");
  expect((await ask('GET', '/', 'a'.repeat(5_000))).body.length).toBeLessThan(1_000);
});
