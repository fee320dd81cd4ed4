import { describe, expect, test } from 'vitest';
import { collectImages, imagesReconciler, orphansOf, removeOrphans, type Living } from '../../../src/controller/registry/image-cleanup.ts';
import { gateKeeper } from '../../../src/lib/gate/keeper.ts';
import type { Context, Stores } from '../../../src/controller/runtime/reconciler.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { Readable } from 'node:stream';

const cluster: Living = {
  hasApp: (space, app) => space === 's-1' && app === 'known',
  hasSpace: (space) => space === 's-1',
  appsOf: () => Promise.resolve([]),
  spaces: () => Promise.resolve(['s-1', 's-late']),
};

describe('repositories without an app', () => {
  test('are those whose app is neither in the cache nor in the API server', async () => {
    const asked: string[] = [];
    const orphans = await orphansOf(
      ['s-1/known-droplets', 's-1/late-packages', 's-1/gone-packages', 's-1/gone-droplets', 's-2/gone-cache'],
      {
        ...cluster,
        appsOf: async (space) => {
          asked.push(space);
          return Promise.resolve(space === 's-1' ? ['known', 'late'] : []);
        },
      },
    );
    expect(orphans).toEqual(['s-1/gone-packages', 's-1/gone-droplets', 's-2/gone-cache']);
    expect(asked).toEqual(['s-1', 's-2']);
  });

  test('are none if the API server does not return the apps', async () => {
    const failing = (): Promise<string[]> => Promise.reject(new Error('the server could not find the requested resource'));
    await expect(orphansOf(['s-1/gone-packages'], { ...cluster, appsOf: failing })).rejects.toThrow('could not find');
    await expect(orphansOf(['s-gone/other'], { ...cluster, spaces: failing })).rejects.toThrow('could not find');
  });

  test('include those with other names whose space is gone, which an earlier version accepted', async () => {
    const repositories = ['s-1/app', 's-late/app', 's-gone/app', 's-gone/a__b-packages', 's-gone/x-packages'];
    expect(await orphansOf(repositories, cluster)).toEqual(['s-gone/x-packages', 's-gone/app', 's-gone/a__b-packages']);
  });

  test('exclude those of existing spaces, of the test of setup, and with names that no gate accepts', async () => {
    const repositories = [
      'kf-setup/pull-test',
      'kf-setup/pull-test-packages',
      's-1/app',
      's-1/app-other',
      's-1/-packages',
      '../x-packages',
    ];
    expect(await orphansOf([...repositories, 's-1/a/b-packages', 's-gone/a/b-packages', 's-gone/..'], cluster)).toEqual([]);
  });
});

const credential = { key: Buffer.from('k'.repeat(32)), nowSeconds: 1_800_000_000, via: 'direct' } as const;

test('an answer of the gate that is not a list ends the cleanup', async () => {
  const send = async () => Promise.resolve({ status: 403, headers: {}, body: Readable.from([Buffer.from('{}')]) });
  const keeper = gateKeeper(send, credential);
  await expect(keeper.list(AbortSignal.timeout(1_000))).rejects.toThrow(
    "The registry's gate answers GET /kf/repositories with status 403.",
  );
});

test('all pages of the gate are processed, one after the other', async () => {
  const pages: Record<string, object> = {
    '/kf/repositories': { repositories: ['s-1/gone-packages', 's-1/known-packages'], next: 's-1/known-packages' },
    '/kf/repositories?after=s-1/known-packages': { repositories: ['s-2/gone-cache'] },
  };
  const asked: string[] = [];
  const keeper = gateKeeper(async ({ method, path }) => {
    asked.push(`${method} ${path}`);
    return Promise.resolve({ status: 200, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(pages[path] ?? {}))]) });
  }, credential);
  expect(await removeOrphans(keeper, cluster, AbortSignal.timeout(1_000))).toEqual({ repositories: 2, left: 0 });
  expect(asked).toEqual([
    'GET /kf/repositories',
    'DELETE /kf/repositories/s-1/gone-packages',
    'GET /kf/repositories?after=s-1/known-packages',
    'DELETE /kf/repositories/s-2/gone-cache',
  ]);
});

test('a repository that cannot be removed does not keep the others', async () => {
  const keeper = gateKeeper(async ({ method, path }) => {
    const isBroken = method === 'DELETE' && path.includes('/s-1/');
    const page = { repositories: ['s-1/gone-packages', 's-2/gone-cache'] };
    const body = Readable.from([Buffer.from(JSON.stringify(isBroken ? {} : page))]);
    return Promise.resolve({ status: isBroken ? 500 : 200, headers: {}, body });
  }, credential);
  const removed = await removeOrphans(keeper, cluster, AbortSignal.timeout(1_000));
  expect(removed).toEqual({ repositories: 1, left: 1, error: expect.stringContaining('s-1/gone-packages') as string });
});

describe('the images of apps that exist', () => {
  interface Sent {
    path: string;
    body?: unknown;
  }
  const pages: Record<string, object> = {
    '/kf/repositories': { now: 5_000, repositories: ['kf-setup/x-packages', 's-1/a-droplets', 's-1/a-packages'], next: 's-1/a-packages' },
    '/kf/repositories?after=s-1/a-packages': { now: 5_000, repositories: ['s-2/b-droplets'] },
  };
  const collectedFrom = (sent: Sent[], answers: Record<string, [status: number, body: object]> = {}) =>
    gateKeeper(async ({ path, body }) => {
      sent.push({ path, ...(typeof body === 'string' ? { body: JSON.parse(body) as unknown } : {}) });
      const [status, answer] = answers[path] ?? [200, pages[path] ?? { manifests: 1, layers: 2 }];
      return Promise.resolve({ status, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(answer))]) });
    }, credential);
  const references = (space: string) => Promise.resolve(new Map([[`${space}/a-droplets`, new Set(['sha256:1'])]]));

  test('are collected by what their own space refers to, one repository after the other', async () => {
    const sent: Sent[] = [];
    expect(await collectImages(collectedFrom(sent), references, AbortSignal.timeout(1_000))).toEqual({ images: 3, left: 0 });
    const of = (repository: string, keep: string[]) => ({
      path: `/kf/repositories/${repository}/collection`,
      body: { keep, unusedSince: 1_400 },
    });
    expect(sent).toEqual([
      { path: '/kf/repositories' },
      of('s-1/a-droplets', ['sha256:1']),
      of('s-1/a-packages', []),
      { path: '/kf/repositories?after=s-1/a-packages' },
      of('s-2/b-droplets', []),
    ]);
  });

  test('stay if the API server does not name what their space refers to', async () => {
    const sent: Sent[] = [];
    const failing = () => Promise.reject(new Error('not now'));
    await expect(collectImages(collectedFrom(sent), failing, AbortSignal.timeout(1_000))).rejects.toThrow('not now');
    expect(sent).toEqual([{ path: '/kf/repositories' }]);
  });

  test('are collected after the repository at which the last collection ended, and from the first one after the last', async () => {
    const sent: Sent[] = [];
    const ended = new AbortController();
    const first = (space: string) => {
      if (space === 's-2') ended.abort(new Error('no time is left'));
      return ended.signal.aborted ? Promise.reject(new Error('no time is left')) : references(space);
    };
    const progress = {};
    const [keeper, { signal }] = [collectedFrom(sent), ended];
    await expect(collectImages(keeper, first, signal, progress)).rejects.toThrow('no time is left');
    expect(progress).toEqual({ after: 's-1/a-packages' });
    sent.length = 0;
    expect(await collectImages(keeper, references, AbortSignal.timeout(1_000), progress)).toEqual({ images: 1, left: 0 });
    expect(sent.map(({ path }) => path)).toEqual(['/kf/repositories?after=s-1/a-packages', '/kf/repositories/s-2/b-droplets/collection']);
    expect(progress).toEqual({ after: undefined });
  });

  test('are collected behind a space whose objects cannot be listed', async () => {
    const sent: Sent[] = [];
    const failing = (space: string) => (space === 's-1' ? Promise.reject(new Error('not now')) : references(space));
    const progress = {};
    const collect = () => collectImages(collectedFrom(sent), failing, AbortSignal.timeout(1_000), progress);
    await expect(collect()).rejects.toThrow('not now');
    expect(await collect()).toEqual({ images: 1, left: 0 });
    expect(sent.at(-1)?.path).toBe('/kf/repositories/s-2/b-droplets/collection');
  });

  test('of one repository that is used, gone or not readable do not keep the others', async () => {
    const keeper = collectedFrom([], {
      '/kf/repositories/s-1/a-droplets/collection': [500, {}],
      '/kf/repositories/s-1/a-packages/collection': [404, { errors: [{ code: 'NAME_UNKNOWN' }] }],
      '/kf/repositories/s-2/b-droplets/collection': [200, { manifests: 0, layers: 0, isUsed: true }],
    });
    expect(await collectImages(keeper, references, AbortSignal.timeout(1_000))).toEqual({
      images: 0,
      left: 2,
      error: "The registry's gate answers POST /kf/repositories/s-1/a-droplets/collection with status 500.",
    });
  });
});

describe('the next cleanup', () => {
  const ended = { ok: true, value: { removed: { repositories: 0, left: 0 }, collection: { images: 0, left: 0 } } } as const;
  const stores = {} as Stores;

  /** The result of the last reconcile. `deleted` is the event of a deleted app; each reconcile takes one step, at which the cleanup has ended or not. */
  async function resultAfter(...steps: ('deleted' | 'runs' | 'ended')[]) {
    const outcomes = steps.filter((step) => step !== 'deleted').map((step) => (step === 'ended' ? ended : undefined));
    const log = { info: () => undefined, warn: () => undefined };
    const context = { now: () => 1_800_000_000_000, outside: () => outcomes.shift(), log } as unknown as Context;
    const reconciler = imagesReconciler({ read: () => Promise.resolve(Buffer.from('k')) });
    let result;
    for (const step of steps) {
      if (step !== 'deleted') result = await reconciler.reconcile('/registry', context);
      else expect(reconciler.watches[0]?.keys({ metadata: { name: 'a' } } as Stored, stores)).toEqual(['/registry']);
    }
    return result;
  }

  test('comes after an hour if nothing changes', async () => {
    expect(await resultAfter('deleted', 'runs', 'ended')).toEqual({ requeueAfterMs: 3_600_000 });
  });

  test('comes soon if an app was deleted during the previous one', async () => {
    expect(await resultAfter('deleted', 'runs', 'deleted', 'runs', 'ended')).toEqual({ requeueAfterMs: 20_000 });
  });

  test('comes soon if an app was deleted between the end of the previous one and the read of its outcome', async () => {
    expect(await resultAfter('deleted', 'runs', 'deleted', 'ended')).toEqual({ requeueAfterMs: 20_000 });
  });
});
