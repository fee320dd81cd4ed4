import { beforeEach, expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { followLogs, type FollowOptions } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';
import { noRoute, type ScriptedPod } from './scripted-kubelet.ts';

const scene = useLogScene();

let waits: string[][];

beforeEach(async () => {
  waits = [];
});

/** Reads a stream in the background. */
function follow(options: Partial<FollowOptions> = {}): { entries: LogEntry[]; texts: () => string[]; done: Promise<void> } {
  const onWait = (sources: readonly { pod: string }[]): void => void waits.push(sources.map(({ pod }) => pod));
  const entries: LogEntry[] = [];
  const done = (async () => {
    const scope = { ns: 'ns', selector: 'app=x', signal: scene.stop.signal, pauseMs: 10, onWait };
    for await (const entry of followLogs(scene.cluster, { ...scope, ...options })) entries.push(entry);
  })();
  done.catch(() => undefined);
  return { entries, texts: () => entries.map(({ gap, text }) => (gap === undefined ? text : `GAP ${text}`)), done };
}

async function runningPod(name: string): Promise<ScriptedPod> {
  const pod = scene.kubelet.addPod(name);
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, `${name} starts`);
  return pod;
}

async function finish(pod: ScriptedPod): Promise<void> {
  pod.phase = 'Succeeded';
  await scene.kubelet.stop(pod);
}

test('a container beyond the limit waits until another one has ended, and is then read from its first line', async () => {
  const [a] = [await runningPod('a'), await runningPod('b')];
  const log = follow({ maxStreams: 2 });
  await expect.poll(() => log.texts()).toEqual(['a starts', 'b starts']);
  expect(waits).toEqual([]);
  const c = await runningPod('c');
  await runningPod('d');
  await expect.poll(() => waits).toEqual([['c']]);
  await finish(a);
  await expect.poll(() => log.texts()).toEqual(['a starts', 'b starts', 'c starts']);
  await scene.kubelet.remove(c);
  await expect.poll(() => log.texts()).toEqual(['a starts', 'b starts', 'c starts', 'd starts']);
  expect(scene.kubelet.mostStreams).toBe(2);
  expect(waits).toHaveLength(1);
});

test('containers beyond the limit of the first look wait too, and one that goes before its turn is a gap', async () => {
  const [a, b] = [await runningPod('a'), await runningPod('b'), await runningPod('c')];
  const log = follow({ maxStreams: 1, since: '2026-01-01T00:00:00.000000000Z', isNewest: true });
  await expect.poll(() => log.texts()).toEqual(['a starts']);
  expect(waits).toEqual([['b', 'c']]);
  await scene.kubelet.remove(b);
  await expect.poll(() => log.texts()).toEqual(['a starts', 'GAP the instance is gone']);
  expect(log.entries[1]?.source.pod).toBe('b');
  await finish(a);
  await expect.poll(() => log.texts()).toEqual(['a starts', 'GAP the instance is gone', 'c starts']);
});

test('what a container lost while it waited is a gap', async () => {
  const [a, b] = [await runningPod('a'), await runningPod('b')];
  const log = follow({ maxStreams: 1, since: '2026-01-01T00:00:05.000000000Z', isNewest: true });
  await expect.poll(() => waits).toEqual([['b']]);
  scene.kubelet.say(b, 'lost', { afterMs: 9_000 });
  scene.kubelet.rotate(b);
  scene.kubelet.say(b, 'kept', { afterMs: 1_000 });
  await finish(a);
  await expect.poll(() => log.texts()).toEqual(['GAP log rotated', 'kept']);
});

test('the containers of finished pods are read once, a few at a time, and take no place of live ones', async () => {
  const names = Array.from({ length: 30 }, (_none, index) => `task-${String(index)}`);
  for (const name of names) await finish(await runningPod(name));
  await runningPod('web');
  const log = follow({ maxStreams: 1 });
  await expect.poll(() => log.texts().toSorted()).toEqual([...names, 'web'].map((name) => `${name} starts`).toSorted());
  expect(scene.kubelet.logCalls.filter(({ query }) => query.get('follow') === 'true')).toHaveLength(1);
  expect(scene.kubelet.logCalls).toHaveLength(31);
  expect(scene.kubelet.mostStreams).toBeLessThanOrEqual(9);
  expect(waits).toEqual([]);
});

test('a container that waited and never started is no gap', async () => {
  const a = await runningPod('a');
  const pending = scene.kubelet.addPod('pending');
  const log = follow({ maxStreams: 1 });
  await expect.poll(() => log.texts()).toEqual(['a starts']);
  await scene.kubelet.remove(pending);
  await runningPod('b');
  await finish(a);
  await expect.poll(() => log.texts()).toEqual(['a starts', 'b starts']);
});

test('finished containers of a node that does not answer keep no others waiting, and are read when it answers', async () => {
  const away = Array.from({ length: 10 }, (_none, index) => `away-${String(index)}`);
  let isAway = true;
  scene.kubelet.faults.isAway = (pod) => isAway && away.includes(pod);
  for (const name of [...away, 'task']) await finish(await runningPod(name));
  const log = follow({ endWithPods: true });
  await expect.poll(() => log.texts()).toContain('task starts');
  const untilThen = log.texts().filter((text) => text !== noRoute);
  isAway = false;
  await log.done;
  expect(untilThen).toEqual(['task starts']);
  const lines = log.texts().filter((text) => text !== noRoute);
  expect(lines.toSorted()).toEqual([...away, 'task'].map((name) => `${name} starts`).toSorted());
});

test('a finished container whose connection breaks keeps no others waiting', async () => {
  const broken = Array.from({ length: 8 }, (_none, index) => `broken-${String(index)}`);
  for (const name of [...broken, 'task']) await finish(await runningPod(name));
  scene.server.on('GET /api/v1/namespaces/ns/pods/broken-[^/]+/log', async (call) => {
    await call.write('2026-01-01');
    call.drop();
  });
  const log = follow();
  await expect.poll(() => log.texts()).toEqual(['task starts']);
});

test('a live container whose node does not answer gives its place to one that waits, and is followed when it answers', async () => {
  const [a] = [await runningPod('a'), await runningPod('b')];
  let isAway = true;
  scene.kubelet.faults.isAway = (pod) => isAway && pod === 'a';
  const log = follow({ maxStreams: 1 });
  await expect.poll(() => log.texts()).toEqual([noRoute, 'b starts']);
  isAway = false;
  await expect.poll(() => log.texts()).toEqual([noRoute, 'b starts', 'a starts']);
  scene.kubelet.say(a, 'a goes on');
  await expect.poll(() => log.texts()).toEqual([noRoute, 'b starts', 'a starts', 'a goes on']);
});

test('a live container whose node answers again has a place again, for which others wait', async () => {
  const a = await runningPod('a');
  let isAway = true;
  scene.kubelet.faults.isAway = () => isAway;
  const log = follow({ maxStreams: 1 });
  await expect.poll(() => log.texts()).toEqual([noRoute]);
  isAway = false;
  await expect.poll(() => log.texts()).toEqual([noRoute, 'a starts']);
  await runningPod('b');
  await expect.poll(() => waits).toEqual([['b']]);
  await finish(a);
  await expect.poll(() => log.texts()).toEqual([noRoute, 'a starts', 'b starts']);
});

test('a live container whose connection breaks keeps its place', async () => {
  const [a] = [await runningPod('a'), await runningPod('b')];
  let breaks = 0;
  scene.kubelet.faults.dropNow = () => ++breaks === 2;
  const log = follow({ maxStreams: 1 });
  await expect.poll(() => log.texts()).toEqual(['a starts']);
  scene.kubelet.say(a, 'a goes on');
  await expect.poll(() => log.texts()).toEqual(['a starts', 'a goes on']);
  expect(scene.kubelet.logCalls.every(({ path }) => path.includes('/pods/a/'))).toBe(true);
});
