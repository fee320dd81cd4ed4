import { expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { followLogs, type FollowOptions } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';
import type { ScriptedPod } from './scripted-kubelet.ts';

const scene = useLogScene();

/** Reads a stream in the background. */
function follow(options: Partial<FollowOptions> = {}): { texts: () => string[]; done: Promise<void> } {
  const entries: LogEntry[] = [];
  const done = (async () => {
    const scope = { ns: 'ns', selector: 'app=x', signal: scene.stop.signal, pauseMs: 30 };
    for await (const entry of followLogs(scene.cluster, { ...scope, ...options })) entries.push(entry);
  })();
  done.catch(() => undefined);
  return { texts: () => entries.map(({ gap, text }) => (gap === undefined ? text : `GAP ${text}`)), done };
}

/** A container that has said `RESULT=42` without a newline and ended, of which the status does not know yet. */
async function endedPod(restartPolicy: 'Always' | 'Never', log: ReturnType<typeof follow>): Promise<ScriptedPod> {
  const pod = scene.kubelet.addPod('p');
  pod.restartPolicy = restartPolicy;
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, 'one');
  scene.kubelet.say(pod, 'RESULT=42', { isRest: true });
  await expect.poll(() => log.texts()).toEqual(['one']);
  const asked = scene.kubelet.logCalls.length;
  await scene.kubelet.stop(pod, undefined, true);
  // It is asked again: the normal end alone does not say that the container has ended.
  await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(asked);
  await expect.poll(() => scene.kubelet.openStreams).toBe(0);
  return pod;
}

test.each(['Always', 'Never'] as const)('a last line without a newline is read when the container has ended (%s)', async (policy) => {
  const log = follow({ endWithPods: true });
  const pod = await endedPod(policy, log);
  pod.phase = 'Failed';
  await scene.kubelet.tell('MODIFIED', pod);
  await log.done;
  expect(log.texts()).toEqual(['one', 'RESULT=42']);
});

test('a last line without a newline is read from the previous log when the container runs again', async () => {
  const log = follow();
  const pod = await endedPod('Always', log);
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, 'again');
  await expect.poll(() => log.texts()).toEqual(['one', 'RESULT=42', 'again']);
});

test('a last line without a newline is a gap when its pod goes', async () => {
  const log = follow();
  await scene.kubelet.remove(await endedPod('Never', log));
  await expect.poll(() => log.texts()).toEqual(['one', 'GAP the instance is gone']);
});

test('what the kubelet says of a container that it has removed is no last line of it', async () => {
  const log = follow();
  const pod = scene.kubelet.addPod('p');
  await scene.kubelet.start(pod);
  scene.kubelet.say(pod, 'one');
  await expect.poll(() => log.texts()).toEqual(['one']);
  scene.server.on('GET /api/v1/namespaces/ns/pods/p/log', (call) => call.text('unable to retrieve container logs for containerd://1'));
  const asked = scene.kubelet.logCalls.length;
  await scene.kubelet.stop(pod, undefined, true);
  await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(asked);
  await scene.kubelet.remove(pod);
  await scene.kubelet.start(scene.kubelet.addPod('q'));
  await expect.poll(() => scene.kubelet.logCalls.filter(({ path }) => path.includes('/q/')).length).toBeGreaterThan(0);
  expect(log.texts()).toEqual(['one']);
});
