// The record of who leads, which admission policies compare with.

import { afterEach, describe, expect, test, vi } from 'vitest';
import { Leader } from '../../../src/controller/runtime/leader.ts';
import { LeaderRecord, type Steadiness } from '../../../src/controller/runtime/leader-record.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { leaseType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';

const stop = new Set<AbortController>();
const place = { ns: 'kf-system', name: 'kf-controller' };
const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: patienceMs, interval: 5 });
const recordIn = (cluster: MemoryCluster): Record<string, string> =>
  cluster.peek(kinds.runnerInfo, place.ns, place.name)?.metadata.annotations ?? {};

afterEach(() => {
  for (const controller of stop) controller.abort();
  stop.clear();
});

/** What a process knows of gaps, here the time of one. */
function steady(since = 0): Steadiness {
  let known = since;
  return { since: () => known, inherit: (other) => void (known = Math.max(known, other)) };
}

function lead(cluster: MemoryCluster, identity: string, serverNow = Date.now): { changes: boolean[]; end: () => Promise<void> } {
  const [changes, controller] = [[] as boolean[], new AbortController()];
  stop.add(controller);
  const times = { leaseMs: 10_000, renewMs: 60, followMs: 20, marginMs: 100 };
  const log = createLogger('error', () => undefined);
  const ended = new Leader(cluster, { ...place, identity, ...times, serverNow }, log, (is) => changes.push(is)).run(controller.signal);
  return {
    changes,
    end: () => {
      controller.abort();
      return ended;
    },
  };
}

test('names each leader before that leader works, and has the time of each renewal', async () => {
  const cluster = new MemoryCluster();
  const first = lead(cluster, 'one');
  await until(() => expect(first.changes).toEqual([true]));
  const { [annotations.leader]: leader, [annotations.leaderRenewed]: renewed = '' } = recordIn(cluster);
  expect([leader, renewed]).toEqual(['one', expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)]);
  await until(() => expect((recordIn(cluster)[annotations.leaderRenewed] ?? '') > renewed).toBe(true));
  await first.end();
  const second = lead(cluster, 'two');
  await until(() => expect(second.changes).toEqual([true]));
  expect(recordIn(cluster)[annotations.leader]).toBe('two');
});

test('has its times, and so has the Lease, by the clock of the API server', async () => {
  const cluster = new MemoryCluster();
  const noon = Date.parse('2026-01-02T12:00:00Z');
  const { changes } = lead(cluster, 'one', () => noon);
  await until(() => expect(changes).toEqual([true]));
  const time = '2026-01-02T12:00:00.000000Z';
  expect(recordIn(cluster)[annotations.leaderRenewed]).toBe(time);
  expect(cluster.peek(leaseType, place.ns, place.name)?.spec).toMatchObject({ renewTime: time, acquireTime: time });
});

test('is not overwritten by a former leader that reads it again after a conflict', async () => {
  const cluster = new MemoryCluster();
  let oldLeads = true;
  const old = new LeaderRecord(cluster, { ...place, identity: 'old', isLeader: () => oldLeads, steadiness: steady() });
  const next = new LeaderRecord(cluster, { ...place, identity: 'next', isLeader: () => true, steadiness: steady() });
  const { signal } = new AbortController();
  await old.write('1', signal);
  await next.write('2', signal);
  // Its check comes before the request: the time of its Lease ends while the request is on its way.
  cluster.intercept = (verb) => void (verb === 'replace' && (oldLeads = false));
  await old.write('3', signal);
  expect(recordIn(cluster)).toMatchObject({ [annotations.leader]: 'next', [annotations.leaderRenewed]: '2' });
});

test('does not end the leadership when it cannot be written', async () => {
  const cluster = new MemoryCluster();
  let tries = 0;
  cluster.intercept = (_, type) => {
    if (type.kind !== 'RunnerInfo') return;
    tries += 1;
    throw new Error('no kind RunnerInfo');
  };
  const { changes } = lead(cluster, 'one');
  await until(() => expect(tries).toBeGreaterThan(1));
  expect(changes).toEqual([true]);
});

describe('the last gap in what a leader heard of the API server', () => {
  const noon = Date.parse('2026-01-02T12:00:00Z');
  const at = (ms: number): string => new Date(noon + ms).toISOString();
  const { signal } = new AbortController();
  const record = (cluster: MemoryCluster, identity: string, steadiness: Steadiness): LeaderRecord =>
    new LeaderRecord(cluster, { ...place, identity, isLeader: () => true, steadiness });

  test.each([
    ['known to its successor', noon - 30_000, 5_000, noon - 30_000],
    ['none when there was none', 0, 5_000, 0],
    ['a time without any leader, of which nobody knows', 0, 61_000, noon + 61_000],
    ['never in the future, whatever clocks do', noon + 500_000, 5_000, noon + 5_000],
  ])('is %s', async (_, gap, laterMs, known) => {
    const cluster = new MemoryCluster();
    await record(cluster, 'one', steady(gap)).write(at(0), signal);
    const successor = steady();
    await record(cluster, 'two', successor).write(at(laterMs), signal);
    expect(successor.since()).toBe(known);
    expect(recordIn(cluster)[annotations.steadySince]).toBe(known === 0 ? undefined : new Date(known).toISOString());
  });

  test('of the successor itself counts when it was later', async () => {
    const cluster = new MemoryCluster();
    await record(cluster, 'one', steady(noon - 30_000)).write(at(0), signal);
    const two = steady(noon + 1_000);
    await record(cluster, 'two', two).write(at(5_000), signal);
    expect([two.since(), recordIn(cluster)[annotations.steadySince]]).toEqual([noon + 1_000, at(1_000)]);
  });

  test('is not what a leader reads of itself while its record cannot be written', async () => {
    const cluster = new MemoryCluster();
    const own = steady();
    const leader = record(cluster, 'one', own);
    await leader.write(at(0), signal);
    cluster.intercept = (verb) => {
      if (verb === 'replace') throw new Error('refused by a webhook');
    };
    for (const seconds of [5, 65, 70]) await expect(leader.write(at(seconds * 1_000), signal)).rejects.toThrow('webhook');
    expect(own.since()).toBe(0);
  });

  test('is known by a container that was started again under the same name', async () => {
    const cluster = new MemoryCluster();
    await record(cluster, 'one', steady(noon - 30_000)).write(at(0), signal);
    const again = steady();
    await record(cluster, 'one', again).write(at(5_000), signal);
    expect(again.since()).toBe(noon - 30_000);
  });

  test('is recorded by the leader that noticed it while it led', async () => {
    const cluster = new MemoryCluster();
    const known = steady();
    const first = record(cluster, 'one', known);
    await first.write(at(0), signal);
    known.inherit(noon + 2_000);
    await first.write(at(5_000), signal);
    expect(recordIn(cluster)[annotations.steadySince]).toBe(at(2_000));
  });
});
