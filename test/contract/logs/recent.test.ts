import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { recentLogs, type RecentOptions } from '../../../src/lib/logs/recent.ts';
import { useLogScene } from './log-scene.ts';

const scene = useLogScene();

/** A cluster whose methods can be replaced one by one. */
function bound(of: Cluster): Cluster {
  const list: Cluster['list'] = (type, options) => of.list(type, options);
  return Object.assign(Object.create(of) as Cluster, { list });
}

const scope = { ns: 'ns', selector: 'app=x' };

describe('recent logs', () => {
  test('contain all instances and the crashed run before, by time, and only the newest lines', async () => {
    const [a, b] = [scene.kubelet.addPod('a'), scene.kubelet.addPod('b')];
    await scene.kubelet.start(a);
    await scene.kubelet.start(b);
    scene.kubelet.say(a, 'a crashes', { afterMs: 1_000 });
    await scene.kubelet.stop(a);
    scene.kubelet.say(b, 'b works', { afterMs: 1_000 });
    await scene.kubelet.start(a);
    scene.kubelet.say(a, 'a again', { afterMs: 1_000 });
    scene.kubelet.say(b, 'b still works', { afterMs: 1_000 });
    const all = await recentLogs(scene.cluster, { ...scope, lines: 1_000 });
    expect(all.entries.map(({ text }) => text)).toEqual(['a crashes', 'b works', 'a again', 'b still works']);
    expect(all.notes).toEqual([]);
    const two = await recentLogs(scene.cluster, { ...scope, lines: 2 });
    expect(two.entries.map(({ text }) => text)).toEqual(['a again', 'b still works']);
    expect(scene.kubelet.logCalls.every(({ query }) => query.has('follow') === false || query.get('follow') === 'false')).toBe(true);
  });

  test('runs before the crashed one are a gap, unless they are older than what is asked for', async () => {
    const pod = scene.kubelet.addPod('a');
    for (const text of ['one', 'two', 'three']) {
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, text, { afterMs: 1_000 });
      await scene.kubelet.stop(pod);
    }
    const shown = async (more: Partial<RecentOptions>): Promise<string[]> =>
      (await recentLogs(scene.cluster, { ...scope, ...more })).entries.map(({ gap, text }) =>
        gap === undefined ? text : `${gap.to ?? ''} ${text}`,
      );
    expect(await shown({ lines: 10 })).toEqual(['2026-01-01T00:00:01.000000000Z 1 earlier run is no longer kept', 'two', 'three']);
    expect(await shown({ lines: 1 })).toEqual(['three']);
    expect(await shown({ since: '2026-01-01T00:00:01.500000000Z' })).toEqual(['two', 'three']);
    expect(await shown({ onlyPrevious: true, since: '2026-01-01T00:00:01.500000000Z' })).toEqual(['two']);
  });

  test.each([
    [1, '1 earlier run is no longer kept'],
    [3, '3 earlier runs are no longer kept'],
  ])('a previous run that the kubelet no longer has is a gap, with those before it (%i restarts)', async (restarts, reason) => {
    const pod = scene.kubelet.addPod('a');
    for (let run = 0; run <= restarts; run++) {
      if (run > 0) await scene.kubelet.stop(pod);
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, `of run ${String(run)}`, { afterMs: 1_000 });
    }
    const logs: Cluster['logs'] = (ns, name, options) => {
      // The kubelet has removed it.
      if (options?.previous === true) pod.container().lives.splice(0, restarts);
      return scene.cluster.logs(ns, name, options);
    };
    const shown = async (more: Partial<RecentOptions>): Promise<unknown[]> =>
      (await recentLogs(Object.assign(bound(scene.cluster), { logs }), { ...scope, ...more })).entries.map(({ gap, text }) => gap ?? text);
    const startedAt = `2026-01-01T00:00:0${String(restarts)}.000000000Z`;
    const { lives } = pod.container();
    const all = [...lives];
    for (const more of [{ lines: 10 }, {}, { since: '2026-01-01T00:00:00.000000000Z' }]) {
      lives.splice(0, lives.length, ...all);
      expect(await shown(more)).toEqual([{ to: startedAt, reason }, `of run ${String(restarts)}`]);
    }
    for (const more of [{ lines: 1 }, { since: startedAt }]) {
      lives.splice(0, lives.length, ...all);
      expect(await shown(more)).toEqual([`of run ${String(restarts)}`]);
    }
  });

  test('that match are searched for in whole logs, and only the newest of them are kept', async () => {
    const pods = [scene.kubelet.addPod('a'), scene.kubelet.addPod('b'), scene.kubelet.addPod('c')];
    for (const pod of pods) await scene.kubelet.start(pod);
    const say = (index: number, text: string): void => scene.kubelet.say(pods[index]!, text, { afterMs: 1_000 });
    say(0, 'error 1');
    say(1, 'error 2');
    for (let line = 0; line < 20; line += 1) for (const index of [0, 1, 2]) say(index, 'works');
    const options = { ...scope, isWanted: (text: string) => text.startsWith('error') };
    const search = async (lines: number) => {
      const { entries, withLines } = await recentLogs(scene.cluster, { ...options, lines });
      return [entries.map(({ text }) => text), withLines?.map(({ pod }) => pod)];
    };
    expect(await search(3)).toEqual([['error 1', 'error 2'], ['a', 'b', 'c']]); // prettier-ignore
    for (let number = 3; number < 20; number += 1) say(number % 2, `error ${String(number)}`);
    expect(await search(3)).toEqual([['error 17', 'error 18', 'error 19'], ['a', 'b', 'c']]); // prettier-ignore
    expect(scene.kubelet.logCalls.filter(({ query }) => query.has('tailLines'))).toEqual([]);
  });

  test('that match come after the gap of lost runs, unless older ones of the present runs are left out', async () => {
    const pod = scene.kubelet.addPod('a');
    for (const run of [1, 2, 3]) {
      await scene.kubelet.start(pod);
      for (const text of ['works', `error of run ${String(run)}`, 'works', 'works']) scene.kubelet.say(pod, text, { afterMs: 1_000 });
      await scene.kubelet.stop(pod);
    }
    const shown = async (lines: number): Promise<string[]> => {
      const isWanted = (text: string): boolean => text.startsWith('error');
      return (await recentLogs(scene.cluster, { ...scope, lines, isWanted })).entries.map(({ text }) => text);
    };
    expect(await shown(3)).toEqual(['1 earlier run is no longer kept', 'error of run 2', 'error of run 3']);
    expect(await shown(1)).toEqual(['error of run 3']);
  });

  test('in the back-off of a crash loop the run that ended last is the previous one, and those before it are a gap', async () => {
    const pod = scene.kubelet.addPod('a');
    for (const text of ['one', 'two', 'three']) {
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, text, { afterMs: 1_000 });
      await scene.kubelet.backOff(pod);
    }
    for (const onlyPrevious of [false, true]) {
      const { entries, notes, isWithoutLogs } = await recentLogs(scene.cluster, { ...scope, lines: 10, onlyPrevious });
      expect(entries.map(({ time, text, gap }) => [time.slice(17, 19), gap === undefined ? 'line' : 'gap', text])).toEqual([
        ['02', 'gap', '2 earlier runs are no longer kept'],
        ['03', 'line', 'three'],
      ]);
      expect([notes, isWithoutLogs]).toEqual([[], false]);
    }
    // It may start again before its log is read.
    const logs: Cluster['logs'] = async (ns, name, options) => {
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, 'four');
      return scene.cluster.logs(ns, name, options);
    };
    const previous = await recentLogs(Object.assign(bound(scene.cluster), { logs }), { ...scope, lines: 1, onlyPrevious: true });
    expect(previous.entries.map(({ text }) => text)).toEqual(['three']);
  });

  test('a previous log that is no longer kept is a note when it was asked for, and an instance that runs for the first time has none', async () => {
    const pod = scene.kubelet.addPod('a');
    await scene.kubelet.start(pod);
    expect(await recentLogs(scene.cluster, { ...scope, onlyPrevious: true })).toEqual({
      entries: [],
      notes: [],
      isWithoutLogs: true,
      unread: 0,
    });
    await scene.kubelet.stop(pod);
    await scene.kubelet.start(pod);
    scene.server.on('GET .*/log', (call) =>
      call.fail(400, 'BadRequest', 'previous terminated container "application" in pod "a" not found'),
    );
    const { notes, isWithoutLogs } = await recentLogs(scene.cluster, { ...scope, onlyPrevious: true });
    expect(notes.map(({ text }) => text)).toEqual(['previous terminated container "application" in pod "a" not found']);
    expect(isWithoutLogs).toBe(false);
  });

  test('the lines of a container that ended while it was read are not shown twice', async () => {
    const pod = scene.kubelet.addPod('a');
    await scene.kubelet.start(pod);
    await scene.kubelet.stop(pod);
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'starts');
    scene.kubelet.say(pod, 'crashes');
    // For the kubelet both runs' logs are of the one that has just ended; the list of pods is a moment older.
    const logs: Cluster['logs'] = (ns, name, options) => scene.cluster.logs(ns, name, { ...options, previous: false });
    const { entries } = await recentLogs(Object.assign(bound(scene.cluster), { logs }), { ...scope, lines: 10 });
    expect(entries.map(({ text }) => text)).toEqual(['starts', 'crashes']);
  });

  test('the previous runs of several instances are all shown', async () => {
    const [a, b] = [scene.kubelet.addPod('a'), scene.kubelet.addPod('b')];
    for (const pod of [a, b]) await scene.kubelet.start(pod);
    scene.kubelet.say(b, 'b begins', { afterMs: 1_000 });
    for (const pod of [a, b]) {
      scene.kubelet.say(pod, `${pod.name} crashes`, { afterMs: 1_000 });
      await scene.kubelet.stop(pod);
    }
    for (const pod of [a, b]) {
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, `${pod.name} again`, { afterMs: 1_000 });
    }
    const { entries } = await recentLogs(scene.cluster, { ...scope, onlyPrevious: true });
    expect(entries.map(({ text }) => text)).toEqual(['b begins', 'a crashes', 'b crashes']);
  });

  test("a container that never started is noted with the API server's message, and counts as read", async () => {
    scene.kubelet.addPod('a');
    const { entries, notes, unread } = await recentLogs(scene.cluster, { ...scope, lines: 10 });
    expect([entries, unread]).toEqual([[], 0]);
    expect(notes.map(({ text, source }) => [source.pod, text])).toEqual([
      ['a', 'container "application" in pod "a" is waiting to start: ContainerCreating'],
    ]);
  });

  test('a line of more than 256 KiB says that it is cut, and one of 256 KiB is whole', async () => {
    const pod = scene.kubelet.addPod('a');
    await scene.kubelet.start(pod);
    // The limit counts the time before the text too.
    const most = 256 * 1024 - '2026-01-01T00:00:00.000000000Z '.length;
    scene.kubelet.say(pod, 'x'.repeat(most));
    scene.kubelet.say(pod, 'y'.repeat(most + 1));
    scene.kubelet.say(pod, 'the next line');
    const texts = (await recentLogs(scene.cluster, { ...scope })).entries.map(({ text }) => text);
    expect(texts.map((text) => text.length)).toEqual([most, expect.any(Number), 13]);
    expect(texts[1]).toBe(`${'y'.repeat(most)} [cut by kf: the line is longer than 256 KiB]`);
  });

  test('a log that breaks off keeps its lines and reports the break', async () => {
    const pod = scene.kubelet.addPod('a');
    await scene.kubelet.start(pod);
    for (const text of ['one', 'two', 'three']) scene.kubelet.say(pod, text);
    let chunk = 0;
    scene.kubelet.faults.dropNow = () => ++chunk === 3;
    const { entries, notes, unread } = await recentLogs(scene.cluster, { ...scope, lines: 10 });
    expect([entries.map(({ text }) => text), unread]).toEqual([['one', 'two'], 1]);
    expect(notes[0]?.text).toBe('The log could not be read to its end.');
  });

  test('of a node that does not answer are asked for a few times, and those of others are there at once', async () => {
    const away = Array.from({ length: 30 }, (_none, index) => `away-${String(index)}`);
    for (const name of [...away, 'here']) {
      const pod = scene.kubelet.addPod(name);
      pod.node = name === 'here' ? 'node-1' : 'node-2';
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, `${name} works`);
    }
    scene.kubelet.faults.isSilent = (pod) => pod !== 'here';
    const { entries, notes, unread } = await recentLogs(scene.cluster, { ...scope, lines: 10, patienceMs: 200 });
    expect([entries.map(({ text }) => text), unread]).toEqual([['here works'], 30]);
    expect(notes.map(({ source, text }) => [source.pod, text])).toEqual(away.map((name) => [name, "Node 'node-2' does not answer."]));
    expect(scene.kubelet.logCalls.length).toBeLessThanOrEqual(1 + 8);
  });

  test('of a node that has answered are all asked for, also after one that did not begin in time', async () => {
    // As many as are asked for at once do not begin in time, after one that did; the last one is asked for when they have not.
    const slow = Array.from({ length: 8 }, (_none, index) => `slow-${String(index)}`);
    for (const name of ['a', ...slow, 'late']) {
      const pod = scene.kubelet.addPod(name);
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, `${name} works`);
    }
    scene.kubelet.faults.isSilent = (pod) => slow.includes(pod);
    const { entries, notes } = await recentLogs(scene.cluster, { ...scope, lines: 10, patienceMs: 300 });
    expect(entries.map(({ text }) => text)).toEqual(['a works', 'late works']);
    expect(notes.map(({ source, text }) => [source.pod, text])).toEqual(slow.map((name) => [name, "Node 'node-1' does not answer."]));
  });

  test('that begin in time are read to their end, however long that takes', async () => {
    const pod = scene.kubelet.addPod('a');
    await scene.kubelet.start(pod);
    scene.server.on('GET .*/log', async (call) => {
      await call.write('2026-01-01T00:00:01.000000000Z one\n');
      await sleep(300);
      await call.write('2026-01-01T00:00:02.000000000Z two\n');
      call.end();
    });
    const { entries, notes } = await recentLogs(scene.cluster, { ...scope, lines: 10, patienceMs: 100 });
    expect([entries.map(({ text }) => text), notes]).toEqual([['one', 'two'], []]);
  });

  test('an error text of the kubelet in the body is a note, not a line', async () => {
    const pod = scene.kubelet.addPod('a');
    await scene.kubelet.start(pod);
    scene.server.on('GET .*/log', (call) => call.text('unable to retrieve container logs for containerd://1'));
    const { entries, notes } = await recentLogs(scene.cluster, { ...scope, lines: 10 });
    expect([entries, notes.map(({ text }) => text)]).toEqual([[], ['unable to retrieve container logs for containerd://1']]);
  });

  test('without the right to list pods the missing right is named', async () => {
    scene.server.on('GET .*/pods', (call) =>
      call.fail(403, 'Forbidden', 'pods is forbidden: User "j" cannot list resource "pods" in API group "" in the namespace "ns"'),
    );
    await expect(recentLogs(scene.cluster, { ...scope, lines: 10 })).rejects.toMatchObject({ code: 'forbidden' });
  });
});
