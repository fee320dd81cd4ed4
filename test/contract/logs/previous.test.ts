// The log of a run that has ended, read while the container goes on.

import { expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { followLogs, type LogStream } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';
import type { ScriptedPod } from './scripted-kubelet.ts';

const scene = useLogScene();

function follow(): { stream: LogStream; shown: () => string[] } {
  const stream = followLogs(scene.cluster, { ns: 'ns', selector: 'app=x', signal: scene.stop.signal, pauseMs: 20 });
  const entries: LogEntry[] = [];
  void (async () => {
    for await (const entry of stream) entries.push(entry);
  })();
  return { stream, shown: () => entries.map(({ gap, text }) => (gap === undefined ? text : `GAP ${text}`)) };
}

const lines = (run: string, count: number): string[] => Array.from({ length: count }, (_none, index) => `${run} ${String(index + 1)}`);

/** A pod whose first run has ended after these lines, and whose second one runs. */
async function restarted(texts: readonly string[]): Promise<ScriptedPod> {
  const pod = scene.kubelet.addPod('p');
  await scene.kubelet.start(pod);
  for (const text of texts) scene.kubelet.say(pod, text, { afterMs: 600 });
  await scene.kubelet.stop(pod);
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, 'two', { afterMs: 1_500 });
  return pod;
}

test.each([
  ['known from the status of the pod', false],
  ['served before the status of the pod shows it', true],
])('a run that is over when the log of the run before breaks off, %s, is not taken for that one', async (_name, isLate) => {
  const pod = await restarted(lines('one', 4));
  let chunks = 0;
  scene.kubelet.faults.dropNow = () => {
    if (++chunks !== 3) return false;
    void scene.kubelet.stop(pod, undefined, true);
    void scene.kubelet.start(pod, undefined, isLate);
    return true;
  };
  const { stream, shown } = follow();
  await expect.poll(shown).toEqual(['one 1', 'one 2', 'GAP the run before the restart cannot be read', ...(isLate ? [] : ['two'])]);
  scene.kubelet.say(pod, 'three', { afterMs: 1_000 });
  await scene.kubelet.tell('MODIFIED', pod);
  await expect.poll(() => shown().length).toBe(5);
  expect(shown().slice(3).toSorted()).toEqual(['three', 'two']);
  expect(stream.holes).toBe(1);
});

test('the log of a run that has ended is read to its end, however often it breaks off, as long as lines come', async () => {
  const all = lines('one', 40);
  await restarted(all);
  let chunks = 0;
  scene.kubelet.faults.dropNow = () => ++chunks % 6 === 0;
  const { stream, shown } = follow();
  await expect.poll(shown).toEqual([...all, 'two']);
  expect(stream.holes).toBe(0);
});

test('in the back-off after runs that were not seen, the last one is read once, and those before it are lost', async () => {
  const pod = scene.kubelet.addPod('p');
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, 'one');
  const { stream, shown } = follow();
  await expect.poll(shown).toEqual(['one']);
  const asked = scene.kubelet.logCalls.length;
  await scene.kubelet.stop(pod);
  await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(asked);
  await expect.poll(() => scene.kubelet.openStreams).toBe(0);
  await scene.kubelet.start(pod, undefined, true);
  scene.kubelet.say(pod, 'two', { afterMs: 2_000 });
  await scene.kubelet.stop(pod, undefined, true);
  await scene.kubelet.start(pod, undefined, true);
  scene.kubelet.say(pod, 'three', { afterMs: 2_000 });
  await scene.kubelet.backOff(pod);
  await expect.poll(() => shown().includes('three')).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(shown()).toEqual(['one', 'GAP 1 earlier run is no longer kept', 'three']);
  expect(stream.holes).toBe(1);
});
