import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { annotations } from '../../../src/lib/api/group.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { absentAfterMs, unlessAbsent } from '../../../src/lib/ops/controller-wait.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A cluster in which a controller says every five seconds that it leads, until it is gone. */
function led(untilMs: number, refuses = false): { cluster: Cluster; asked: () => number } {
  const began = Date.now();
  let asked = 0;
  const get = async (): Promise<unknown> => {
    asked += 1;
    if (refuses) throw new Error('forbidden');
    const said = Math.floor(Math.min(Date.now() - began, untilMs) / 5_000);
    return { metadata: { annotations: { [annotations.leaderRenewed]: String(said) } } };
  };
  return { cluster: { get } as unknown as Cluster, asked: () => asked };
}

/** A wait that `ms` later has its result. `reacts` ms after its begin the controller has reacted. */
const lasting =
  (ms: number, reacts = Infinity) =>
  (signal: AbortSignal, alive: () => void): Promise<string> =>
    new Promise((resolve, reject) => {
      if (reacts !== Infinity) setTimeout(alive, reacts);
      setTimeout(() => resolve('done'), ms);
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });

const { signal } = new AbortController();

async function after(ms: number, waiting: Promise<string | undefined>): Promise<string> {
  let said = 'waits';
  void waiting.then((result) => (said = result ?? 'absent'));
  await vi.advanceTimersByTimeAsync(ms);
  return said;
}

test('a controller that says nothing is absent when the time is up', async () => {
  const { cluster } = led(0);
  const waiting = unlessAbsent({ cluster, signal }, lasting(600_000));
  expect(await after(absentAfterMs - 1, waiting)).toBe('waits');
  expect(await after(1, waiting)).toBe('absent');
});

test('a controller that leads and is busy is waited for', async () => {
  const { cluster } = led(Infinity);
  expect(await after(100_000, unlessAbsent({ cluster, signal }, lasting(100_000)))).toBe('done');
});

test('a controller that ends while it is waited for is absent soon after that', async () => {
  const { cluster } = led(60_000);
  const waiting = unlessAbsent({ cluster, signal }, lasting(600_000));
  expect(await after(60_000, waiting)).toBe('waits');
  expect(await after(20_000, waiting)).toBe('absent');
});

test('whoever may not read who leads waits no longer than before', async () => {
  const { cluster } = led(Infinity, true);
  expect(await after(absentAfterMs, unlessAbsent({ cluster, signal }, lasting(600_000)))).toBe('absent');
});

test('nobody is asked once the controller has reacted, and where the command acts itself', async () => {
  const { cluster, asked } = led(Infinity);
  expect(await after(300_000, unlessAbsent({ cluster, signal }, lasting(300_000, 5_000)))).toBe('done');
  expect(await after(6_000, unlessAbsent({ cluster, signal }, lasting(300_000), 6_000))).toBe('absent');
  expect(asked()).toBe(0);
});
