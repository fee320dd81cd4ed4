import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { clusterAt } from '../../../src/lib/kube/client.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { resolveEndpoint } from '../../../src/lib/kube/endpoint.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';
import type { Call, KubeconfigParts } from '../../support/apiserver.ts';
import { CertificateAuthority } from '../../support/certificates.ts';
import { asStored } from '../../support/stored.ts';

let server: ScriptedApiServer;
let dir: string;
const open: Cluster[] = [];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'kf-transport-'));
  server = await ScriptedApiServer.start();
});

afterEach(async () => {
  for (const cluster of open.splice(0)) cluster.close();
  await server.stop();
  rmSync(dir, { recursive: true });
});

async function to(target: ScriptedApiServer, parts: KubeconfigParts = {}, tuning: { patienceMs?: number } = {}): Promise<Cluster> {
  const cluster = clusterAt(await resolveEndpoint({ kubeconfig: target.kubeconfig(parts), env: {} }), { backoffBaseMs: 5, ...tuning });
  open.push(cluster);
  return cluster;
}

const empty = (call: Call): void => call.json({ metadata: { resourceVersion: '1' }, items: [] });
const map = asStored({ metadata: { name: 'x', namespace: 'ns' } });

describe('TLS', () => {
  test('trusts the authority of the kubeconfig and shows the client certificate', async () => {
    const authority = new CertificateAuthority();
    const secure = await ScriptedApiServer.start({ authority });
    try {
      secure.on('GET /api/v1/pods', empty);
      const me = authority.client('jane', ['developers']);
      const user = {
        'client-certificate-data': Buffer.from(me.cert).toString('base64'),
        'client-key-data': Buffer.from(me.key).toString('base64'),
      };
      await (await to(secure, { user })).list(podType);
      expect(secure.calls[0]?.clientName).toBe('jane');

      const stranger = Buffer.from(new CertificateAuthority('other').cert).toString('base64');
      const wrong = await to(secure, { cluster: { 'certificate-authority-data': stranger } });
      await expect(wrong.list(podType)).rejects.toMatchObject({
        code: 'unreachable',
        message: expect.stringContaining('not signed by the authority of the kubeconfig') as string,
      });
      const careless = await to(secure, { cluster: { 'certificate-authority-data': undefined, 'insecure-skip-tls-verify': true } });
      await careless.list(podType);
    } finally {
      await secure.stop();
    }
  });

  test('checks the name, or the one of tls-server-name', async () => {
    const authority = new CertificateAuthority();
    const secure = await ScriptedApiServer.start({ authority, names: ['kubernetes.internal'] });
    try {
      secure.on('GET /api/v1/pods', empty);
      await expect((await to(secure)).list(podType)).rejects.toThrow('its certificate was made for another name');
      await (await to(secure, { cluster: { 'tls-server-name': 'kubernetes.internal' } })).list(podType);
    } finally {
      await secure.stop();
    }
  });
});

describe('connections', () => {
  test('are kept and used again', async () => {
    server.on('GET /api/v1/pods', empty);
    const cluster = await to(server);
    for (let index = 0; index < 5; index++) await cluster.list(podType);
    expect(server.connections).toBe(1);
  });

  test('a server that never answered is reported at once', async () => {
    const cluster = await to(server);
    await server.halt();
    await expect(cluster.list(podType)).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('nothing listens there') as string,
    });
  });

  test('kf waits for a server that answered before while it restarts', async () => {
    server.on('GET /api/v1/pods', empty);
    server.on('POST /api/v1/namespaces/ns/configmaps', (call) => call.json(map, 201));
    const cluster = await to(server);
    await cluster.list(podType);
    await server.halt();
    const pending = Promise.all([cluster.list(podType), cluster.create(configMapType, map)]);
    setTimeout(() => void server.listen(), 300);
    await pending;
    expect(server.callsOf('POST .*')).toHaveLength(1);
  });

  test('kf does not wait for such a server for ever', async () => {
    server.on('GET /api/v1/pods', empty);
    const cluster = await to(server, {}, { patienceMs: 150 });
    await cluster.list(podType);
    await server.halt();
    await expect(cluster.list(podType)).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('a request that may have had an effect is not sent again when the connection breaks, and one that is safe is', async () => {
    server.on(
      '(GET|PATCH) .*',
      (call) => call.drop(),
      (call) => call.drop(),
      (call) => call.json({ ...map, metadata: {}, items: [] }),
    );
    server.on('(POST|PUT) .*', (call) => call.drop());
    const cluster = await to(server);
    await cluster.list(podType);
    expect(server.callsOf('GET .*')).toHaveLength(3);
    await expect(cluster.raw({ method: 'POST', path: '/write' })).rejects.toMatchObject({ code: 'unreachable', reason: 'ECONNRESET' });
    await expect(cluster.create(configMapType, { metadata: { namespace: 'ns' } })).rejects.toMatchObject({ code: 'unreachable' });
    await expect(cluster.replace(configMapType, map)).rejects.toMatchObject({ code: 'unreachable' });
    expect(server.callsOf('(POST|PUT) .*')).toHaveLength(3);
  });

  const maps = '/api/v1/namespaces/ns/configmaps';
  const sent = asStored({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', namespace: 'ns', labels: { by: 'me' } },
    data: { a: '1' },
  });
  const defaulted = { ...sent, metadata: { ...sent.metadata, labels: { by: 'me', since: 'now' } }, immutable: false };
  const foreign = { ...sent, data: { a: '2' } };

  test.each([
    ['had not arrived', undefined, 'written'],
    ['had arrived', defaulted, 'written'],
    ['finds an object of somebody else', foreign, 'AlreadyExists'],
  ])('a create is sent again when the connection breaks: one that %s', async (_what, live, outcome) => {
    const answer = (call: Call): void =>
      live === undefined ? call.json(sent, 201) : call.fail(409, 'AlreadyExists', 'configmaps "x" already exists', { name: 'x' });
    server.on(`POST ${maps}`, (call) => call.drop(), answer);
    server.on(`GET ${maps}/x`, (call) => call.json(live));
    const created = (await to(server)).create(configMapType, sent);
    if (outcome === 'written') expect(await created).toMatchObject({ data: { a: '1' } });
    else await expect(created).rejects.toMatchObject({ reason: outcome });
    expect(server.callsOf(`POST ${maps}`)).toHaveLength(2);
  });

  test('a create that is refused at once is not compared: somebody else made the object', async () => {
    server.on(`POST ${maps}`, (call) => call.fail(409, 'AlreadyExists', 'configmaps "x" already exists', { name: 'x' }));
    await expect((await to(server)).create(configMapType, sent)).rejects.toMatchObject({ reason: 'AlreadyExists' });
    expect(server.calls).toHaveLength(1);
  });

  const patch = { metadata: { resourceVersion: '3', annotations: { lock: null } }, data: { a: '1' } };
  const locked = { ...sent, metadata: { ...sent.metadata, annotations: { lock: 'other' } } };

  test.each([
    ['had not arrived', undefined, 'written'],
    ['had arrived', defaulted, 'written'],
    ['comes after a change of somebody else', locked, 'Conflict'],
  ])('a merge patch with a resourceVersion is sent again when the connection breaks: one that %s', async (_what, live, outcome) => {
    const answer = (call: Call): void =>
      live === undefined ? call.json(sent) : call.fail(409, 'Conflict', 'the object has been modified', { name: 'x' });
    server.on(`PATCH ${maps}/x`, (call) => call.drop(), answer);
    server.on(`GET ${maps}/x`, (call) => call.json(live));
    const patched = (await to(server)).mergePatch(configMapType, 'ns', 'x', patch);
    if (outcome === 'written') expect(await patched).toMatchObject({ data: { a: '1' } });
    else await expect(patched).rejects.toMatchObject({ reason: outcome });
    expect(server.callsOf(`PATCH ${maps}/x`)).toHaveLength(2);
  });

  test('a write whose answer breaks off is sent again too', async () => {
    const breakOff = async (call: Call): Promise<void> => {
      await call.write('{"metadata":{"na');
      call.drop();
    };
    server.on(`POST ${maps}`, breakOff, (call) => call.fail(409, 'AlreadyExists', 'configmaps "x" already exists', { name: 'x' }));
    server.on(`GET ${maps}/x`, (call) => call.json(defaulted));
    expect(await (await to(server)).create(configMapType, sent)).toMatchObject({ data: { a: '1' } });
  });

  test('a server that sends nothing counts as unreachable', async () => {
    server.on('(GET|POST) /slow', (call) => call.closed);
    // Far more than a busy machine needs to make a connection and to send a request.
    const cluster = await to(server, {}, { patienceMs: 3_000 });
    const silence = { code: 'unreachable', message: expect.stringContaining('no answer came in time') as string };
    await expect(cluster.raw({ method: 'POST', path: '/slow', idleTimeoutMs: 500 })).rejects.toMatchObject(silence);
    expect(server.calls).toHaveLength(1);
    await expect(cluster.raw({ method: 'GET', path: '/slow', idleTimeoutMs: 500 })).rejects.toMatchObject(silence);
    expect(server.calls.length).toBeGreaterThan(2);
  });
});

describe('a busy server', () => {
  test('is asked again after the time that it names, for every verb', async () => {
    server.on(
      'POST .*',
      (call) => call.fail(429, 'TooManyRequests', 'slow down', {}, { 'Retry-After': '0' }),
      (call) => call.json(map, 201),
    );
    await (await to(server)).create(configMapType, map);
    expect(server.calls).toHaveLength(2);
  });

  test('that answers 503 without a time is starting: reads wait, writes do not', async () => {
    server.on('GET .*', (call) => call.fail(503, 'ServiceUnavailable', 'starting'), empty);
    server.on('POST .*', (call) => call.fail(503, 'ServiceUnavailable', 'starting'));
    const cluster = await to(server);
    await cluster.list(podType);
    await expect(cluster.create(configMapType, map)).rejects.toMatchObject({ code: 'unreachable', status: 503 });
  });
});

describe('tokens', () => {
  const guard =
    (token: string) =>
    (call: Call): void => {
      if (call.headers.authorization === `Bearer ${token}`) empty(call);
      else call.fail(401, 'Unauthorized', 'Unauthorized');
    };

  test('an expired one is renewed once and the request repeated', async () => {
    const tokenFile = join(dir, 'token');
    writeFileSync(tokenFile, 'old');
    server.on('GET /api/v1/pods', guard('old'));
    const cluster = await to(server, { user: { tokenFile } });
    await cluster.list(podType);
    server.on('GET /api/v1/pods', guard('new'));
    writeFileSync(tokenFile, 'new');
    await cluster.list(podType);
    expect(server.calls.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer old', 'Bearer new']);
    server.on('GET /api/v1/pods', guard('other'));
    await expect(cluster.list(podType)).rejects.toMatchObject({ code: 'forbidden', status: 401 });
    expect(server.calls).toHaveLength(4);
  });

  test('a streamed body cannot be repeated, but the next request has the new token', async () => {
    const tokenFile = join(dir, 'token');
    writeFileSync(tokenFile, 'old');
    server.on('PUT /upload', (call) =>
      call.headers.authorization === 'Bearer new' ? call.text(call.body) : call.fail(401, 'Unauthorized', 'Unauthorized'),
    );
    const cluster = await to(server, { user: { tokenFile } });
    const put = (): Promise<{ status: number }> =>
      cluster.raw({ method: 'PUT', path: '/upload', body: Readable.from([Buffer.from('la'), Buffer.from('yer')]) });
    writeFileSync(tokenFile, 'old');
    const first = put();
    writeFileSync(tokenFile, 'new');
    expect((await first).status).toBe(401);
    expect((await put()).status).toBe(200);
    expect(server.calls[1]?.body).toBe('layer');
  });

  test('a body that can be made again is sent again with the new token', async () => {
    const tokenFile = join(dir, 'token');
    writeFileSync(tokenFile, 'old');
    let made = 0;
    server.on('PUT /upload', (call) => {
      writeFileSync(tokenFile, 'new');
      if (call.headers.authorization === 'Bearer new') call.text(call.body);
      else call.fail(401, 'Unauthorized', 'Unauthorized');
    });
    const cluster = await to(server, { user: { tokenFile } });
    const body = (): Readable => Readable.from([Buffer.from('layer '), Buffer.from(String(++made))]);
    expect((await cluster.raw({ method: 'PUT', path: '/upload', body })).status).toBe(200);
    expect(server.calls.map((call) => call.body)).toEqual(['layer 1', 'layer 2']);
  });

  test('a request that was interrupted while its credential was fetched is not sent any more', async () => {
    server.on('POST .*', (call) => call.json(map, 201));
    const endpoint = await resolveEndpoint({ kubeconfig: server.kubeconfig(), env: {} });
    const interrupted = new AbortController();
    const get = async () => {
      interrupted.abort();
      return Promise.resolve({});
    };
    const cluster = clusterAt({ ...endpoint, credentials: { get, renew: async () => Promise.resolve(false) } });
    open.push(cluster);
    await expect(cluster.create(configMapType, map, { signal: interrupted.signal })).rejects.toMatchObject({ code: 'interrupted' });
    expect(server.calls).toEqual([]);
  });

  test('a 401 of a service behind the API server renews nothing', async () => {
    const tokenFile = join(dir, 'token');
    writeFileSync(tokenFile, 'old');
    server.on('GET /proxied', (call) => call.json({ errors: [{ code: 'UNAUTHORIZED' }] }, 401, { 'WWW-Authenticate': 'Basic realm="kf"' }));
    const cluster = await to(server, { user: { tokenFile } });
    expect((await cluster.raw({ method: 'GET', path: '/proxied' })).status).toBe(401);
    expect(server.calls).toHaveLength(1);
  });
});

describe('a server that has just started', () => {
  test('a refusal is accepted only once the server is ready', async () => {
    const refuse = (call: Call): void => call.fail(403, 'Forbidden', 'configmaps is forbidden');
    server.on('GET /api/v1/namespaces/ns/configmaps/x', refuse, refuse, (call) => call.json(map));
    server.on(
      'GET /readyz',
      (call) => call.fail(403, 'Forbidden', 'nobody is known yet'),
      (call) => call.json('not ready', 500),
    );
    expect(await (await to(server)).get(configMapType, 'ns', 'x')).toMatchObject(map);
  });

  test('a refusal of a ready server is accepted, with one additional request', async () => {
    server.on('GET /api/v1/namespaces/ns/configmaps/x', (call) => call.fail(403, 'Forbidden', 'configmaps is forbidden'));
    server.on('GET /readyz', (call) => call.json('ok'));
    await expect((await to(server)).get(configMapType, 'ns', 'x')).rejects.toMatchObject({ code: 'forbidden' });
    expect(server.calls).toHaveLength(2);
  });
});
