import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { buildParts, partPath } from '../../../tools/cluster/parts.ts';

const page = `<h1>home</h1>${'x'.repeat(2000)}`;
let program: string;
let root: string;
const servers: ChildProcess[] = [];

beforeAll(async () => {
  program = partPath(await buildParts(['staticserver'], { log: () => undefined }), 'staticserver');
  root = mkdtempSync(join(tmpdir(), 'kf-site-'));
  mkdirSync(join(root, 'docs'));
  mkdirSync(join(root, 'empty'));
  writeFileSync(join(root, 'index.html'), page);
  writeFileSync(join(root, 'docs', 'index.html'), 'docs');
  writeFileSync(join(root, 'app.js'), 'short');
  writeFileSync(join(root, '.secret'), 'secret');
  writeFileSync(join(root, 'Staticfile'), 'root: .');
  symlinkSync('/etc/passwd', join(root, 'outside'));
}, 120_000);
afterEach(() => {
  for (const server of servers.splice(0)) server.kill('SIGKILL');
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

async function start(
  ...args: string[]
): Promise<{ process: ChildProcess; get: (path: string, headers?: Record<string, string>, method?: string) => Promise<Answer> }> {
  const port = await freePort();
  const child = spawn(program, ['-root', root, ...args], { env: { PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] });
  servers.push(child);
  await once(child.stderr, 'data');
  return { process: child, get: (path, headers = {}, method = 'GET') => ask(port, path, headers, method) };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

// Not fetch: it would decompress, follow redirects and normalise the path.
async function ask(port: number, path: string, headers: Record<string, string>, method: string): Promise<Answer> {
  const sent = request({ host: '127.0.0.1', port, path, headers, method, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

test('a page is served with its type and with an ETag that makes the second request cheap', async () => {
  const { get } = await start();
  const first = await get('/');
  expect(first.status).toBe(200);
  expect(first.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(first.body.toString()).toBe(page);
  const second = await get('/', { 'if-none-match': String(first.headers.etag) });
  expect(second.status).toBe(304);
  expect(second.body).toHaveLength(0);
});

test('text is compressed for clients that accept it, and only for them', async () => {
  const { get } = await start();
  const zipped = await get('/', { 'accept-encoding': 'br, gzip;q=0.5' });
  expect(zipped.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(zipped.body).toString()).toBe(page);
  expect((await get('/', { 'accept-encoding': 'gzip;q=0' })).headers['content-encoding']).toBeUndefined();
  expect((await get('/app.js', { 'accept-encoding': 'gzip' })).headers['content-encoding']).toBeUndefined();
});

test('for a range only that part is sent', async () => {
  const { get } = await start();
  const part = await get('/', { range: 'bytes=0-3', 'accept-encoding': 'gzip' });
  expect(part.status).toBe(206);
  expect(part.body.toString()).toBe('<h1>');
});

test('a folder is redirected to its path with a slash, with the query, and answered with its index page', async () => {
  const { get } = await start();
  const redirect = await get('/docs?a=b');
  expect([redirect.status, redirect.headers.location]).toEqual([301, 'docs/?a=b']);
  expect((await get('/docs/')).body.toString()).toBe('docs');
  expect((await get('/empty/')).status).toBe(404);
});

test.each(['/.secret', '/Staticfile', '/outside', '/../../etc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '/gone', '/app.js/'])(
  '%s is not found',
  async (path) => {
    const { get } = await start();
    const answer = await get(path);
    expect(answer.status).toBe(404);
    expect(answer.body.toString()).not.toMatch(/secret|root:/);
  },
);

test('the 404 page of the site is used if it exists', async () => {
  const { get } = await start();
  writeFileSync(join(root, '404.html'), 'not here');
  const answer = await get('/gone');
  rmSync(join(root, '404.html'));
  expect([answer.status, answer.body.toString()]).toEqual([404, 'not here']);
});

test('with pushstate an unknown path is answered by the index page', async () => {
  const { get } = await start('-pushstate');
  const answer = await get('/some/view');
  expect([answer.status, answer.body.toString()]).toEqual([200, page]);
});

test('other methods than GET and HEAD are refused, HEAD has no body', async () => {
  const { get } = await start();
  const post = await get('/', {}, 'POST');
  expect([post.status, post.headers.allow]).toEqual([405, 'GET, HEAD']);
  const head = await get('/', {}, 'HEAD');
  expect([head.status, head.body.length, head.headers['content-length']]).toEqual([200, 0, String(page.length)]);
});

test('SIGTERM ends the server with exit code 0', async () => {
  const { process: server } = await start();
  server.kill('SIGTERM');
  const [code] = (await once(server, 'exit')) as [number | null];
  expect(code).toBe(0);
});
