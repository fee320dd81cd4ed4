import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import type { ConfigMap } from '../../../src/lib/api/core.ts';
import { connect } from '../../../src/lib/kube/client.ts';
import type { Cluster, WatchEvent } from '../../../src/lib/kube/cluster.ts';
import { watchObject, watchUntil } from '../../../src/lib/kube/watch-list.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';
import type { Handler } from '../../support/apiserver.ts';
import { patienceMs } from '../../support/until.ts';
import { asStored } from '../../support/stored.ts';
import type { Stored } from '../../../src/lib/api/object.ts';

let server: ScriptedApiServer;
let cluster: Cluster;

beforeEach(async () => {
  server = await ScriptedApiServer.start();
  cluster = await connect({ kubeconfig: server.kubeconfig(), env: {} });
});

afterEach(async () => {
  cluster.close();
  await server.stop();
  expect(server.failures).toEqual([]);
});

const maps = '/api/v1/namespaces/ns/configmaps';
const map = (name: string, version: number, value = ''): Stored<ConfigMap> =>
  asStored({ metadata: { name, namespace: 'ns', resourceVersion: String(version) }, data: { value } });
const added = (object: ConfigMap): object => ({ type: 'ADDED', object });
const modified = (object: ConfigMap): object => ({ type: 'MODIFIED', object });

/** One handler for the list and the watch of the same path. */
function collection(list: Handler, ...watches: Handler[]): void {
  let watched = 0;
  server.on(`GET ${maps}`, (call) => (call.query.has('watch') ? watches[Math.min(watched++, watches.length - 1)]?.(call) : list(call)));
}

const listOf =
  (version: number, ...items: ConfigMap[]): Handler =>
  (call) =>
    call.json({ metadata: { resourceVersion: String(version) }, items });

async function collect(events: AsyncIterable<WatchEvent<ConfigMap>>, onEvent: () => void = () => undefined): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of events) {
    seen.push(event.type === 'BOOKMARK' ? `BOOKMARK ${event.resourceVersion}` : `${event.type} ${String(event.object.data?.['value'])}`);
    onEvent();
  }
  return seen;
}

describe('a watch', () => {
  test('reads events whose characters are split between chunks, asks for bookmarks, and ends with the server', async () => {
    collection(listOf(1), async (call) => {
      const bytes = Buffer.from(
        `${JSON.stringify(added(map('a', 2, 'köln 🚀')))}\n${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '5' } } })}\n`,
      );
      for (let at = 0; at < bytes.length; at += 7) {
        await call.write(bytes.subarray(at, at + 7));
        await new Promise((resolve) => setImmediate(resolve));
      }
      call.end();
    });
    expect(await collect(cluster.watch(configMapType, { ns: 'ns', resourceVersion: '1', labelSelector: 'a=b' }))).toEqual([
      'ADDED köln 🚀',
      'BOOKMARK 5',
    ]);
    expect(Object.fromEntries(server.calls[0]?.query ?? [])).toMatchObject({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: '1',
      labelSelector: 'a=b',
    });
  });

  test('is ended by a broken connection, and half an event is dropped', async () => {
    collection(listOf(1), async (call) => {
      await call.events(added(map('a', 2, 'one')));
      await call.write('{"type":"ADDED","obj');
      call.drop();
    });
    expect(await collect(cluster.watch(configMapType, { ns: 'ns' }))).toEqual(['ADDED one']);
  });

  test.each([
    ['as a status', (call: Parameters<Handler>[0]) => call.fail(410, 'Expired', 'too old resource version')],
    [
      'as an event',
      (call: Parameters<Handler>[0]) =>
        call.events({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } }),
    ],
  ])('throws expired after 410 %s', async (_how, handler) => {
    collection(listOf(1), handler);
    await expect(collect(cluster.watch(configMapType, { ns: 'ns', resourceVersion: '1' }))).rejects.toMatchObject({ expired: true });
  });

  test('is ended silently by a signal, which closes the connection', async () => {
    collection(listOf(1), async (call) => {
      await call.events(added(map('a', 2, 'one')));
      await call.closed;
    });
    const stop = new AbortController();
    const watched = cluster.watch(configMapType, { ns: 'ns', signal: stop.signal });
    expect(await collect(watched, () => stop.abort())).toEqual(['ADDED one']);
    await server.calls[0]?.closed;
  });
});

describe('waiting with a watch', () => {
  const options = { timeoutMs: patienceMs, describe: 'the map' };

  test('ends with the first list if that is enough', async () => {
    collection(listOf(1, map('a', 1, 'done')));
    const value = await watchObject(cluster, configMapType, { ns: 'ns', name: 'a' }, (object) => object?.data?.['value'], options);
    expect(value).toBe('done');
    expect(server.calls).toHaveLength(1);
    expect(server.calls[0]?.query.get('fieldSelector')).toBe('metadata.name=a');
  });

  test('needs no list for a known object', async () => {
    collection(listOf(1), async (call) => call.events(modified(map('a', 8, 'done'))));
    const known = map('a', 7, 'wait');
    const value = await watchObject(
      cluster,
      configMapType,
      { ns: 'ns', name: 'a', known },
      (object) => (object?.data?.['value'] === 'done' ? 'yes' : undefined),
      options,
    );
    expect(value).toBe('yes');
    expect(server.calls.map(({ query }) => query.get('resourceVersion'))).toEqual(['7']);
  });

  test('continues after the last event if the connection broke, and lists again after 410', async () => {
    let lists = 0;
    collection(
      (call) => listOf(lists++ === 0 ? 1 : 9, map('a', 1, 'x'), ...(lists === 2 ? [map('b', 9, 'x')] : []))(call),
      async (call) => {
        await call.events(modified(map('a', 3, 'y')), { type: 'BOOKMARK', object: { metadata: { resourceVersion: '5' } } });
        call.drop();
      },
      (call) => call.fail(410, 'Expired', 'too old'),
      async (call) => {
        await call.events({ type: 'DELETED', object: map('a', 10) });
        await call.closed;
      },
    );
    const seen: string[] = [];
    const rest = await watchUntil(
      cluster,
      configMapType,
      { ns: 'ns', selector: 'l=1' },
      (objects) => {
        seen.push(objects.map(({ metadata, data }) => `${String(metadata.name)}=${String(data?.['value'])}`).join(' '));
        return objects.length === 1 && objects[0]?.metadata.name === 'b' ? 'only b' : undefined;
      },
      options,
    );
    expect(rest).toBe('only b');
    expect(seen).toEqual(['a=x', 'a=y', 'a=x b=x', 'b=x']);
    expect(server.calls.filter(({ query }) => query.has('watch')).map(({ query }) => query.get('resourceVersion'))).toEqual([
      '1',
      '5',
      '9',
    ]);
  });

  test('survives a restart of the API server and reports it', async () => {
    collection(
      listOf(1, map('a', 1, 'x')),
      (call) => call.closed,
      (call) => call.events(modified(map('a', 2, 'done'))),
    );
    const wait = watchObject(
      cluster,
      configMapType,
      { ns: 'ns', name: 'a' },
      (object) => (object?.data?.['value'] === 'done' ? true : undefined),
      options,
    );
    await expect.poll(() => server.calls.length).toBe(2);
    await server.halt();
    setTimeout(() => void server.listen(), 200);
    expect(await wait).toBe(true);
  });

  test('does not wait for a server that never answered', async () => {
    await server.halt();
    const wait = watchObject(cluster, configMapType, { ns: 'ns', name: 'a' }, () => undefined, options);
    await expect(wait).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('ends with the name of what it waited for when the time is up', async () => {
    collection(listOf(1), (call) => call.closed);
    const wait = watchObject(cluster, configMapType, { ns: 'ns', name: 'a' }, () => undefined, {
      timeoutMs: 100,
      describe: () => 'app "a" to be staged',
    });
    await expect(wait).rejects.toMatchObject({ code: 'timeout', message: 'Timed out after 100 ms waiting for app "a" to be staged.' });
    await expect.poll(() => server.calls[1]?.response.closed).toBe(true);
  });

  test('ends at once if the server refuses', async () => {
    collection((call) =>
      call.fail(
        403,
        'Forbidden',
        'configmaps is forbidden: User "j" cannot list resource "configmaps" in API group "" in the namespace "ns"',
      ),
    );
    await expect(watchUntil(cluster, configMapType, { ns: 'ns' }, () => undefined, options)).rejects.toMatchObject({ code: 'forbidden' });
  });
});
