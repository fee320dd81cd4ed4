// Messages about routes are true: OK when requests get through, and no answer of an app after unmap-route and stop.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { get, getSecurely, securePort, type Answer } from '../support/http.ts';
import { Kf, kubectl, kubectlJson } from '../support/kf.ts';
import { applyAsAdmin } from '../support/members.ts';
import { until } from '../support/until.ts';

const sample = `${process.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample`;
const domain = 'apps.localhost';
const name = `routed-${randomUUID().slice(0, 6)}`;
let kf: Kf;

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', name, '-o', `${sample}:1`, '-m', '64M');
});

afterAll(async () => {
  for (const app of [name, `${name}-worker`]) await kf.run(['delete', app, '-r', '-f']);
  await kf.remove();
});

const log = async (app = name): Promise<string> => (await kf.ok('logs', app, '--recent')).stdout;
const requestsIn = (text: string): number => text.split('\n').filter((line) => /OUT (GET|HEAD) /.test(line)).length;

test('a start leaves one request of kf in the log, and so does a push', async () => {
  await until('the request of kf in the log', async () => requestsIn(await log()) > 0);
  expect(requestsIn(await log())).toBe(1);
  expect((await get(`${name}.${domain}`, '/headers')).status).toBe(200);
});

describe('a request with https', () => {
  const host = `${name}.${domain}`;
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  let ca: string;
  beforeAll(async () => {
    ca = (await kf.ok('ca-certificate')).stdout;
  });

  const headersAtApp = async (headers: Record<string, string> = {}): Promise<Record<string, string>> =>
    JSON.parse((await getSecurely(host, { ca, headers }, '/headers')).body) as Record<string, string>;

  test('reaches the app with the address of the client, its protocol, and an ID, whatever the client says of them', async () => {
    const [one, other] = await Promise.all([headersAtApp(), headersAtApp({ 'x-forwarded-proto': 'ftp', 'x-vcap-request-id': 'mine' })]);
    const own = { 'x-forwarded-proto': 'https', 'x-forwarded-host': host, 'x-forwarded-for': expect.stringMatching(/^[0-9.]+$/) as string };
    expect([one, other]).toMatchObject([own, own]);
    expect([one['x-vcap-request-id'], other['x-vcap-request-id']]).toEqual([expect.stringMatching(uuid), expect.stringMatching(uuid)]);
    expect(one['x-vcap-request-id']).not.toBe(other['x-vcap-request-id']);
    expect(one['x-request-id']).toBe(one['x-vcap-request-id']);
  });

  test('keeps the ID that its client gave it', async () => {
    expect(await headersAtApp({ 'x-request-id': 'of-the-client' })).toMatchObject({ 'x-request-id': 'of-the-client' });
  });

  test('may use HTTP/2', async () => {
    const session = connect(`https://127.0.0.1:${securePort()}`, { ca, servername: host });
    const stream = session.request({ ':path': '/', ':authority': host });
    try {
      expect(await text(stream)).toContain('kf sample 1, instance 0');
      expect(session.alpnProtocol).toBe('h2');
    } finally {
      session.close();
    }
  });

  test('may become a WebSocket', async () => {
    const socket = new WebSocket(`wss://${host}:${securePort()}/`, {
      ca,
      lookup: (_, __, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
    });
    const [greeting] = (await once(socket, 'message')) as [Buffer];
    socket.send('echo');
    const [echo] = (await once(socket, 'message')) as [Buffer];
    socket.close();
    expect([String(greeting), String(echo)]).toEqual(['by https', 'echo']);
  });
});

/** Which server answered; for an unknown one the whole answer, so that a failure shows it. */
function whoAnswered({ status, headers, body }: Answer): string {
  if (headers['x-sample-version'] === '1') return 'app';
  if (headers['x-cf-routererror'] === 'unknown_route' && status === 404) return 'page of unknown routes';
  return `${status} ${JSON.stringify(headers)} ${body.slice(0, 200)}`;
}

/** More than one request, because a correct answer must stay correct. */
async function whoAnswers(host: string, ...paths: string[]): Promise<string[]> {
  const answers: string[] = [];
  for (const path of [...paths, ...paths, ...paths]) answers.push(whoAnswered(await get(`${host}.${domain}`, path)));
  return [...new Set(answers)];
}

test.each([1, 2, 3])('map-route says OK when requests reach the app, unmap-route when none do any more: round %i', async (round) => {
  const host = `${name}-${round}`;
  await kf.ok('map-route', name, domain, '-n', host);
  expect(await whoAnswers(host, '/')).toEqual(['app']);
  await kf.ok('unmap-route', name, domain, '-n', host);
  expect(await whoAnswers(host, '/')).toEqual(['page of unknown routes']);
  await kf.ok('map-route', name, domain, '-n', host, '--path', '/Path');
  expect(await whoAnswers(host, '/path', '/Path', '/PATH/x')).toEqual(['app']);
  expect(await whoAnswers(host, '/')).toEqual(['page of unknown routes']);
  await kf.ok('map-route', name, domain, '-n', host);
  expect(await whoAnswers(host, '/')).toEqual(['app']);
});

test.each([['without'], ['with', '-r']])('no request reaches an app after delete %s its routes', async (_, ...flags) => {
  const host = `${name}-short`;
  await kf.ok('push', host, '-o', `${sample}:1`, '-m', '64M');
  expect(await whoAnswers(host, '/')).toEqual(['app']);
  const statuses: number[] = [];
  let ended = false;
  const asking = (async () => {
    while (!ended) statuses.push((await get(`${host}.${domain}`)).status);
  })();
  await kf.ok('delete', host, '-f', ...flags);
  const atOnce = await Promise.all(Array.from({ length: 5 }, () => get(`${host}.${domain}`)));
  ended = true;
  await asking;
  expect(atOnce.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404]);
  // In between there was no answer of a gateway that knew no instance any more.
  expect([...new Set(statuses)]).toEqual([200, 404]);
  await kf.ok('delete-orphaned-routes', '-f');
});

test('a route exists from create-route to delete-route, and answers while an app is mapped to it', async () => {
  const host = `${name}-own`;
  const address = [domain, '-n', host, '--path', '/cart'];
  const check = async (): Promise<string> => (await kf.ok('check-route', ...address)).stdout;
  await kf.ok('create-route', ...address);
  expect(await check()).toContain(`Route '${host}.${domain}/cart' does exist.`);
  expect(await whoAnswers(host, '/cart')).toEqual(['page of unknown routes']);
  await kf.ok('map-route', name, ...address);
  expect(await whoAnswers(host, '/cart')).toEqual(['app']);
  expect((await kf.ok('route', ...address)).stdout).toMatch(new RegExp(`\\n\\t${name} +web +\\d+ +http1\\n`));
  await kf.ok('delete-route', ...address, '-f');
  expect(await whoAnswers(host, '/cart')).toEqual(['page of unknown routes']);
  expect(await check()).toContain(`Route '${host}.${domain}/cart' does not exist.`);
});

test('an operator makes a domain, moves a route of it to another space, and deletes the domain with its route', async () => {
  const admin = await Kf.create('admin');
  const [own, other] = [`${name}.example.com`, `${name}-other`];
  const made = JSON.parse((await admin.ok('create-space', other, '--json')).stdout) as { result: { guid: string; org: { guid: string } } };
  try {
    await admin.ok('create-shared-domain', own);
    await kf.ok('map-route', name, own, '-n', 'shop');
    expect(whoAnswered(await get(`shop.${own}`))).toBe('app');
    await kf.ok('unmap-route', name, own, '-n', 'shop');
    await admin.ok('move-route', own, '-n', 'shop', '-s', other);
    expect((await admin.ok('routes', '--space', other)).stdout).toContain(own);
    expect((await kf.ok('check-route', own, '-n', 'shop')).stdout).toContain('does exist.');
    expect((await kf.run(['map-route', name, own, '-n', 'shop'])).code).toBe(1);
    await admin.ok('delete-shared-domain', own, '-f');
    expect((await admin.ok('routes', '--space', other)).stdout).toContain('No routes found.');
    expect((await kf.ok('domains')).stdout).not.toContain(own);
  } finally {
    await kubectl('delete', 'cfspace', '-n', made.result.org.guid, made.result.guid, '--wait=false');
    await admin.remove();
  }
});

describe('an app that speaks HTTP/2', () => {
  const app = `${name}-grpc`;
  const [calls, pages] = [`${app}.${domain}`, `${app}-pages.${domain}`];
  let folder: string;
  let ca: string;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'kf-grpc-'));
    ca = (await kf.ok('ca-certificate')).stdout;
    const env = { SCRIPT: await readFile('test/fixtures/apps/grpc-echo/server.cjs', 'utf8'), SPEAKS: 'both' };
    const routes = [{ route: pages }, { route: calls, protocol: 'http2' }];
    const manifest = {
      applications: [{ name: app, docker: { image: `${sample}:1` }, memory: '64M', command: 'node -e "$SCRIPT"', env, routes }],
    };
    await writeFile(path.join(folder, 'manifest.yml'), JSON.stringify(manifest));
    await kf.ok('push', '-f', path.join(folder, 'manifest.yml'));
  }, 120_000);

  afterAll(async () => {
    await kf.run(['delete', app, '-r', '-f']);
    await rm(folder, { recursive: true, force: true });
  });

  /** One call of gRPC: a message with its length before it, and the result in the trailers. */
  async function call(url: string): Promise<{ status: unknown; message: unknown; echo: string }> {
    const session = connect(url, { ca, servername: calls });
    try {
      const request = {
        ':method': 'POST',
        ':path': '/echo.Echo/Say',
        ':authority': calls,
        te: 'trailers',
        'content-type': 'application/grpc+proto',
      };
      const stream = session.request(request);
      const [answered] = [once(stream, 'response') as Promise<[Record<string, unknown>]>];
      // An answer of something else has no trailers.
      const closed = once(stream, 'close').then(async (): Promise<never> => {
        throw new Error(`an answer without trailers: ${JSON.stringify((await answered)[0])}`);
      });
      const trailers = Promise.race([once(stream, 'trailers') as Promise<[Record<string, unknown>]>, closed]);
      stream.end('\0\0\0\0\x05hello');
      const [echo, [{ 'grpc-status': status, 'grpc-message': message }]] = await Promise.all([text(stream), trailers]);
      return { status, message, echo };
    } finally {
      session.close();
    }
  }
  const answered = { status: '0', message: '/echo.Echo/Say', echo: '\0\0\0\0\x05hello' };
  const secure = `https://127.0.0.1:${securePort()}`;
  const plain = `http://127.0.0.1:${process.env['KF_CLUSTER_HTTP_PORT'] ?? '80'}`;

  test('and HTTP/1.1 gets each by the route of that protocol', async () => {
    // The start ends when the app answers by one of its routes. Each has a Service, and the gateway learns of their addresses one after the other.
    await until('calls to reach the app', async () => isDeepStrictEqual(await call(secure), answered));
    await until('pages of the app', async () => (await get(pages, '/page')).body === 'HTTP/1.1 /page');
  });

  test('only, answers gRPC calls by https and by http; update-destination says OK when the gateway speaks the protocol', async () => {
    await kf.ok('set-env', app, 'SPEAKS', 'http2');
    await kf.ok('restart', app);
    expect(await call(secure)).toEqual(answered);
    expect(await call(plain)).toEqual(answered);
    expect((await get(pages)).status).toBe(500);
    await kf.ok('update-destination', app, domain, '-n', `${app}-pages`, '--app-protocol', 'http2');
    expect((await get(pages)).headers['content-type']).toBe('application/grpc+proto');
  });
});

test('a domain redirects http to https, except what has a route of its own, until it answers http again', async () => {
  const admin = await Kf.create('admin');
  const own = `secure-${name}.example.com`;
  const host = `shop.${own}`;
  const ca = (await kf.ok('ca-certificate')).stdout;
  const challenge = '/.well-known/acme-challenge/token';
  const [gateway] = (await kubectlJson<{ items: { metadata: { namespace: string } }[] }>('get', 'gateways', '-A')).items;
  // As cert-manager answers a challenge of an ACME server (http-01): one host, one path.
  const solver = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: `solver-${name}`, namespace: 'kf-system' },
    spec: {
      parentRefs: [{ name: 'kf', namespace: gateway?.metadata.namespace }],
      hostnames: [host],
      rules: [{ matches: [{ path: { type: 'Exact', value: challenge } }], backendRefs: [{ name: 'kf-pages', port: 80 }] }],
    },
  };
  try {
    await admin.ok('create-shared-domain', own, '--http-redirect', 'on');
    await kf.ok('map-route', name, own, '-n', 'shop');
    const redirected = await until('the redirection', async () => {
      const answer = await get(host, '/page?x=1');
      return answer.status === 301 ? answer : undefined;
    });
    // A URL has no port where it is the usual one.
    const expected = new URL(`https://${host}:${securePort()}/page?x=1`);
    expect(new URL(String(redirected.headers['location'])).href).toBe(expected.href);
    const secure = await until('the certificate of the domain', () => getSecurely(host, { ca }).catch(() => undefined));
    expect(secure.headers['x-sample-version']).toBe('1');
    await applyAsAdmin(solver);
    await until('the answer to the challenge', async () => (await get(host, challenge)).headers['x-cf-routererror'] === 'unknown_route');
    await admin.ok('create-shared-domain', own, '--http-redirect', 'off');
    await until('an answer by http', async () => (await get(host)).headers['x-sample-version'] === '1');
  } finally {
    await kubectl('delete', 'httproute', '-n', 'kf-system', solver.metadata.name, '--ignore-not-found');
    await admin.ok('delete-shared-domain', own, '-f');
    await admin.remove();
  }
});

describe('URLs without an app', () => {
  test("an unknown host gets cf's 404 page", async () => {
    const page = await get(`nobody-${name}.${domain}`);
    expect([page.status, page.headers['x-cf-routererror']]).toEqual([404, 'unknown_route']);
    expect(page.body).toContain(`Requested route ('nobody-${name}.${domain}') does not exist.`);
  });

  test('the URL of an app gets it as soon as kf stop has ended, and the app answers again as soon as kf start has', async () => {
    for (const _round of [1, 2]) {
      await kf.ok('stop', name);
      expect(await whoAnswers(name, '/')).toEqual(['page of unknown routes']);
      await kf.ok('start', name);
      expect(await whoAnswers(name, '/')).toEqual(['app']);
    }
  });

  test('and apps answer as before while the controller is away', async () => {
    await kubectl('scale', 'deployment', '-n', 'kf-system', 'kf-controller', '--replicas=0');
    await kubectl('wait', '--for=delete', 'pod', '-n', 'kf-system', '-l', 'app=kf-controller', '--timeout=120s');
    try {
      expect((await get(`${name}.${domain}`)).headers['x-sample-version']).toBe('1');
      expect((await get(`nobody-${name}.${domain}`)).headers['x-cf-routererror']).toBe('unknown_route');
      const ran = await kf.run(['map-route', name, domain, '-n', `${name}-away`]);
      expect(ran.code).toBe(1);
      expect(ran.stderr).toContain('no controller has taken it up');
    } finally {
      await kubectl('scale', 'deployment', '-n', 'kf-system', 'kf-controller', '--replicas=1');
      await kubectl('rollout', 'status', 'deployment', '-n', 'kf-system', 'kf-controller', '--timeout=120s');
    }
  });
});

test('an app with health check type process starts with its default route, although it answers no request', async () => {
  const worker = `${name}-worker`;
  await kf.ok('push', worker, '-o', `${sample}:1`, '-m', '64M', '-u', 'process', '-c', 'node -e "setInterval(() => undefined, 1000)"');
  expect((await get(`${worker}.${domain}`)).status).toBe(502);
  await kf.ok('restart', worker);
});
