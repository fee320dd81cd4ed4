// A reader that is slower than the log.

import { expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { followLogs } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';

const scene = useLogScene();

test('the rest of a run that ended before it was read is read when the container runs again', async () => {
  const count = 3_000;
  const pod = scene.kubelet.addPod('p');
  await scene.kubelet.start(pod);
  const expected = Array.from({ length: count }, (_none, index) => `line ${String(index)}`);
  for (const text of expected) scene.kubelet.say(pod, text);
  await scene.kubelet.backOff(pod);
  const stream = followLogs(scene.cluster, { ns: 'ns', selector: 'app=x', signal: scene.stop.signal, pauseMs: 10 });
  const texts: string[] = [];
  for await (const { text } of stream) {
    texts.push(text);
    if (texts.length === 1) {
      // All other lines are on their way. The container runs again, and the connection to the run that ended is given up.
      await new Promise((resolve) => setTimeout(resolve, 300));
      await scene.kubelet.start(pod);
      scene.kubelet.say(pod, 'again');
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    if (text === 'again') break;
  }
  expect(texts).toEqual([...expected, 'again']);
  expect(stream.holes).toBe(0);
});

/** A build of which the first line arrives, and no other one within the time that it gets. */
async function slowBuild(isOver: boolean): Promise<{ entries: LogEntry[]; holes: () => number; finish: () => Promise<void> }> {
  const pod = scene.kubelet.addPod('build', { labels: { 'korifi.cloudfoundry.org/build-workload-name': 'b' } });
  pod.restartPolicy = 'Never';
  await scene.kubelet.start(pod);
  if (isOver) await scene.kubelet.stop(pod);
  if (isOver) pod.phase = 'Failed';
  scene.server.on('GET /api/v1/namespaces/ns/pods/build/log', async (call) => {
    await call.write('2026-01-01T00:00:01.000000000Z first\n');
    await call.closed;
  });
  const stream = followLogs(scene.cluster, { ns: 'ns', selector: 'app=x', signal: scene.stop.signal, pauseMs: 10 });
  const entries: LogEntry[] = [];
  const read = (async () => {
    for await (const entry of stream) entries.push(entry);
  })();
  await expect.poll(() => entries.length).toBe(1);
  const finish = async (): Promise<void> => {
    await stream.finish(200);
    await read;
  };
  return { entries, holes: () => stream.holes, finish };
}

test('what has ended and was not read when the time for it is over has a gap', async () => {
  const { entries, holes, finish } = await slowBuild(true);
  await finish();
  expect(entries.map(({ gap, text }) => gap ?? text)).toEqual([
    'first',
    { from: '2026-01-01T00:00:01.000000000Z', reason: 'not read in time' },
  ]);
  expect(holes()).toBe(1);
});

test('what still runs then has none', async () => {
  const { entries, holes, finish } = await slowBuild(false);
  await finish();
  expect([entries.map(({ text }) => text), holes()]).toEqual([['first'], 0]);
});
