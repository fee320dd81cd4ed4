import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { configMapType, namespaceType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { ConfigMap } from '../../../src/lib/api/core.ts';
import { computedResource, resource } from '../../../src/lib/api/object.ts';
import { connect } from '../../../src/lib/kube/client.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { ScriptedApiServer, type Handler } from '../../support/apiserver.ts';
import { asStored } from '../../support/stored.ts';
import type { Stored } from '../../../src/lib/api/object.ts';

let server: ScriptedApiServer;
let cluster: Cluster;

beforeEach(async () => {
  server = await ScriptedApiServer.start();
  cluster = await connect({ kubeconfig: server.kubeconfig({ user: { token: 'secret' } }), env: {}, userAgent: 'kf-test' });
});

afterEach(async () => {
  cluster.close();
  await server.stop();
  expect(server.failures).toEqual([]);
});

const map = (name: string): Stored<ConfigMap> => asStored({ metadata: { name, namespace: 'ns' }, data: { a: 'b' } });
const maps = '/api/v1/namespaces/ns/configmaps';

describe('reading', () => {
  test('get returns the object, undefined for none, and an error for an unknown kind', async () => {
    server.on(`GET ${maps}/here`, (call) => call.json(map('here')));
    server.on(`GET ${maps}/gone`, (call) =>
      call.fail(404, 'NotFound', 'configmaps "gone" not found', { name: 'gone', kind: 'configmaps' }),
    );
    server.on('GET /apis/x.io/.*', (call) => call.text('404 page not found\n', 404));
    expect(await cluster.get(configMapType, 'ns', 'here')).toEqual(map('here'));
    expect(await cluster.get(configMapType, 'ns', 'gone')).toBeUndefined();
    await expect(cluster.get(resource('x.io', 'v1', 'X', 'xes'), 'ns', 'x')).rejects.toMatchObject({ code: 'not-found', status: 404 });
    expect(server.calls[0]?.headers).toMatchObject({ authorization: 'Bearer secret', 'user-agent': 'kf-test', accept: 'application/json' });
  });

  test.each(['name', 'namespace', 'uid', 'resourceVersion'])('an object without %s is not accepted as an answer', async (field) => {
    const { metadata } = map('x');
    const object = { ...map('x'), metadata: { ...metadata, [field]: '' } };
    server.on(`(GET|PATCH) ${maps}/x`, (call) => call.json(object));
    server.on(`GET ${maps}`, async (call) => {
      if (!call.query.has('watch')) return call.json({ metadata: { resourceVersion: '7' }, items: [map('a'), object] });
      await call.events({ type: 'MODIFIED', object });
      return call.end();
    });
    const refusal = {
      code: 'failed',
      message: expect.stringMatching(new RegExp(`^The API server sent the ConfigMap.* without metadata.${field}.$`)),
    };
    await expect(cluster.get(configMapType, 'ns', 'x')).rejects.toMatchObject(refusal);
    await expect(cluster.mergePatch(configMapType, 'ns', 'x', { data: {} })).rejects.toMatchObject(refusal);
    await expect(cluster.list(configMapType, { ns: 'ns' })).rejects.toMatchObject(refusal);
    await expect(cluster.watch(configMapType, { ns: 'ns' })[Symbol.asyncIterator]().next()).rejects.toMatchObject(refusal);
  });

  test('an object of a cluster-wide kind needs no namespace, and a computed one has no uid either', async () => {
    const metadata = { name: 'x', uid: 'u', resourceVersion: '1' };
    server.on('GET /api/v1/namespaces/x', (call) => call.json({ metadata }));
    server.on('GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods/x', (call) => call.json({ metadata: { name: 'x', namespace: 'ns' } }));
    expect(await cluster.get(namespaceType, undefined, 'x')).toMatchObject({ metadata });
    const metrics = computedResource('metrics.k8s.io', 'v1beta1', 'PodMetrics', 'pods');
    expect(await cluster.get(metrics, 'ns', 'x')).toMatchObject({ metadata: { name: 'x' } });
  });

  test('list reads all pages and adds fields that lists leave out', async () => {
    server.on(
      `GET ${maps}`,
      (call) => call.json({ metadata: { resourceVersion: '7', continue: 'next' }, items: [map('a')] }),
      (call) => call.json({ metadata: { resourceVersion: '7' }, items: [map('b')] }),
    );
    const list = await cluster.list(configMapType, { ns: 'ns', labelSelector: 'x=y' });
    expect(list.resourceVersion).toBe('7');
    expect(list.items.map(({ kind, apiVersion, metadata }) => [apiVersion, kind, metadata.name])).toEqual([
      ['v1', 'ConfigMap', 'a'],
      ['v1', 'ConfigMap', 'b'],
    ]);
    expect(server.calls.map(({ query }) => Object.fromEntries(query))).toEqual([
      { limit: '500', labelSelector: 'x=y' },
      { limit: '500', continue: 'next', labelSelector: 'x=y' },
    ]);
  });

  test('a continue token that has expired starts the list again', async () => {
    server.on(
      `GET ${maps}`,
      (call) => call.json({ metadata: { resourceVersion: '7', continue: 'next' }, items: [map('a')] }),
      (call) => call.fail(410, 'Expired', 'The provided continue parameter is too old'),
      (call) => call.json({ metadata: { resourceVersion: '9' }, items: [map('a'), map('b')] }),
    );
    const list = await cluster.list(configMapType, { ns: 'ns' });
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
    expect(Object.fromEntries(server.calls[2]?.query ?? [])).toEqual({ limit: '500' });
  });

  test('a page with too many bytes is dropped and requested with fewer objects', async () => {
    const large = (name: string): object => ({ ...map(name), data: { text: 'x'.repeat(1024 * 1024) } });
    const names = Array.from({ length: 12 }, (_, index) => `m${index}`);
    server.on(`GET ${maps}`, (call) => {
      const from = Number(call.query.get('continue') ?? '0');
      const to = from + Math.min(Number(call.query.get('limit')), 3 * names.length);
      const more = to < names.length ? { continue: String(to) } : {};
      call.json({ metadata: { resourceVersion: '7', ...more }, items: names.slice(from, to).map(large) });
    });
    const kept: string[] = [];
    const list = await cluster.list(configMapType, {
      ns: 'ns',
      keep: (object) => {
        kept.push(object.metadata.name);
        return { ...object, data: {} };
      },
    });
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(names);
    expect(kept).toEqual(names);
    expect(list.items.every(({ data }) => Object.keys(data ?? {}).length === 0)).toBe(true);
    const asked = server.calls.map(({ query }) => `${query.get('continue') ?? '0'}+${query.get('limit')}`);
    expect(asked).toEqual(['0+500', '0+62', '0+7', '7+14']);
  });

  test('a table keeps its columns over all pages', async () => {
    const columnDefinitions = [{ name: 'Name', type: 'string', priority: 0 }];
    const row = (name: string): object => ({ cells: [name], object: { metadata: { name } } });
    server.on(
      'GET /api/v1/namespaces',
      (call) => call.json({ metadata: { continue: 'x' }, columnDefinitions, rows: [row('a')] }),
      (call) => call.json({ metadata: { resourceVersion: '3' }, columnDefinitions: [], rows: [row('b')] }),
    );
    const table = await cluster.table(namespaceType);
    expect(table).toMatchObject({ columns: columnDefinitions, rows: [row('a'), row('b')], resourceVersion: '3' });
    expect(server.calls[0]?.headers.accept).toContain('as=Table');
  });

  test('an answer that is cut off is requested again', async () => {
    server.on(
      `GET ${maps}/x`,
      async (call) => {
        await call.write('{"metadata":{"na');
        call.drop();
      },
      (call) => call.json(map('x')),
    );
    expect(await cluster.get(configMapType, 'ns', 'x')).toEqual(map('x'));
  });
});

describe('writing', () => {
  test('each verb sends its content type, options and the object with its kind', async () => {
    server.on('(POST|PATCH|PUT) .*', (call) => call.json(map('x'), call.method === 'POST' ? 201 : 200));
    await cluster.create(configMapType, map('x'), { fieldManager: 'kf', dryRun: true });
    await cluster.apply(configMapType, map('x'), { fieldManager: 'kf', force: true });
    await cluster.mergePatch(configMapType, 'ns', 'x', { data: { a: null } }, { subresource: 'status', fieldManager: 'kf' });
    await cluster.replace(configMapType, map('x'), { subresource: 'scale' });
    const typed = { ...map('x'), apiVersion: 'v1', kind: 'ConfigMap' };
    expect(
      server.calls.map(({ method, path, query, headers, body }) => [
        method,
        path,
        query.toString(),
        headers['content-type'],
        JSON.parse(body),
      ]),
    ).toEqual([
      ['POST', maps, 'fieldManager=kf&dryRun=All', 'application/json', typed],
      ['PATCH', `${maps}/x`, 'fieldManager=kf&force=true', 'application/apply-patch+yaml', typed],
      ['PATCH', `${maps}/x/status`, 'fieldManager=kf', 'application/merge-patch+json', { data: { a: null } }],
      ['PUT', `${maps}/x/scale`, '', 'application/json', typed],
    ]);
  });

  test.each([
    [
      'is too new to be counted with',
      403,
      'Forbidden',
      'is forbidden: status unknown for quota: kf-limits, resources: count/configmaps',
      {},
    ],
    [
      'others were counted by meanwhile',
      409,
      'Conflict',
      'Operation cannot be fulfilled on resourcequotas "kf-limits": the object has been modified; please apply your changes to the latest version',
      { name: 'kf-limits', kind: 'resourcequotas' },
    ],
  ])('a create that is refused because a quota %s is sent again', async (_why, status, reason, message, details) => {
    const refuse: Handler = (call) => call.fail(status, reason, message, details);
    server.on(`POST ${maps}`, refuse, refuse, (call) => call.json(map('a'), 201));
    expect(await cluster.create(configMapType, map('a'))).toEqual(map('a'));
    expect(server.callsOf(`POST ${maps}`)).toHaveLength(3);
  });

  test('a create that is refused for another reason is not sent again', async () => {
    server.on(`POST ${maps}`, (call) => call.fail(403, 'Forbidden', 'configmaps "a" is forbidden: exceeded quota: kf-limits'));
    await expect(cluster.create(configMapType, map('a'))).rejects.toMatchObject({ status: 403 });
    expect(server.callsOf(`POST ${maps}`)).toHaveLength(1);
  });

  test('delete sends preconditions and returns whether there was an object', async () => {
    server.on(
      `DELETE ${maps}/x`,
      (call) => call.json({ kind: 'Status', status: 'Success' }),
      (call) => call.fail(404, 'NotFound', 'not found', { name: 'x' }),
      (call) => call.fail(409, 'Conflict', 'the UID in the precondition does not match', { name: 'x' }),
    );
    expect(
      await cluster.delete(configMapType, 'ns', 'x', { uid: 'u1', resourceVersion: '3', propagation: 'Background', gracePeriodSeconds: 0 }),
    ).toBe(true);
    expect(JSON.parse(server.calls[0]?.body ?? '')).toEqual({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: 'Background',
      gracePeriodSeconds: 0,
      preconditions: { uid: 'u1', resourceVersion: '3' },
    });
    expect(await cluster.delete(configMapType, 'ns', 'x')).toBe(false);
    await expect(cluster.delete(configMapType, 'ns', 'x', { uid: 'old' })).rejects.toMatchObject({ code: 'conflict', reason: 'Conflict' });
  });
});

describe('other requests', () => {
  test("logs return the body, and the API server's own message if there is none", async () => {
    const message = 'container "application" in pod "p" is waiting to start: ContainerCreating';
    server.on(
      'GET /api/v1/namespaces/ns/pods/p/log',
      (call) => call.text('one\ntwo\n'),
      (call) => call.fail(400, 'BadRequest', message),
    );
    const stream = await cluster.logs('ns', 'p', {
      container: 'application',
      timestamps: true,
      tailLines: 0,
      previous: true,
      sinceTime: '2026-01-01T00:00:00Z',
    });
    let text = '';
    for await (const chunk of stream) text += String(chunk);
    expect(text).toBe('one\ntwo\n');
    expect(Object.fromEntries(server.calls[0]?.query ?? [])).toEqual({
      container: 'application',
      timestamps: 'true',
      tailLines: '0',
      previous: 'true',
      sinceTime: '2026-01-01T00:00:00Z',
    });
    await expect(cluster.logs('ns', 'p')).rejects.toThrow(message);
  });

  test('reviews ask about the caller', async () => {
    server.on('POST .*/selfsubjectaccessreviews', (call) => call.json({ status: { allowed: false, reason: 'no rule' } }, 201));
    server.on('POST .*/selfsubjectreviews', (call) => call.json({ status: { userInfo: { username: 'jane' } } }, 201));
    expect(await cluster.canI({ verb: 'get', resource: 'pods', subresource: 'log', ns: 'ns' })).toEqual({
      allowed: false,
      reason: 'no rule',
    });
    expect(JSON.parse(server.calls[0]?.body ?? '')).toMatchObject({
      spec: { resourceAttributes: { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'ns' } },
    });
    expect(await cluster.whoAmI()).toBe('jane');
  });

  test('raw requests return any status and body', async () => {
    server.on('PUT /api/v1/namespaces/s/services/x/proxy/v2/blob', (call) => {
      call.response.writeHead(202, { Location: '/v2/next', 'X-Body': call.body, 'X-Kf': String(call.headers['x-kf-authorization']) });
      call.response.end('ok');
    });
    server.on('GET /busy', (call) => call.fail(503, 'ServiceUnavailable', 'no endpoints', {}, { 'Retry-After': '1' }));
    const answer = await cluster.raw({
      method: 'PUT',
      path: '/api/v1/namespaces/s/services/x/proxy/v2/blob?digest=1',
      headers: { 'X-Kf-Authorization': 'Basic abc' },
      body: Buffer.from('layer'),
    });
    expect([answer.status, answer.headers['location'], answer.headers['x-body'], answer.headers['x-kf']]).toEqual([
      202,
      '/v2/next',
      'layer',
      'Basic abc',
    ]);
    expect((await cluster.raw({ method: 'GET', path: '/busy' })).status).toBe(503);
    expect(server.callsOf('GET /busy')).toHaveLength(1);
  });

  test('a signal ends a request at once', async () => {
    server.on('GET /api/v1/.*', (call) => call.closed);
    const stop = new AbortController();
    const listing = cluster.list(podType, { signal: stop.signal });
    setTimeout(() => stop.abort(), 50);
    await expect(listing).rejects.toMatchObject({ code: 'interrupted' });
  });
});

describe('a server that has started again and does not know the schemas of all kinds yet', () => {
  const message =
    'Resource kind /v1, Kind=ConfigMap not found. There can be a delay between when CustomResourceDefinitions are created and when they are available.';

  test('is sent a refused object again until it knows the kind', async () => {
    let refusals = 2;
    server.on(`POST ${maps}`, (call) => (refusals-- > 0 ? call.fail(503, 'ServiceUnavailable', message) : call.json(map('new'), 201)));
    expect(await cluster.create(configMapType, { metadata: { name: 'new', namespace: 'ns' } })).toEqual(map('new'));
    expect(server.callsOf('POST .*')).toHaveLength(3);
  });

  test('is not sent an object again after another 503, because it may have been written', async () => {
    server.on(`POST ${maps}`, (call) => call.fail(503, 'ServiceUnavailable', 'etcd leader changed'));
    await expect(cluster.create(configMapType, { metadata: { name: 'new', namespace: 'ns' } })).rejects.toMatchObject({ status: 503 });
    expect(server.callsOf('POST .*')).toHaveLength(1);
  });
});
