// A reader that is slower than the log.

import { expect, test } from 'vitest';
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
