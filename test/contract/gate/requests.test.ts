import { createHash, randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { patienceMs } from '../../support/until.ts';
import { ask, basic, openGate, now } from './support.ts';
import type { Scene, Upstream } from './support.ts';

const digest = `sha256:${'b'.repeat(64)}`;
const user = `push.space-1.${now + 60}`;
const headers = { authorization: basic(user) };
const repository = 'space-1/app-1-packages';

let scene: Scene;
afterEach(() => scene.close());
const open = async (upstream?: Upstream): Promise<number> => {
  scene = await openGate(upstream === undefined ? {} : { upstream });
  return scene.port('push');
};
const seenPaths = (): string[] => scene.seen.map((request) => request.url);

describe('paths', () => {
  test('that are unknown, encoded, not normalised or ambiguous never reach the registry', async () => {
    const port = await open();
    const paths = [
      '/v2/_catalog',
      '/v2/space-1/_catalog',
      '/metrics',
      '/debug/vars',
      '/',
      '/v1/search',
      '/V2/',
      '/v2/space-1/tags/list',
      '/v2/space-1/manifests/latest',
      `/v2/space-1/../space-2/app-packages/manifests/latest`,
      '/v2/space-1/..%2fspace-2/manifests/latest',
      '/v2/space-1%2f..%2fspace-2/x/manifests/latest',
      '/v2//space-1/app-1-packages/manifests/latest',
      '/v2/space-1//manifests/latest',
      '/v2/./space-1/x/manifests/latest',
      '/v2/space-1/x/manifests/..',
      '/v2/space-1/x/manifests/../../../space-2/x/manifests/latest',
      '/v2/space-1/x\\..\\y/manifests/latest',
      '/v2/space-1/x/manifests/latest;a=b',
      '/v2/space-1/x/manifests/latest%00',
      '/v2/space-1/x/manifests/latest#frag',
      '/v2/space-1/blobs/uploads/manifests/latest',
      `/v2/space-1/manifests/blobs/${digest}`,
      '/v2/space-1/x/y/manifests/latest',
      'http://evil.example/v2/space-1/x/manifests/latest',
      '//evil/v2/',
      '/v2/Space-1/x/manifests/latest',
      `/v2/space-1/x/blobs/${'a'.repeat(2000)}`,
      '/v2/space-1/x/referrers/sha256:aa',
      '*',
    ];
    for (const path of paths) expect([path, (await ask(port, { path, headers })).status]).toEqual([path, 404]);
    expect(scene.seen).toEqual([]);
  });

  test('of tags are allowed only for lists of own repositories', async () => {
    const port = await open();
    expect((await ask(port, { path: `/v2/${repository}/tags/list?n=5&last=a&evil=1`, headers })).status).toBe(200);
    expect((await ask(port, { path: '/v2/space-2/app-1-packages/tags/list', headers })).status).toBe(403);
    expect(seenPaths()).toEqual([`/v2/${repository}/tags/list?n=5&last=a`]);
  });

  test('with methods that the API does not have are refused', async () => {
    const port = await open();
    for (const method of ['DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'POST'])
      expect((await ask(port, { method, path: `/v2/${repository}/manifests/latest`, headers })).status).toBe(405);
    expect(scene.seen).toEqual([]);
  });
});

describe('mounts', () => {
  const start = `/v2/${repository}/blobs/uploads/`;
  const post = (port: number, query: string, more: Record<string, string> = {}, body?: string) =>
    ask(port, { method: 'POST', path: start + query, headers: { ...headers, ...more }, ...(body === undefined ? {} : { body }) });

  test('from the own space are allowed, and from another one or without a source they become plain uploads', async () => {
    const port = await open();
    for (const from of ['space-1/app-2-packages', 'space-2/app-1-packages', 'space-1/../space-2/x', ''])
      await post(port, `?mount=${digest}&from=${encodeURIComponent(from)}`);
    await post(port, `?mount=${digest}`);
    await post(port, `?%66rom=space-2%2Fx&%6dount=${digest}`);
    const own = `?mount=${encodeURIComponent(digest)}&from=space-1%2Fapp-2-packages`;
    expect(seenPaths()).toEqual([
      `${start}${own}`,
      start,
      `${start}?mount=${encodeURIComponent(digest)}&from=space-1%2F..%2Fspace-2%2Fx`,
      start,
      start,
      start,
    ]);
  });

  test('with duplicate parameters are refused, so that gate and registry cannot read different values', async () => {
    const port = await open();
    expect((await post(port, `?mount=${digest}&from=space-1/a-cache&from=space-2/a-cache`)).status).toBe(400);
    expect(scene.seen).toEqual([]);
  });

  test.each(['sha256:' + 'b'.repeat(63), 'sha256:' + 'B'.repeat(64), 'sha512:' + 'b'.repeat(128), 'x'.repeat(15_000), ''])(
    'and ends of uploads must name a digest, not any text (%#), because the gate would remember it',
    async (text) => {
      const port = await open();
      const named = encodeURIComponent(text);
      expect((await post(port, `?mount=${named}&from=space-1/app-2-packages`)).status).toBe(400);
      expect((await post(port, `?mount=${named}&from=space-2/app-2-packages`)).status).toBe(400);
      expect((await post(port, `?digest=${named}`, {}, 'b')).status).toBe(400);
      const answer = await ask(port, { method: 'PUT', path: `${start}u?digest=${named}`, headers, body: 'b' });
      expect([answer.status, answer.body.toString()]).toEqual([400, expect.stringContaining('"DIGEST_INVALID"')]);
      expect(scene.seen).toEqual([]);
    },
  );

  test('in a form body are not read by the registry, because the body is declared as bytes', async () => {
    const port = await open();
    await post(port, '', { 'content-type': 'application/x-www-form-urlencoded' }, `mount=${digest}&from=space-2/x`);
    expect(scene.seen[0]?.headers['content-type']).toBe('application/octet-stream');
  });
});

describe('headers', () => {
  test('only those of the registry API reach the registry, and no credential does', async () => {
    const port = await open();
    const evil = {
      'x-forwarded-host': 'evil',
      'x-forwarded-proto': 'https',
      forwarded: 'host=evil',
      'x-http-method-override': 'DELETE',
      cookie: 'a=b',
      host: 'evil',
      'x-kf-authorization': headers.authorization,
    };
    await ask(port, {
      path: `/v2/${repository}/manifests/latest`,
      headers: { ...headers, ...evil, accept: 'application/json', range: 'bytes=0-1' },
    });
    const names = Object.keys(scene.seen[0]?.headers ?? {}).toSorted();
    expect(names).toEqual(['accept', 'connection', 'host', 'range']);
    expect(scene.seen[0]?.headers.host).toMatch(/^127\.0\.0\.1:/);
  });

  test('a Location becomes a path of the same repository, and one to another place is removed', async () => {
    const locations = [
      `http://127.0.0.1:5002/v2/${repository}/blobs/uploads/u?_state=s`,
      `/v2/${repository}/blobs/uploads/u`,
      'http://evil/steal',
      '/v2/space-2/x/blobs/uploads/u',
      '//evil/v2/',
      `/v2/${repository}/../../space-2/x/`,
    ];
    let next = 0;
    const port = await open((_request, response) => void response.writeHead(202, { location: locations[next++] ?? '' }).end());
    const got: unknown[] = [];
    for (const _ of locations)
      got.push((await ask(port, { method: 'POST', path: `/v2/${repository}/blobs/uploads/`, headers })).headers.location);
    expect(got).toEqual([
      `/v2/${repository}/blobs/uploads/u?_state=s`,
      `/v2/${repository}/blobs/uploads/u`,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('a request smuggled behind another one, or with two lengths, is refused', async () => {
    const port = await open();
    const raw = (text: string): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(text));
        let got = '';
        socket.on('data', (chunk: Buffer) => (got += chunk.toString()));
        socket.on('close', () => resolve(got));
        socket.setTimeout(patienceMs, () => socket.destroy());
      });
    const head = `POST /v2/${repository}/blobs/uploads/ HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\n`;
    expect(await raw(`${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 400/,
    );
    expect(await raw(`${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`)).toMatch(/^HTTP\/1.1 400/);
    expect(scene.seen).toEqual([]);
  });
});

describe('bodies', () => {
  test('arrive as sent in both directions', async () => {
    const body = randomBytes(3_000_000);
    const port = await open((request, response) => void request.pipe(response.writeHead(200, { 'content-length': body.length })));
    const answer = await ask(port, { method: 'PATCH', path: `/v2/${repository}/blobs/uploads/u`, headers, body });
    expect(createHash('sha256').update(answer.body).digest('hex')).toBe(createHash('sha256').update(body).digest('hex'));
  });

  test('wait in the sender while the registry does not read, instead of filling the memory of the gate', async () => {
    const port = await open((request) => void request.pause());
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(
      `PATCH /v2/${repository}/blobs/uploads/u HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\nContent-Length: 400000000\r\n\r\n`,
    );
    const chunk = Buffer.alloc(1_000_000);
    const before = process.memoryUsage().arrayBuffers;
    let accepted = 0;
    for (let index = 0; index < 200; index += 1) {
      const drained =
        socket.write(chunk) ||
        (await Promise.race([new Promise((resolve) => socket.once('drain', () => resolve(true))), sleep(200, false)]));
      if (drained === false) break;
      accepted += 1;
    }
    socket.destroy();
    expect(accepted).toBeLessThan(60);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(60_000_000);
  });

  test('cut by the registry are cut for the client too', async () => {
    const port = await open((_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half');
      setTimeout(() => response.destroy(), 20);
    });
    await expect(ask(port, { path: `/v2/${repository}/blobs/${digest}`, headers })).rejects.toThrow(/aborted|socket/);
  });

  test('of a client that disconnects end the request at the registry', async () => {
    let ended: (value: string) => void = () => undefined;
    const gone = new Promise<string>((resolve) => (ended = resolve));
    const port = await open((request) => {
      request.on('data', () => undefined).on('close', () => ended(request.complete ? 'complete' : 'cut'));
      socket.destroy();
    });
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `PATCH /v2/${repository}/blobs/uploads/u HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\nContent-Length: 100\r\n\r\nhello`,
    );
    expect(await gone).toBe('cut');
  });

  test('of a client that disconnects while the usage is computed leave nothing open at the registry', async () => {
    let open = 0;
    const [counting, counted] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const statfs = async () => {
      counting.resolve(undefined);
      await counted.promise;
      return { blocks: 100, bavail: 100, bsize: 4096, files: 0, ffree: 0 };
    };
    const upstream: Upstream = (request, response) => {
      open += 1;
      request.on('close', () => (open -= 1)).resume();
      if (request.method === 'GET') response.end('{}');
    };
    scene = await openGate({ upstream, capacity: { statfs } });
    const socket = connect(scene.port('push'), '127.0.0.1');
    socket.write(
      `PATCH /v2/${repository}/blobs/uploads/u HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\nContent-Length: 100\r\n\r\n`,
    );
    await counting.promise;
    socket.destroy();
    await vi.waitFor(() => expect(scene.lines).toHaveLength(1), { timeout: patienceMs });
    counted.resolve(undefined);
    await ask(scene.port('push'), { path: `/v2/${repository}/blobs/${digest}`, headers });
    await vi.waitFor(() => expect(open).toBe(0), { timeout: patienceMs });
  });

  test.each(['keeps', 'ends'] as const)(
    'that the registry answers before it has read them do not delay the next request on the connection (it %s its own)',
    async (how) => {
      const early: Upstream = ({ method, socket }, response) => {
        if (method !== 'PATCH' || how === 'keeps') {
          response.writeHead(method === 'PATCH' ? 400 : 200).end('{}');
          return;
        }
        // As Go does: the answer, its end of the connection, and half a second later the rest.
        socket.pause();
        socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}');
        setTimeout(() => socket.destroy(), 500).unref();
      };
      const port = await open(early);
      // As the API server does: one connection for the following requests if the whole body was sent.
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const ask = (method: string, path: string, body?: Buffer): Promise<number> =>
        new Promise((resolve, reject) => {
          const sent = request(
            { host: '127.0.0.1', port, agent, method, path, headers: { ...headers, 'content-length': body?.length ?? 0 } },
            (answer) => answer.resume().on('end', () => resolve(answer.statusCode ?? 0)),
          );
          sent.on('error', reject).end(body);
        });
      expect(await ask('PATCH', `/v2/${repository}/blobs/uploads/1?_state=x`, randomBytes(8 * 1024 * 1024))).toBe(400);
      // A gate that blocked it did so for 75 s, longer than a test may take.
      expect(await ask('GET', `/v2/${repository}/blobs/${digest}`)).toBe(200);
      agent.destroy();
    },
  );

  test('of requests refused with 401 are still read for a while, so that the client sees the answer', async () => {
    const port = await open();
    const answer = await ask(port, { method: 'PATCH', path: `/v2/${repository}/blobs/uploads/u`, body: Buffer.alloc(2_000_000) });
    expect(answer.status).toBe(401);
  });
});

describe('around the requests', () => {
  test('a registry that is away causes a 502 with a sentence', async () => {
    const port = await open((request) => void request.socket.destroy());
    const answer = await ask(port, { path: `/v2/${repository}/manifests/latest`, headers });
    expect([answer.status, JSON.parse(answer.body.toString())]).toEqual([
      502,
      { errors: [{ code: 'UNAVAILABLE', message: 'the registry behind the gate does not answer' }] },
    ]);
  });

  test('the access log has user, path and status, and no secret', async () => {
    const port = await open();
    await ask(port, { path: `/v2/${repository}/tags/list?last=secret`, headers });
    await ask(port, { path: '/v2/', headers: { authorization: basic(user, 'wrong') } });
    await ask(port, { path: '/healthz' });
    const logged = () => scene.lines.map((line) => [line.port, line.method, line.path, line.status, line.user]);
    await expect.poll(logged).toEqual([
      ['push', 'GET', `/v2/${repository}/tags/list`, 200, user],
      ['push', 'GET', '/v2/', 401, '-'],
    ]);
    expect(JSON.stringify(scene.lines)).not.toMatch(/secret|wrong|Basic/);
  });

  test('/readyz asks the registry behind the gate', async () => {
    const upstream: { status: number | undefined } = { status: 200 };
    scene = await openGate({
      upstream: (request, response) => {
        if (upstream.status === undefined) request.socket.destroy();
        else response.writeHead(upstream.status).end();
      },
    });
    const ready = async (): Promise<[number, string]> => {
      const answer = await ask(scene.port('push'), { path: '/readyz' });
      return [answer.status, answer.body.toString()];
    };
    expect(await ready()).toEqual([200, 'ok']);
    upstream.status = 500;
    expect(await ready()).toEqual([503, 'the registry answers 500']);
    upstream.status = undefined;
    expect(await ready()).toEqual([503, 'the registry does not answer: socket hang up']);
  });

  test('/healthz answers without a credential', async () => {
    const port = await open();
    const answer = await ask(port, { path: '/healthz' });
    expect([answer.status, answer.body.toString()]).toEqual([200, 'ok']);
  });
});
