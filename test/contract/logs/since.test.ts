import { beforeEach, expect, test } from 'vitest';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { recentLogs } from '../../../src/lib/logs/recent.ts';
import { followLogs, type FollowOptions } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';
import type { ScriptedPod } from './scripted-kubelet.ts';

const scene = useLogScene();

let pod: ScriptedPod;

beforeEach(async () => {
  pod = scene.kubelet.addPod('a');
  await scene.kubelet.start(pod);
});

const scope = { ns: 'ns', selector: 'app=x' };
const shown = (entries: readonly LogEntry[]): unknown[] => entries.map(({ gap, text }) => gap ?? text);

/** The entries up to the line `last`. */
async function followed(options: Partial<FollowOptions>, last: string): Promise<unknown[]> {
  const entries: LogEntry[] = [];
  for await (const entry of followLogs(scene.cluster, { ...scope, signal: scene.stop.signal, pauseMs: 10, ...options })) {
    entries.push(entry);
    if (entry.text === last) break;
  }
  return shown(entries);
}

/** Lines that have left the file that is served, and one that has not. */
function rotateAway(): void {
  scene.kubelet.say(pod, 'before');
  scene.kubelet.say(pod, 'lost', { afterMs: 9_000 });
  scene.kubelet.rotate(pod);
  scene.kubelet.say(pod, 'kept', { afterMs: 1_000 });
}

const since = '2026-01-01T00:00:05.000000000Z';
const gap = { from: since, to: '2026-01-01T00:00:10.001000002Z', reason: 'log rotated' };

test('lines that were rotated away after the asked time are a gap, followed or not', async () => {
  rotateAway();
  expect(shown((await recentLogs(scene.cluster, { ...scope, since })).entries)).toEqual([gap, 'kept']);
  expect(await followed({ since }, 'kept')).toEqual([gap, 'kept']);
});

test('a file that begins before the asked time is whole from there on', async () => {
  rotateAway();
  scene.kubelet.say(pod, 'newest', { afterMs: 5_000 });
  const later = '2026-01-01T00:00:12.000000000Z';
  expect(shown((await recentLogs(scene.cluster, { ...scope, since: later })).entries)).toEqual(['newest']);
  expect(await followed({ since: later }, 'newest')).toEqual(['newest']);
});

test('whoever asks for the newest lines misses none that are older', async () => {
  rotateAway();
  expect(await followed({ since, isNewest: true }, 'kept')).toEqual(['kept']);
});

test('the first line of a run that had just begun follows nothing', async () => {
  scene.kubelet.say(pod, 'first', { afterMs: 1_500 });
  const soon = '2026-01-01T00:00:00.500000000Z';
  expect(shown((await recentLogs(scene.cluster, { ...scope, since: soon })).entries)).toEqual(['first']);
  expect(await followed({ since: soon }, 'first')).toEqual(['first']);
});
