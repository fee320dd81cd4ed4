import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { Cluster, WatchOptions } from '../../../src/lib/kube/cluster.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import { defined } from '../../../src/lib/defined.ts';
import { KfError } from '../../../src/lib/errors.ts';
import { absentAfterMs, askEveryMs, unlessAbsent, waitForController, type Written } from '../../../src/lib/ops/controller-wait.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { sleep } from '../../../src/lib/wait.ts';
import { asStored } from '../../support/stored.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A cluster in which a controller says every five seconds that it leads, until it is gone. */
function led(
  untilMs: number,
  answer?: (asked: number, signal: AbortSignal) => Promise<void>,
): { cluster: Cluster; asked: () => number; away: () => void } {
  const began = Date.now();
  let asked = 0;
  const get = async (_type: unknown, _ns: unknown, _name: unknown, aborted: AbortSignal): Promise<unknown> => {
    asked += 1;
    await answer?.(asked, aborted);
    const said = Math.floor(Math.min(Date.now() - began, untilMs) / 5_000);
    return { metadata: { annotations: { [annotations.leaderRenewed]: String(said) } } };
  };
  const cluster = { get, awayAt: -Infinity };
  return { cluster: cluster as unknown as Cluster, asked: () => asked, away: () => void (cluster.awayAt = performance.now()) };
}

const failure = (status: number): KubeError => new KubeError('failed', `answered with ${status}`, { status, reason: '' });

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

test('a controller that ends while it is waited for is absent when another one has had time to lead', async () => {
  const { cluster } = led(60_000);
  const waiting = unlessAbsent({ cluster, signal }, lasting(600_000));
  expect(await after(60_000 + absentAfterMs - 1, waiting)).toBe('waits');
  expect(await after(askEveryMs, waiting)).toBe('absent');
});

test('whoever may not read who leads waits no longer than before', async () => {
  const { cluster, asked } = led(Infinity, () => Promise.reject(failure(403)));
  const waiting = unlessAbsent({ cluster, signal }, lasting(600_000));
  expect(await after(absentAfterMs - 1, waiting)).toBe('waits');
  expect(await after(1, waiting)).toBe('absent');
  expect(asked()).toBe(1);
});

test('an answer that fails now and then does not make a controller absent', async () => {
  const { cluster } = led(Infinity, (asked) => (asked % 2 === 0 ? Promise.reject(failure(500)) : Promise.resolve()));
  expect(await after(200_000, unlessAbsent({ cluster, signal }, lasting(200_000)))).toBe('done');
});

test('a controller that says it leads at longer intervals under load is waited for', async () => {
  const { cluster } = led(Infinity);
  const get = async (): Promise<unknown> => ({
    metadata: { annotations: { [annotations.leaderRenewed]: String(Math.floor(performance.now() / 10_000)) } },
  });
  expect(await after(200_000, unlessAbsent({ cluster: Object.assign(cluster, { get }), signal }, lasting(200_000)))).toBe('done');
});

test('a controller that reacts while it is asked for is not absent', async () => {
  const { cluster } = led(0, (asked, aborted) => (asked === 2 ? sleep(2_000, aborted) : Promise.resolve()));
  expect(await after(100_000, unlessAbsent({ cluster, signal }, lasting(100_000, 17_000)))).toBe('done');
});

test('nobody is asked once the controller has reacted, and where the command acts itself', async () => {
  const { cluster, asked } = led(Infinity);
  expect(await after(300_000, unlessAbsent({ cluster, signal }, lasting(300_000, 5_000)))).toBe('done');
  expect(await after(6_000, unlessAbsent({ cluster, signal }, lasting(300_000), 6_000))).toBe('absent');
  expect(asked()).toBe(0);
});

test('an API server that was away gives the controller the whole time again', async () => {
  const { cluster, away } = led(0);
  const waiting = unlessAbsent({ cluster, signal }, lasting(600_000));
  expect(await after(15_000, waiting)).toBe('waits');
  away();
  expect(await after(absentAfterMs - 1, waiting)).toBe('waits');
  expect(await after(askEveryMs, waiting)).toBe('absent');
});

test('so it does where the command acts itself', async () => {
  const { cluster, away } = led(0);
  const waiting = unlessAbsent({ cluster, signal }, lasting(600_000), 6_000);
  expect(await after(4_000, waiting)).toBe('waits');
  away();
  expect(await after(5_999, waiting)).toBe('waits');
  expect(await after(1, waiting)).toBe('absent');
});

describe('the wait for an object', () => {
  const written = asStored<CFRoute>({
    metadata: { name: 'r', namespace: 'space', uid: 'u', resourceVersion: '1' },
    spec: { host: 'shop', domainRef: { name: 'd', namespace: 'n' } },
  });
  /** The object changes at that time. */
  const changedAfter = (cluster: Cluster, ms: number, done = 'yes'): Cluster => {
    const watch = async function* (_: unknown, options: WatchOptions): AsyncGenerator<unknown> {
      await sleep(ms, options.signal);
      yield { type: 'MODIFIED', object: { ...written, metadata: { ...written.metadata, labels: { done } } } };
    };
    return Object.assign(cluster, { watch });
  };
  const begin = (cluster: Cluster, late?: Written<CFRoute>['late']): Promise<string> =>
    waitForController(
      { cluster, signal, report: () => undefined },
      { type: kinds.route, object: written, what: 'Route shop', ...defined({ late }) },
      ({ metadata }) => metadata.labels?.['done'] === 'yes',
      () => ({ type: 'awaiting-controller' }),
    ).then(
      () => 'processed',
      (error: Error) => error.message,
    );

  test('lasts as long as a busy controller needs', async () => {
    expect(await after(100_000, begin(changedAfter(led(Infinity).cluster, 99_000)))).toBe('processed');
  });

  test('ends when nobody leads', async () => {
    const waiting = begin(changedAfter(led(0).cluster, 99_000));
    expect(await after(absentAfterMs - 1, waiting)).toBe('waits');
    expect(await after(1, waiting)).toBe('Route shop is accepted, but no controller has taken it up; it waits in the cluster.');
  });

  test('says after five minutes that the controller works, and is too busy', async () => {
    const waiting = begin(changedAfter(led(Infinity).cluster, 400_000));
    expect(await after(299_000, waiting)).toBe('waits');
    expect(await after(10_000, waiting)).toBe(
      'Route shop is accepted, but the controller has not taken it up after 300 s, although it works; it waits in the cluster.',
    );
  });

  test('ends with a reason that comes only after its time', async () => {
    const late: Written<CFRoute>['late'] = ({ metadata }) =>
      metadata.labels?.['done'] === 'refused' ? new KfError('timeout', 'The gateway does not answer.') : undefined;
    const waiting = begin(changedAfter(led(Infinity).cluster, 50_000, 'refused'), late);
    expect(await after(49_999, waiting)).toBe('waits');
    expect(await after(1, waiting)).toBe('The gateway does not answer.');
  });

  test('ends after its time, with a controller too, when the object says why it takes longer', async () => {
    const waiting = begin(changedAfter(led(Infinity).cluster, 99_000), () => new KfError('timeout', 'The gateway does not answer.'));
    expect(await after(absentAfterMs, waiting)).toBe('The gateway does not answer.');
  });
});
