import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { OutsideCalls, type OutsideLimits } from '../../../src/controller/runtime/outside.ts';

const limits: OutsideLimits = { perSpace: 2, total: 4, most: 6, keptMs: 1_000 };
let begun: string[];
let enders: Map<string, () => void>;
let calls: OutsideCalls;

afterEach(() => vi.useRealTimers());
beforeEach(() => {
  [begun, enders, calls] = [[], new Map(), new OutsideCalls(limits)];
});

/** A call that ends when the test says so. */
function call(space: string, name: string): void {
  calls.ask(
    { id: name, space, timeoutMs: 60_000 },
    () => undefined,
    () => {
      begun.push(name);
      return new Promise<void>((resolve) => enders.set(name, resolve));
    },
  );
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function end(...names: string[]): Promise<void> {
  for (const name of names) enders.get(name)?.();
  await settled();
}

describe('calls to other servers for several spaces', () => {
  test('unanswered calls of a space do not delay other spaces', async () => {
    for (let count = 1; count <= 200; count += 1) call('a', `a${count}`);
    await settled();
    expect(begun).toEqual(['a1', 'a2']);
    call('b', 'b1');
    call('b', 'b2');
    await settled();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'b2']);
  });

  test('a space without a call gets one even when the pool is full, until the sockets are used up', async () => {
    for (const space of ['a', 'b']) for (const count of [1, 2, 3]) call(space, `${space}${count}`);
    for (const space of ['c', 'd', 'e']) call(space, `${space}1`);
    call('c', 'c2');
    await settled();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'b2', 'c1', 'd1']);
    await end('a1');
    expect(begun.slice(6)).toEqual(['e1']);
  });

  test('spaces take turns, each in the order of its requests', async () => {
    for (const space of ['a', 'b']) for (const count of [1, 2, 3, 4]) call(space, `${space}${count}`);
    await settled();
    await end('a1', 'b1', 'a2', 'b2');
    expect(begun).toEqual(['a1', 'a2', 'b1', 'b2', 'a3', 'b3', 'a4', 'b4']);
  });
});

test('the time limit of a call counts from its start, not from its request', async () => {
  const seen: string[] = [];
  const slow = (id: string) =>
    calls.ask(
      { id, space: 'a', timeoutMs: 40 },
      () => seen.push(id),
      () => new Promise(() => undefined),
    );
  for (const id of ['1', '2', '3']) slow(id);
  await expect.poll(() => seen).toEqual(['1', '2', '3']);
  expect(slow('3')).toMatchObject({ ok: false });
});

test('an outcome that is not fetched is forgotten', async () => {
  vi.useFakeTimers();
  const ask = () =>
    calls.ask(
      { id: 'x', space: 'a', timeoutMs: 60_000 },
      () => undefined,
      () => Promise.resolve(1),
    );
  expect(ask()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(limits.keptMs + 1);
  expect(ask()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1);
  expect(ask()).toEqual({ ok: true, value: 1 });
});

test('a call that throws at once fails, and its time limit brings no error that nobody handles', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    const ask = () =>
      calls.ask(
        { id: 'broken', space: 'a', timeoutMs: 20 },
        () => undefined,
        () => {
          throw new Error('no such address');
        },
      );
    ask();
    await vi.waitFor(() => expect(ask()).toMatchObject({ ok: false, error: { message: 'no such address' } }));
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
