// The single watch of a push: it ignores old versions, and a later push or a deletion ends every wait.

import { expect, test, vi } from 'vitest';
import { annotations } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import type { Cluster, WatchEvent } from '../../../src/lib/kube/cluster.ts';
import { AppFollower } from '../../../src/lib/ops/push/app-follower.ts';
import { apiError } from '../../support/memory-cluster.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { asStored } from '../../support/stored.ts';

const pushId = 'this-push';

function app(resourceVersion: string, deployId?: string, push = pushId): Stored<CFApp> {
  return asStored({
    metadata: {
      name: 'guid',
      namespace: 'space',
      resourceVersion,
      annotations: { [annotations.pushId]: push, ...(deployId === undefined ? {} : { [annotations.deployId]: deployId }) },
    },
    spec: { displayName: 'example-app', desiredState: 'STARTED', lifecycle: { type: 'docker', data: { stack: '' } } },
  });
}

/** A cluster with a scripted watch, which counts watches. */
class News {
  watches = 0;
  #queue: (WatchEvent<CFApp> | 'end')[] = [];
  #wake: () => void = () => undefined;

  readonly cluster = { watch: () => this.#events() } as unknown as Cluster;

  /** The server ends the watch, as it does every few minutes. */
  end(): void {
    this.#queue.push('end');
    this.#wake();
  }

  bring(object: Stored<CFApp>, type: 'MODIFIED' | 'DELETED' = 'MODIFIED'): void {
    this.#queue.push({ type, object });
    this.#wake();
  }

  async *#events(): AsyncGenerator<WatchEvent<CFApp>> {
    this.watches += 1;
    for (;;) {
      const event = this.#queue.shift();
      if (event === 'end') return;
      if (event !== undefined) yield event;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

const options = { timeoutMs: 2000, describe: 'the app' };
const deployed = (seen: CFApp): string | undefined => seen.metadata.annotations?.[annotations.deployId];

test('no watch is opened before it is needed', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1', 'old'), pushId);
  expect(await follower.watch(deployed, options)).toBe('old');
  expect(news.watches).toBe(0);
  follower.stop();
});

test('after an own write the watch returns nothing older', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1'), pushId);
  follower.begin();
  follower.wrote(app('3', 'new'));
  const seen: (string | undefined)[] = [];
  const waiting = follower.watch((live) => {
    seen.push(deployed(live));
    return live.metadata.resourceVersion === '4' ? true : undefined;
  }, options);
  news.bring(app('2', 'old'));
  news.bring(app('3', 'new'));
  news.bring(app('4', 'new'));
  await waiting;
  expect(seen).toEqual(['new', 'new', 'new']);
  expect(news.watches).toBe(1);
  follower.stop();
});

test('a write that the watch has already returned delays nothing', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1'), pushId);
  news.bring(app('2', 'new'));
  await follower.until('the write', 2000, (live) => deployed(live) === 'new');
  follower.wrote(app('2', 'new'));
  news.bring(app('3', 'new'));
  await follower.until('the next version', 2000, (live) => live.metadata.resourceVersion === '3');
  follower.stop();
});

test('a later push ends every wait and is named', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1'), pushId);
  const waits = [follower.lost(), follower.watch(() => undefined, options)];
  news.bring(app('2', undefined, 'later-push'));
  for (const wait of waits) await expect(wait).rejects.toMatchObject({ code: 'conflict', details: { reason: 'superseded' } });
  follower.stop();
});

test('after the switch only another switch ends a wait, not somebody who takes the app over', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1'), pushId);
  follower.wrote(app('2', pushId));
  const taken = follower.until('the next version', 2000, (live) => live.metadata.resourceVersion === '3');
  news.bring(app('3', pushId, 'later-push'));
  await taken;
  const lost = follower.lost();
  news.bring(app('4', 'later-push', 'later-push'));
  await expect(lost).rejects.toMatchObject({ code: 'conflict', details: { reason: 'superseded' } });
  follower.stop();
});

test('a deletion ends the push', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1'), pushId);
  const lost = follower.lost();
  news.bring(app('1'), 'DELETED');
  await expect(lost).rejects.toMatchObject({ code: 'not-found' });
  follower.stop();
});

test('a wait that exceeds its time limit names what it waited for', async () => {
  const follower = new AppFollower(new News().cluster, app('1'), pushId);
  await expect(follower.until('the name to be claimed', 20, () => false)).rejects.toMatchObject({
    code: 'timeout',
    message: expect.stringContaining('the name to be claimed') as string,
  });
  follower.stop();
});

test('a watch that begins at the own write, which it does not return again, returns later changes', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1'), pushId);
  follower.begin();
  follower.wrote(app('5', 'mine'));
  const seen: (string | undefined)[] = [];
  const waiting = follower.watch((live) => {
    seen.push(live.metadata.resourceVersion);
    return live.metadata.resourceVersion === '6' ? live : undefined;
  }, options);
  news.end();
  news.bring(app('6', 'mine'));
  await waiting;
  expect(seen).toEqual(['5', '6']);
  expect(news.watches).toBe(2);
  follower.stop();
});

test('a wait that begins after the command was interrupted ends at once', async () => {
  const news = new News();
  const follower = new AppFollower(news.cluster, app('1'), pushId);
  const interrupted = AbortSignal.abort(new Error('interrupted'));
  await expect(follower.watch(deployed, { ...options, signal: interrupted })).rejects.toThrow('interrupted');
  expect(news.watches).toBe(0);
  follower.stop();
});

test('watches that end immediately are reopened after pauses, and an event resets the pauses', async () => {
  vi.useFakeTimers();
  let opened = 0;
  const news: Stored<CFApp>[] = [];
  async function* events(): AsyncGenerator<WatchEvent<CFApp>> {
    opened += 1;
    // Without any pause the test itself would get no turn.
    if (opened > 1_000) await new Promise(() => undefined);
    for (const object of news.splice(0)) yield { type: 'MODIFIED', object };
  }
  const follower = new AppFollower({ watch: events } as unknown as Cluster, app('1'), pushId);
  try {
    follower.begin();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(opened).toBeLessThan(20);
    news.push(app('2'));
    await vi.advanceTimersToNextTimerAsync();
    expect(follower.app.metadata.resourceVersion).toBe('2');
    opened = 0;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(opened).toBeGreaterThan(2);
    expect(opened).toBeLessThan(10);
  } finally {
    follower.stop();
    vi.useRealTimers();
  }
});

test('an API server with temporary errors is asked again, for the watch and for the app', async () => {
  vi.useFakeTimers();
  let opened = 0;
  let reads = 0;
  async function* events(): AsyncGenerator<WatchEvent<CFApp>> {
    opened += 1;
    if (opened < 4) throw apiError(429, 'TooManyRequests', 'the server is busy');
    yield { type: 'MODIFIED', object: app('7', 'mine') };
    await new Promise(() => undefined);
  }
  const get = async (): Promise<CFApp> => {
    reads += 1;
    if (reads < 3) throw apiError(500, 'InternalError', 'etcd has no leader');
    return app('6');
  };
  const follower = new AppFollower({ watch: events, get } as unknown as Cluster, app('1'), pushId);
  try {
    const waiting = follower.watch(deployed, { ...options, timeoutMs: 60_000 });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await waiting).toBe('mine');
    expect([opened, reads]).toEqual([4, 3]);
  } finally {
    follower.stop();
    vi.useRealTimers();
  }
});

test('a write that answers after a later version was read does not bring the app back, nor hide what comes', async () => {
  const follower = new AppFollower(
    {
      async *watch(_: unknown, { resourceVersion }: { resourceVersion?: string }) {
        if (resourceVersion === '1') throw apiError(500, 'InternalError', 'the connection was cut');
        await new Promise((resolve) => setTimeout(resolve, 20));
        yield { type: 'MODIFIED', object: app('13', 'serving') };
        await new Promise(() => undefined);
      },
      get: async () => {
        // The answer to this push's own write comes after this one.
        setTimeout(() => follower.wrote(app('11')), 0);
        return Promise.resolve(app('12'));
      },
    } as unknown as Cluster,
    app('1'),
    pushId,
  );
  try {
    expect(await follower.watch(deployed, options)).toBe('serving');
    expect(follower.app.metadata.resourceVersion).toBe('13');
  } finally {
    follower.stop();
  }
});
