import { describe, expect, test } from 'vitest';
import { gateKeeper, imagesReconciler, orphansOf, removeOrphans, type Living } from '../../../src/controller/registry/image-cleanup.ts';
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

test('an answer of the gate that is not a list ends the cleanup', async () => {
  const send = async () => Promise.resolve({ status: 403, headers: {}, body: Readable.from([Buffer.from('{}')]) });
  const keeper = gateKeeper(send, Buffer.from('k'.repeat(32)), 1_800_000_000);
  await expect(keeper.list(AbortSignal.timeout(1_000))).rejects.toThrow("the registry's gate answers GET /kf/repositories with status 403");
});

test('all pages of the gate are processed, one after the other', async () => {
  const pages: Record<string, object> = {
    '/kf/repositories': { repositories: ['s-1/gone-packages', 's-1/known-packages'], next: 's-1/known-packages' },
    '/kf/repositories?after=s-1/known-packages': { repositories: ['s-2/gone-cache'] },
  };
  const asked: string[] = [];
  const keeper = gateKeeper(
    async ({ method, path }) => {
      asked.push(`${method} ${path}`);
      return Promise.resolve({ status: 200, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(pages[path] ?? {}))]) });
    },
    Buffer.from('k'.repeat(32)),
    1_800_000_000,
  );
  expect(await removeOrphans(keeper, cluster, AbortSignal.timeout(1_000))).toBe(2);
  expect(asked).toEqual([
    'GET /kf/repositories',
    'DELETE /kf/repositories/s-1/gone-packages',
    'GET /kf/repositories?after=s-1/known-packages',
    'DELETE /kf/repositories/s-2/gone-cache',
  ]);
});

describe('the next cleanup', () => {
  const ended = { ok: true, value: 0 } as const;
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
