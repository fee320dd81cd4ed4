// `kf why` of an app whose last change no controller has taken up yet.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import type { Cluster, WatchOptions } from '../../../src/lib/kube/cluster.ts';
import { absentAfterMs } from '../../../src/lib/ops/controller-wait.ts';
import { busyAfterMs, whyApp } from '../../../src/lib/ops/why/app.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { sleep } from '../../../src/lib/wait.ts';
import { asStored } from '../../support/stored.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const app = asStored<CFApp>({
  metadata: { name: 'guid', namespace: 'space', resourceVersion: '1', annotations: { [annotations.deployId]: 'later' } },
  spec: { displayName: 'shop', desiredState: 'STARTED', lifecycle: { type: 'docker' } } as CFApp['spec'],
});

/** What is said of the app `ms` later. A controller says every five seconds that it leads, until it is gone; the app is deleted at a time. */
async function after(ms: number, { ledMs, deletedMs = Infinity }: { ledMs: number; deletedMs?: number }): Promise<unknown> {
  const began = Date.now();
  const leader = (): unknown => ({
    metadata: { annotations: { [annotations.leaderRenewed]: String(Math.floor(Math.min(Date.now() - began, ledMs) / 5_000)) } },
  });
  const cluster = {
    awayAt: -Infinity,
    get: (type: unknown) => Promise.resolve(type === kinds.runnerInfo ? leader() : undefined),
    list: () => Promise.resolve({ items: [], resourceVersion: '1' }),
    watch: async function* (_: unknown, { signal }: WatchOptions): AsyncGenerator<unknown> {
      await sleep(Math.min(deletedMs, 1_000_000), signal);
      yield { type: 'DELETED', object: app };
    },
  } as unknown as Cluster;
  const { signal } = new AbortController();
  const session = { cluster, signal, space: { guid: 'space', name: 's' }, bin: 'kf', report: () => undefined } as unknown as SpaceSession;
  let said: unknown = 'waits';
  void whyApp(session, app).then(
    (details) => (said = details),
    (error: unknown) => (said = error),
  );
  await vi.advanceTimersByTimeAsync(ms);
  return said;
}

test('a controller that leads is busy, not absent, and is not waited for any longer', async () => {
  expect(await after(absentAfterMs, { ledMs: Infinity })).toBe('waits');
  expect(await after(busyAfterMs, { ledMs: Infinity })).toEqual({
    kind: 'app',
    name: 'shop',
    state: 'waiting',
    message:
      'The last change of the app is accepted, but the controller has not taken it up after 25 s, although it works; it waits in the cluster.',
    events: [],
    next: ['kubectl logs -n kf-system deployment/kf-controller'],
  });
});

test('a controller that does not lead is absent', async () => {
  expect(await after(absentAfterMs, { ledMs: 0 })).toMatchObject({
    state: 'failed',
    cause: 'controller-absent',
    next: ['kubectl get pods -n kf-system', 'kf events shop'],
  });
});

test('an app that is deleted meanwhile is not waited for', async () => {
  expect(await after(5_000, { ledMs: Infinity, deletedMs: 3_000 })).toMatchObject({
    code: 'not-found',
    message: "App 'shop' was deleted meanwhile.",
    hints: ['kf apps'],
  });
});
