import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Informer, type InformerTimes } from '../../../src/controller/runtime/informer.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { serviceType, type Service } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFBuild } from '../../../src/lib/api/types.generated.ts';
import { apiError, MemoryCluster } from '../../support/memory-cluster.ts';

const log = createLogger('error', () => undefined);
const noted = 'kf.cloudfoundry.org/noted';
const stop = new Set<AbortController>();
const until = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 3_000, interval: 5 });
const service = (name: string, labels: Record<string, string> = { app: 'x' }): Service => ({ metadata: { name, namespace: 'ns', labels } });

function running(): AbortController {
  const controller = new AbortController();
  stop.add(controller);
  return controller;
}

afterEach(() => {
  for (const controller of stop) controller.abort();
  stop.clear();
});

describe('Informer', () => {
  const start = (cluster: MemoryCluster) => {
    const informer = new Informer(cluster, { type: serviceType, labelSelector: 'app' }, log, { minBackoffMs: 5, maxBackoffMs: 20 });
    const seen: string[] = [];
    informer.listen((before, after) =>
      seen.push(`${before === undefined ? '+' : after === undefined ? '-' : '~'}${(after ?? before)?.metadata.name ?? ''}`),
    );
    void informer.run(running().signal);
    return { informer, seen };
  };

  test('lists, then follows additions, changes and deletions', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    const { informer, seen } = start(cluster);
    await informer.synced();
    await cluster.create(serviceType, service('b'));
    await cluster.create(serviceType, service('unlabelled', {}));
    await cluster.mergePatch(serviceType, 'ns', 'a', { metadata: { annotations: { x: 'y' } } });
    await cluster.delete(serviceType, 'ns', 'b');
    await until(() => expect(seen).toEqual(['+a', '+b', '~a', '-b']));
    expect(informer.store.list().map((item) => item.kind)).toEqual(['Service']);
  });

  test('continues from its last version when the server ends the watch', async () => {
    const cluster = new MemoryCluster();
    const { informer, seen } = start(cluster);
    await informer.synced();
    cluster.cutWatches();
    await cluster.create(serviceType, service('a'));
    await until(() => expect(seen).toEqual(['+a']));
  });

  test('lists again after 410 and reports objects that are gone', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    const { informer, seen } = start(cluster);
    await informer.synced();
    let blocked = true;
    cluster.intercept = (verb) => {
      if (verb === 'watch' && blocked) throw apiError(503, 'ServiceUnavailable', 'restarting');
    };
    cluster.cutWatches();
    await cluster.delete(serviceType, 'ns', 'a');
    await cluster.create(serviceType, service('b'));
    cluster.compact();
    blocked = false;
    await until(() => expect(seen).toContain('-a'));
    expect(seen).toContain('+b');
    expect(informer.store.list().map((item) => item.metadata.name)).toEqual(['b']);
  });

  test('ignores an object that lacks what its index and its trimming read, and follows the others', async () => {
    const cluster = new MemoryCluster();
    const poison = (name: string): CFBuild => ({ metadata: { name, namespace: 'ns' } }) as CFBuild;
    const build = (name: string): CFBuild => ({ ...poison(name), spec: { appRef: { name: 'app' } } }) as CFBuild;
    await cluster.create(kinds.build, poison('before'));
    await cluster.create(kinds.build, build('good'));
    const trim = (item: Stored<CFBuild>): Stored<CFBuild> => ({ ...item, spec: { ...item.spec, appRef: { name: item.spec.appRef.name } } });
    const informer = new Informer(cluster, { type: kinds.build, trim }, log, { minBackoffMs: 5, maxBackoffMs: 20 });
    informer.store.addIndex('app', ({ spec }) => [spec.appRef.name]);
    const seen: string[] = [];
    informer.listen((before, after) =>
      seen.push(`${before === undefined ? '+' : after === undefined ? '-' : '~'}${(after ?? before)?.metadata.name ?? ''}`),
    );
    void informer.run(running().signal);
    await informer.synced();
    await cluster.create(kinds.build, poison('poison'));
    await cluster.create(kinds.build, build('next'));
    await cluster.delete(kinds.build, 'ns', 'poison');
    // One that loses it is gone for the controller, and comes back with it.
    await cluster.mergePatch(kinds.build, 'ns', 'next', { spec: null });
    await cluster.mergePatch(kinds.build, 'ns', 'next', { spec: build('next').spec });
    await cluster.delete(kinds.build, 'ns', 'good');
    await until(() => expect(seen).toEqual(['+good', '+next', '-next', '+next', '-good']));
    expect(informer.store.by('app', 'app').map(({ metadata }) => metadata.name)).toEqual(['next']);
  });

  test('survives an API server that refuses for a while', async () => {
    const cluster = new MemoryCluster();
    let refusals = 4;
    cluster.intercept = (verb) => {
      if (verb === 'list' && refusals-- > 0) throw apiError(500, 'InternalError', 'not yet');
    };
    await cluster.create(serviceType, service('a'));
    const { informer } = start(cluster);
    await until(() => expect(informer.store.size).toBe(1));
  });

  test.each([
    ['was away while the process started follows a gap', 1, 5_000],
    ['always answered follows none', -Infinity, 0],
  ])('of an API server that %s', async (_, awayAt, steadySince) => {
    const cluster = new MemoryCluster();
    cluster.awayAt = awayAt;
    const informer = new Informer(cluster, { type: serviceType }, log, { now: () => 5_000 });
    void informer.run(running().signal);
    await informer.synced();
    expect(informer.store.steadySince).toBe(steadySince);
  });

  test('counts as listed if its kind is not installed and optional', async () => {
    const cluster = new MemoryCluster();
    cluster.intercept = () => {
      throw apiError(404, 'NotFound', 'the server could not find the requested resource', '');
    };
    const informer = new Informer(cluster, { type: serviceType, optional: true }, log, { maxBackoffMs: 20 });
    void informer.run(running().signal);
    await informer.synced();
    cluster.intercept = () => undefined;
    await cluster.create(serviceType, service('a'));
    await until(() => expect(informer.store.size).toBe(1));
  });
});

describe('the listeners of an informer', () => {
  const noteOf = (object: Service | undefined) => object?.metadata.annotations?.[noted];
  const heardBy = async (cluster: MemoryCluster, times: Partial<InformerTimes> = {}) => {
    const informer = new Informer(cluster, { type: serviceType }, log, { minBackoffMs: 5, maxBackoffMs: 20, ...times });
    const heard: [string | undefined, string | undefined][] = [];
    informer.listen((before, after) => heard.push([noteOf(before), noteOf(after)]));
    void informer.run(running().signal);
    await informer.synced();
    return { informer, heard };
  };
  const noting = (note: string): Service => ({ metadata: { name: 'a', namespace: 'ns', annotations: { [noted]: note } } });

  test('get for a change by this process the state that they got before, not the result of the write', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, noting('1'));
    const { informer, heard } = await heardBy(cluster);
    for (const note of ['2', '3']) {
      const written = await cluster.mergePatch(serviceType, 'ns', 'a', { metadata: { annotations: { [noted]: note } } });
      informer.observe(written);
      expect(noteOf(informer.store.get('ns', 'a'))).toBe(note);
    }
    await cluster.delete(serviceType, 'ns', 'a');
    await until(() => expect(heard.at(-1)).toEqual(['3', undefined]));
    expect(heard).toEqual([
      [undefined, '1'],
      ['1', '2'],
      ['2', '3'],
      ['3', undefined],
    ]);
  });

  test('get all objects again after a while, although nothing has changed', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, noting('1'));
    const { heard } = await heardBy(cluster, { resyncMs: 20 });
    await until(() =>
      expect(heard.slice(0, 2)).toEqual([
        [undefined, '1'],
        ['1', '1'],
      ]),
    );
  });

  test('a watch that ends immediately again and again is reopened after growing pauses', async () => {
    const cluster = new MemoryCluster();
    let watches = 0;
    cluster.intercept = (verb) => {
      if (verb !== 'watch') return;
      watches += 1;
      setImmediate(() => cluster.cutWatches());
    };
    const pauses: number[] = [];
    const counting = createLogger('debug', (line) => {
      const { retryInMs } = JSON.parse(line) as { retryInMs?: number };
      if (retryInMs !== undefined) pauses.push(retryInMs);
    });
    const informer = new Informer(cluster, { type: serviceType }, counting, { minBackoffMs: 5, maxBackoffMs: 20 });
    void informer.run(running().signal);
    await until(() => expect(pauses.slice(0, 4)).toEqual([5, 10, 20, 20]));
    expect(watches).toBeLessThanOrEqual(pauses.length + 1);
  });

  test('a watch gives signs of life while nothing changes and while the API server refuses, but not when it hangs', async () => {
    const cluster = new MemoryCluster();
    const { informer } = await heardBy(cluster, { silenceMs: 20 });
    const signs = async (wanted: number): Promise<void> => {
      for (let last = informer.silentMs, seen = 0; seen < wanted; await sleep(2)) {
        const now = informer.silentMs;
        if (now < last) seen += 1;
        last = now;
      }
    };
    await signs(3);
    // What was not heard may have been missed.
    expect(informer.store.steadySince).toBeGreaterThan(0);
    cluster.intercept = () => {
      throw apiError(503, 'ServiceUnavailable', 'away');
    };
    await signs(3);
    cluster.intercept = () => new Promise(() => undefined);
    await until(() => expect(informer.silentMs).toBeGreaterThan(1_000));
  });
});
