// Pods that are deleted before their log could be read.

import { expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { formatLogLines } from '../../../src/lib/logs/format.ts';
import { recentLogs } from '../../../src/lib/logs/recent.ts';
import { followLogs, type LogStream } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';
import type { ScriptedPod } from './scripted-kubelet.ts';

const scene = useLogScene();

const scope = { ns: 'ns', selector: 'app=x' };
const labels = { 'korifi.cloudfoundry.org/task-guid': 'migrate' };
const gap = '-- APP/TASK/migrate/0: gap after 00:00:00.000, the instance is gone --';

const printed = (entries: readonly LogEntry[]): string[] => entries.flatMap((entry) => formatLogLines(entry, { offsetMinutes: 0 }));

/** Follows once the pods are watched. */
async function follow(): Promise<{ stream: LogStream; lines: () => string[] }> {
  const stream = followLogs(scene.cluster, { ...scope, signal: scene.stop.signal, pauseMs: 10 });
  const entries: LogEntry[] = [];
  void (async () => {
    for await (const entry of stream) entries.push(entry);
  })();
  await expect.poll(() => scene.server.callsOf('GET .*/pods').length).toBe(2);
  return { stream, lines: () => printed(entries) };
}

/** Runs to its end. The watch hears nothing of it. */
async function runUnseen(pod: ScriptedPod): Promise<void> {
  await scene.kubelet.start(pod, undefined, true);
  scene.kubelet.say(pod, 'migrated');
  pod.phase = 'Succeeded';
  await scene.kubelet.stop(pod, undefined, true);
}

test('a task that ran and was deleted between two states of its pod is one gap', async () => {
  const { stream, lines } = await follow();
  const pod = scene.kubelet.addPod('task', { labels });
  await runUnseen(pod);
  await scene.kubelet.remove(pod);
  await expect.poll(lines).toEqual([gap]);
  expect(stream.holes).toBe(1);
});

test('a run that began and ended after the one that was read is one gap', async () => {
  const { stream, lines } = await follow();
  const pod = scene.kubelet.addPod('task', { labels });
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, 'first run');
  await expect.poll(() => lines().length).toBe(1);
  const asked = scene.kubelet.logCalls.length;
  await scene.kubelet.stop(pod);
  await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(asked);
  await expect.poll(() => scene.kubelet.openStreams).toBe(0);
  await runUnseen(pod);
  await scene.kubelet.remove(pod);
  await expect.poll(() => lines().length).toBe(2);
  expect([lines()[1], stream.holes]).toEqual(['-- APP/TASK/migrate/0: gap after 00:00:00.001, the instance is gone --', 1]);
});

test('a task that never started is none', async () => {
  const { stream, lines } = await follow();
  await scene.kubelet.remove(scene.kubelet.addPod('task', { labels }));
  await stream.finish(1_000);
  expect([lines(), stream.holes]).toEqual([[], 0]);
});

test('a task whose pod is deleted after it was listed is a gap of the last lines too', async () => {
  await runUnseen(scene.kubelet.addPod('task', { labels }));
  scene.server.on('GET /api/v1/namespaces/ns/pods/task/log', (call) => call.fail(404, 'NotFound', 'pods "task" not found'));
  const { entries, notes } = await recentLogs(scene.cluster, scope);
  expect([printed(entries), notes]).toEqual([[gap], []]);
});

test('a pod that is deleted while it is read keeps the lines of the run before the last restart', async () => {
  const pod = scene.kubelet.addPod('a');
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, 'out of luck', { afterMs: 5_200 });
  await scene.kubelet.stop(pod);
  await scene.kubelet.start(pod);
  // Kubernetes has whole seconds: by its time, the second start is before the crash.
  const { life, lives } = pod.container();
  life.startedMs = Math.floor(scene.kubelet.nowMs / 1000) * 1000;
  const crash = lives[0]?.lines[0];
  scene.server.on('GET /api/v1/namespaces/ns/pods/a/log', (call) =>
    call.query.get('previous') === 'true'
      ? call.text(`${crash?.time ?? ''} ${crash?.text ?? ''}\n`)
      : call.fail(404, 'NotFound', 'pods "a" not found'),
  );
  const { entries, notes } = await recentLogs(scene.cluster, { ...scope, lines: 100 });
  expect([entries.map(({ text }) => text), notes]).toEqual([['out of luck', 'the instance is gone'], []]);
});

test('the gap of a pod that was deleted after it was listed stays beside any number of lines of others', async () => {
  const [gone, busy] = [scene.kubelet.addPod('task', { labels }), scene.kubelet.addPod('busy')];
  await runUnseen(gone);
  await scene.kubelet.start(busy);
  for (let line = 0; line < 20; line += 1) scene.kubelet.say(busy, `line ${String(line)}`);
  scene.server.on('GET /api/v1/namespaces/ns/pods/task/log', (call) => call.fail(404, 'NotFound', 'pods "task" not found'));
  const { entries } = await recentLogs(scene.cluster, { ...scope, lines: 5 });
  expect(entries.map(({ text, gap: hole }) => hole?.reason ?? text)).toEqual([
    'the instance is gone',
    ...['line 15', 'line 16', 'line 17', 'line 18', 'line 19'],
  ]);
});
