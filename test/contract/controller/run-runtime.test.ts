import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { fence } from '../../../src/controller/runtime/fenced.ts';
import { Leader } from '../../../src/controller/runtime/leader.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import type { Memory } from '../../../src/controller/runtime/memory.ts';
import { OutsideCalls } from '../../../src/controller/runtime/outside.ts';
import { watch, type Reconciler } from '../../../src/controller/runtime/reconciler.ts';
import { NotLeaderError, TerminalError, WaitingError } from '../../../src/controller/runtime/result.ts';
import { configMapType, leaseType, serviceType, type Service } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { apiError, MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';

const log = createLogger('error', () => undefined);
const noted = 'kf.cloudfoundry.org/noted';
const stop = new Set<AbortController>();
const until = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, { timeout: patienceMs, interval: 5 });
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

describe('Leader', () => {
  const contend = (cluster: MemoryCluster, identity: string, now?: () => number) => {
    const changes: boolean[] = [];
    const times = { leaseMs: 1_000, renewMs: 60, followMs: 20, marginMs: 100, ...(now === undefined ? {} : { now }) };
    const leader = new Leader(cluster, { ns: 'kf-system', name: 'kf', identity, ...times }, log, (is) => changes.push(is));
    const controller = running();
    return { leader, changes, controller, ended: leader.run(controller.signal) };
  };

  test('lets one of two lead, and the other takes over at once when the first releases the Lease', async () => {
    const cluster = new MemoryCluster();
    // The clock does not move, so no Lease expires, however long this takes.
    const first = contend(cluster, 'one', () => 0);
    await until(() => expect(first.leader.isLeader).toBe(true));
    const second = contend(cluster, 'two', () => 0);
    await sleep(100);
    expect(second.leader.isLeader).toBe(false);
    first.controller.abort();
    await first.ended;
    expect(first.leader.isLeader).toBe(false);
    await until(() => expect(second.leader.isLeader).toBe(true));
    expect(cluster.peek(leaseType, 'kf-system', 'kf')?.spec?.leaseTransitions).toBe(1);
  });

  test('that slept past its deadline may not write, even before it reads the Lease again', async () => {
    const cluster = new MemoryCluster();
    let skipped = 0;
    const frozen = contend(cluster, 'one', () => performance.now() + skipped);
    await until(() => expect(frozen.leader.isLeader).toBe(true));
    skipped = 901;
    expect(() => frozen.leader.assertLeader()).toThrow('not the leader');
  });

  test('that died is replaced when its Lease expires by the clock of the follower', async () => {
    const cluster = new MemoryCluster();
    let isCutOff = false;
    const cut = new Proxy(cluster, {
      get: (target, property) => {
        if (isCutOff) throw apiError(500, 'InternalError', 'cut off');
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    let time = 0;
    let looks = 0;
    const looked = async (): Promise<void> => {
      const before = looks;
      await until(() => expect(looks).toBeGreaterThan(before + 1));
    };
    const dead = contend(cut, 'one', () => time);
    await until(() => expect(dead.leader.isLeader).toBe(true));
    isCutOff = true;
    cluster.intercept = () => void (looks += 1);
    const second = contend(cluster, 'two', () => time);
    await looked();
    time = 1_000;
    await looked();
    expect(second.leader.isLeader).toBe(false);
    expect(dead.leader.isLeader).toBe(false);
    time = 1_001;
    await until(() => expect(second.leader.isLeader).toBe(true));
  });
});

describe('the fence around writes', () => {
  const fenced = (cluster: MemoryCluster, isLeader = true) =>
    fence(cluster, {
      assertLeader: () => {
        if (!isLeader) throw new Error('not the leader');
      },
      observe: () => undefined,
      measure: () => undefined,
    });

  test('refuses writes without leadership, and allows reads', async () => {
    const cluster = new MemoryCluster();
    const view = fenced(cluster, false);
    await expect(view.create(serviceType, service('a'))).rejects.toThrow('not the leader');
    expect(await view.get(serviceType, 'ns', 'a')).toBeUndefined();
    expect(cluster.writes).toEqual([]);
  });

  test('takes the refusal of the policy that asks the Lease as the loss of leadership, and no other refusal', async () => {
    const cluster = new MemoryCluster();
    const view = fenced(cluster);
    let policy = 'kf-controller-leads';
    cluster.intercept = (verb) => {
      if (verb === 'create')
        throw apiError(403, 'Forbidden', `services "a" is forbidden: ValidatingAdmissionPolicy '${policy}' denied request: x`);
      return undefined;
    };
    await expect(view.create(serviceType, service('a'))).rejects.toThrow(NotLeaderError);
    policy = 'another';
    await expect(view.create(serviceType, service('a'))).rejects.not.toThrow(NotLeaderError);
  });

  test('refuses a patch, replace or delete without a precondition', async () => {
    // As code without type checks would call it.
    const view: Cluster = fenced(new MemoryCluster());
    await expect(view.mergePatch(serviceType, 'ns', 'a', { spec: {} })).rejects.toThrow('without a uid or resourceVersion');
    await expect(view.delete(serviceType, 'ns', 'a')).rejects.toThrow('without a uid or resourceVersion');
    await expect(view.replace(serviceType, service('a'))).rejects.toThrow('without a uid or resourceVersion');
  });

  test.each(['uid', 'resourceVersion'])('does not accept an empty %s as a precondition, whatever stands beside it', async (field) => {
    const cluster = new MemoryCluster();
    const view: Cluster = fenced(cluster);
    const live = await view.create(serviceType, service('a'));
    const { uid, resourceVersion } = live.metadata;
    const refusal = `with an empty ${field}`;
    for (const metadata of [{ [field]: '' }, { uid, resourceVersion, [field]: '' }]) {
      const object = { ...live, metadata: { ...service('a').metadata, ...metadata } };
      const precondition = metadata as { uid: string };
      await expect(view.mergePatch(serviceType, 'ns', 'a', { metadata: precondition })).rejects.toThrow(refusal);
      await expect(view.delete(serviceType, 'ns', 'a', precondition)).rejects.toThrow(refusal);
      await expect(view.replace(serviceType, object)).rejects.toThrow(refusal);
      await expect(view.apply(serviceType, object, { fieldManager: 'x' })).rejects.toThrow(refusal);
    }
    expect(cluster.writes.map(({ verb }) => verb)).toEqual(['create']);
  });
});

describe('calls to other servers', () => {
  test('return an outcome once, after the key was queued again', async () => {
    const calls = new OutsideCalls();
    const requeue = vi.fn();
    const ask = () => calls.ask({ id: 'digest of x', space: 'a', timeoutMs: 1_000 }, requeue, () => Promise.resolve(42));
    expect(ask()).toBeUndefined();
    expect(ask()).toBeUndefined();
    await until(() => expect(requeue).toHaveBeenCalledTimes(1));
    expect(ask()).toEqual({ ok: true, value: 42 });
    expect(ask()).toBeUndefined();
  });

  test('fail at their time limit if they never end', async () => {
    const calls = new OutsideCalls();
    const requeue = vi.fn();
    const ask = () => calls.ask({ id: 'x', space: 'a', timeoutMs: 20 }, requeue, () => new Promise(() => undefined));
    ask();
    await until(() => expect(requeue).toHaveBeenCalled());
    expect(ask()).toMatchObject({ ok: false });
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('Manager', () => {
  const manage = (cluster: MemoryCluster, reconcile: Reconciler['reconcile'], identity = 'one') => {
    const reconciler: Reconciler = { name: 'service', watches: [watch(serviceType)], reconcile };
    const controller = running();
    const leader = { ns: 'kf-system', name: 'kf', identity, followMs: 20 };
    const manager = new Manager({ cluster, sources: [], reconcilers: [reconciler], leader, rootNamespace: 'cf', log });
    return { manager, controller, ended: manager.run(controller.signal) };
  };

  test('reconciles existing and new objects, and retries errors but not terminal ones', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('bad'));
    await cluster.create(serviceType, service('flaky'));
    const seen: string[] = [];
    const { manager } = manage(cluster, async (key) => {
      seen.push(key);
      if (key === 'ns/bad') throw new TerminalError('Invalid', 'never');
      if (key === 'ns/flaky' && seen.filter((other) => other === key).length < 3) throw new Error('once more');
      if (key === 'ns/late' && seen.filter((other) => other === key).length < 2) throw new WaitingError('NotYet', 'soon', 10);
      return Promise.resolve(undefined);
    });
    await until(() => expect(seen.filter((key) => key === 'ns/flaky')).toHaveLength(3));
    await cluster.create(serviceType, service('late'));
    await until(() => expect(seen.filter((key) => key === 'ns/late')).toHaveLength(2));
    expect(seen.filter((key) => key === 'ns/bad')).toHaveLength(1);
    expect(await manager.renderMetrics()).toContain('kf_reconcile_total{reconciler="service",outcome="terminal"} 1');
  });

  test('tries what lasts until somebody changes it in ever longer pauses, and a success ends them', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('lasting'));
    const tries: number[] = [];
    let isMended = false;
    manage(cluster, async () => {
      tries.push(performance.now());
      if (!isMended) throw new WaitingError('Lasting', 'it is held', 20, 160);
      return Promise.resolve({ requeueAfterMs: 1 });
    });
    await until(() => expect(tries.length).toBeGreaterThan(5));
    const pauses = tries.slice(1).map((at, index) => at - (tries[index] ?? 0));
    expect(pauses.slice(0, 5).map((ms, index) => ms >= Math.min(160, 20 * 2 ** index) - 2)).toEqual([true, true, true, true, true]);
    isMended = true;
    const before = tries.length;
    await until(() => expect(tries.length).toBeGreaterThan(before + 2));
    isMended = false;
    const again = tries.length;
    await until(() => expect(tries.length).toBeGreaterThan(again + 1));
    expect((tries[again + 1] ?? 0) - (tries[again] ?? 0)).toBeLessThan(160);
  });

  test('inherits the last gap from the leader before, before it works', async () => {
    const cluster = new MemoryCluster();
    const gap = '2026-01-02T12:00:00.000Z';
    const said = { [annotations.leaderRenewed]: new Date().toISOString(), [annotations.steadySince]: gap };
    const typed = { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'RunnerInfo' } as const;
    const metadata = { name: 'kf', namespace: 'kf-system', annotations: said };
    await cluster.create(kinds.runnerInfo, { ...typed, metadata, spec: { runnerName: 'kf' } });
    await cluster.create(serviceType, service('a'));
    const seen: number[] = [];
    manage(cluster, (_, { stores }) => {
      seen.push(stores.of(serviceType).steadySince);
      return Promise.resolve(undefined);
    });
    await until(() => expect(seen).toEqual([Date.parse(gap)]));
  });

  describe('/healthz', () => {
    const served = async (cluster: MemoryCluster, reconcile: Reconciler['reconcile']) => {
      const httpPort = await freePort();
      const reconciler: Reconciler = { name: 'service', watches: [watch(serviceType)], reconcile };
      const leader = { ns: 'kf-system', name: 'kf', identity: 'one', followMs: 20, renewMs: 100 };
      const manager = new Manager({
        cluster,
        sources: [],
        reconcilers: [reconciler],
        leader,
        rootNamespace: 'cf',
        log,
        httpPort,
        silenceMs: 50,
        stuckMs: 1_500,
      });
      void manager.run(running().signal);
      return async () => {
        const answer = await fetch(`http://127.0.0.1:${httpPort}/healthz`).catch(() => undefined);
        return answer === undefined ? undefined : [answer.status, (await answer.text()).trim()];
      };
    };

    test('fails if a reconcile never returns, and names it', async () => {
      const cluster = new MemoryCluster();
      const health = await served(cluster, (key) => (key === 'ns/stuck' ? new Promise(() => undefined) : Promise.resolve(undefined)));
      await cluster.create(serviceType, service('fine'));
      await until(async () => expect(await health()).toEqual([200, 'ok']));
      await cluster.create(serviceType, service('stuck'));
      await until(async () => expect(await health()).toEqual([503, "the reconciler 'service' does not come back from ns/stuck"]));
    });

    const nothing = (): Promise<undefined> => Promise.resolve(undefined);

    test('fails if a watch gives no sign of life any more, and names its kind', async () => {
      const cluster = new MemoryCluster();
      const health = await served(cluster, nothing);
      await until(async () => expect(await health()).toEqual([200, 'ok']));
      cluster.intercept = (_verb, { kind }) => (kind === 'Service' ? new Promise(() => undefined) : undefined);
      cluster.cutWatches();
      await until(async () => expect(await health()).toEqual([503, 'nothing is heard of services any more']));
    });

    test('fails if the Lease is not read any more, because such a process would never lead again', async () => {
      const cluster = new MemoryCluster();
      const health = await served(cluster, nothing);
      await until(async () => expect(await health()).toEqual([200, 'ok']));
      cluster.intercept = (_verb, { kind }) => (kind === 'Lease' ? new Promise(() => undefined) : undefined);
      await until(async () => expect(await health()).toEqual([503, 'the Lease is not looked at any more']));
    });
  });

  test('continues with other work when a write is refused without leadership', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    let tries = 0;
    manage(cluster, () => {
      tries += 1;
      // Like a process that was frozen beyond its lease: the fence refuses at once, before other parts of the process know.
      return Promise.reject(new NotLeaderError());
    });
    await until(() => expect(tries).toBeGreaterThan(0));
    await sleep(100);
    expect(tries).toBeLessThan(3);
  });

  test('never reconciles the same key twice at a time, although it changes meanwhile', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    let inWork = 0;
    let most = 0;
    let count = 0;
    manage(cluster, async () => {
      inWork += 1;
      most = Math.max(most, inWork);
      await sleep(15);
      inWork -= 1;
      count += 1;
      return undefined;
    });
    for (let round = 0; round < 5; round += 1) {
      await cluster.mergePatch(serviceType, 'ns', 'a', { metadata: { annotations: { round: String(round) } } });
      await sleep(5);
    }
    await until(() => expect(count).toBeGreaterThanOrEqual(2));
    expect(most).toBe(1);
  });

  test('has the result of a write in the store before the watch brings it', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    const found: (string | undefined)[] = [];
    manage(cluster, async (key, context) => {
      if (key !== 'ns/a') return undefined;
      const live = context.stores.of(serviceType).get('ns', 'a');
      if (live !== undefined && live.metadata.annotations?.[noted] === undefined) {
        await context.cluster.mergePatch(serviceType, 'ns', 'a', { metadata: { uid: live.metadata.uid, annotations: { [noted]: 'y' } } });
      }
      found.push(context.stores.of(serviceType).get('ns', 'a')?.metadata.annotations?.[noted]);
      return undefined;
    });
    await until(() => expect(found.length).toBeGreaterThan(0));
    expect(found[0]).toBe('y');
  });

  test('works as a follower on nothing until the leader is gone, then on everything', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    const seen = { one: 0, two: 0 };
    const first = manage(cluster, async () => Promise.resolve(void (seen.one += 1)), 'one');
    await until(() => expect(seen.one).toBe(1));
    manage(cluster, async () => Promise.resolve(void (seen.two += 1)), 'two');
    await sleep(80);
    expect(seen.two).toBe(0);
    first.controller.abort();
    await first.ended;
    await until(() => expect(seen.two).toBe(1));
  });

  test('remembers nothing of an earlier term when it leads again', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    const memories: Memory[] = [];
    const reconcile: Reconciler['reconcile'] = (_, { memory }) => Promise.resolve(void memories.push(memory));
    const reconciler: Reconciler = { name: 'service', watches: [watch(serviceType)], reconcile };
    const leader = { ns: 'kf-system', name: 'kf', identity: 'one', followMs: 20, renewMs: 50 };
    const manager = new Manager({ cluster, sources: [], reconcilers: [reconciler], leader, rootNamespace: 'cf', log });
    void manager.run(running().signal);
    await until(() => expect(memories).toHaveLength(1));
    const change = () => cluster.mergePatch(serviceType, 'ns', 'a', { metadata: { annotations: { [noted]: String(memories.length) } } });
    await change();
    await until(() => expect(memories).toHaveLength(2));
    const hand = (holderIdentity: string) => cluster.mergePatch(leaseType, 'kf-system', 'kf', { spec: { holderIdentity } });
    await hand('two');
    await until(async () => expect(await manager.renderMetrics()).toContain('kf_leader 0'));
    await hand('');
    await change();
    await until(() => expect(memories).toHaveLength(3));
    expect(memories.map((memory) => memory === memories[0])).toEqual([true, true, false]);
  });

  test('begins nothing as a follower that is asked to end', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    let begun = 0;
    const first = manage(cluster, async () => Promise.resolve(undefined), 'one');
    await until(() => expect(cluster.peek(leaseType, 'kf-system', 'kf')?.spec?.holderIdentity).toBe('one'));
    const second = manage(cluster, async () => Promise.resolve(void (begun += 1)), 'two');
    await sleep(80);
    second.controller.abort();
    await second.ended;
    expect(begun).toBe(0);
    first.controller.abort();
  });

  test('ends if it was asked to before it began', async () => {
    const cluster = new MemoryCluster();
    const leader = { ns: 'kf-system', name: 'kf', identity: 'one', followMs: 20 };
    await new Manager({ cluster, sources: [], reconcilers: [], leader, rootNamespace: 'cf', log }).run(AbortSignal.abort());
    expect(cluster.writes).toEqual([]);
  });

  test('waits without kf-info, which is not an error', async () => {
    const cluster = new MemoryCluster();
    await cluster.create(serviceType, service('a'));
    const problems: unknown[] = [];
    const { manager } = manage(cluster, async (_key, context) => {
      try {
        context.info();
      } catch (error) {
        problems.push(error);
        throw error;
      }
      return Promise.resolve(undefined);
    });
    await until(() => expect(problems[0]).toBeInstanceOf(WaitingError));
    expect(await manager.renderMetrics()).toContain('outcome="waiting"} 1');
    expect(cluster.all(configMapType)).toEqual([]);
  });
});
