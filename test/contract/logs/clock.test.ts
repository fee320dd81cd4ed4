// A node whose clock is set back, and a kubelet that begins a file again: in both cases an old time follows.

import { expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { followLogs, type LogStream } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';
import type { ScriptedPod } from './scripted-kubelet.ts';

const scene = useLogScene();

/** So many that the follower has forgotten the times of the first ones. */
const many = 9_000;

/** Follows a container that has said many lines; `later` are those after them. */
async function followed(): Promise<{ pod: ScriptedPod; stream: LogStream; later: () => string[] }> {
  const pod = scene.kubelet.addPod('p');
  await scene.kubelet.start(pod);
  for (let line = 1; line <= many; line++) scene.kubelet.say(pod, `line ${String(line)}`);
  const stream = followLogs(scene.cluster, { ns: 'ns', selector: 'app=x', signal: scene.stop.signal, pauseMs: 10 });
  const entries: LogEntry[] = [];
  void (async () => {
    for await (const entry of stream) entries.push(entry);
  })();
  await expect.poll(() => entries.length).toBe(many);
  return { pod, stream, later: () => entries.slice(many).map(({ gap, text }) => (gap === undefined ? text : `GAP ${text}`)) };
}

/** The open connection brings the file again from its first line on. */
function sendAgain(pod: ScriptedPod): void {
  const { lines } = pod.container().life;
  lines.push(...lines);
}

test('lines that are written after the clock was set back come, and none twice after a lost connection', async () => {
  const { pod, stream, later } = await followed();
  scene.kubelet.say(pod, 'set back', { afterMs: -300_000 });
  scene.kubelet.say(pod, 'after it');
  await expect.poll(later).toEqual(['set back', 'after it']);
  scene.server.dropConnections();
  scene.kubelet.say(pod, 'a moment later', { afterMs: 2_000 });
  await expect.poll(later).toEqual(['set back', 'after it', 'a moment later']);
  expect(stream.holes).toBe(0);
});

test('lines that are sent again come once, and so do those that are written after the clock was set back', async () => {
  const { pod, stream, later } = await followed();
  sendAgain(pod);
  scene.kubelet.say(pod, 'new');
  await expect.poll(later).toEqual(['new']);
  scene.kubelet.say(pod, 'set back', { afterMs: -300_000 });
  await expect.poll(later).toEqual(['new', 'set back']);
  expect(stream.holes).toBe(0);
});

test('lines that a second connection sends again, from where it began on, come once', async () => {
  const { pod, stream, later } = await followed();
  scene.server.dropConnections();
  for (let line = 1; line <= many; line++) scene.kubelet.say(pod, `later ${String(line)}`);
  await expect.poll(() => later().length).toBe(many);
  sendAgain(pod);
  scene.kubelet.say(pod, 'new');
  await expect.poll(() => later().slice(many)).toEqual(['new']);
  expect(stream.holes).toBe(0);
});

test('while the kubelet does not say where its file begins, an old line is a gap', async () => {
  const { pod, stream, later } = await followed();
  scene.server.on('GET /api/v1/namespaces/ns/pods/p/log', (call) => call.fail(500, 'InternalError', 'no answer'));
  scene.kubelet.say(pod, 'set back', { afterMs: -300_000 });
  scene.kubelet.say(pod, 'caught up', { afterMs: 400_000 });
  await expect.poll(later).toEqual(['GAP log rotated', 'caught up']);
  expect(stream.holes).toBe(1);
});
