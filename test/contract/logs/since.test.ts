import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from '../../../src/lib/kube/client.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { recentLogs } from '../../../src/lib/logs/recent.ts';
import { followLogs, type FollowOptions } from '../../../src/lib/logs/stream.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';
import { ScriptedKubelet, type ScriptedPod } from './scripted-kubelet.ts';

let server: ScriptedApiServer;
let kubelet: ScriptedKubelet;
let cluster: Cluster;
let pod: ScriptedPod;
let stop: AbortController;

beforeEach(async () => {
  server = await ScriptedApiServer.start();
  kubelet = new ScriptedKubelet(server);
  cluster = await connect({ kubeconfig: server.kubeconfig(), env: {} });
  stop = new AbortController();
  pod = kubelet.addPod('a');
  await kubelet.start(pod);
});

afterEach(async () => {
  stop.abort();
  cluster.close();
  await server.stop();
  expect(server.failures).toEqual([]);
});

const scope = { ns: 'ns', selector: 'app=x' };
const shown = (entries: readonly LogEntry[]): unknown[] => entries.map(({ gap, text }) => gap ?? text);

/** The entries up to the line `last`. */
async function followed(options: Partial<FollowOptions>, last: string): Promise<unknown[]> {
  const entries: LogEntry[] = [];
  for await (const entry of followLogs(cluster, { ...scope, signal: stop.signal, pauseMs: 10, ...options })) {
    entries.push(entry);
    if (entry.text === last) break;
  }
  return shown(entries);
}

/** Lines that have left the file that is served, and one that has not. */
function rotateAway(): void {
  kubelet.say(pod, 'before');
  kubelet.say(pod, 'lost', { afterMs: 9_000 });
  kubelet.rotate(pod);
  kubelet.say(pod, 'kept', { afterMs: 1_000 });
}

const since = '2026-01-01T00:00:05.000000000Z';
const gap = { from: since, to: '2026-01-01T00:00:10.001000002Z', reason: 'log rotated' };

test('lines that were rotated away after the asked time are a gap, followed or not', async () => {
  rotateAway();
  expect(shown((await recentLogs(cluster, { ...scope, since })).entries)).toEqual([gap, 'kept']);
  expect(await followed({ since }, 'kept')).toEqual([gap, 'kept']);
});

test('a file that begins before the asked time is whole from there on', async () => {
  rotateAway();
  kubelet.say(pod, 'newest', { afterMs: 5_000 });
  const later = '2026-01-01T00:00:12.000000000Z';
  expect(shown((await recentLogs(cluster, { ...scope, since: later })).entries)).toEqual(['newest']);
  expect(await followed({ since: later }, 'newest')).toEqual(['newest']);
});

test('whoever asks for the newest lines misses none that are older', async () => {
  rotateAway();
  expect(await followed({ since, isNewest: true }, 'kept')).toEqual(['kept']);
});

test('the first line of a run that had just begun follows nothing', async () => {
  kubelet.say(pod, 'first', { afterMs: 1_500 });
  const soon = '2026-01-01T00:00:00.500000000Z';
  expect(shown((await recentLogs(cluster, { ...scope, since: soon })).entries)).toEqual(['first']);
  expect(await followed({ since: soon }, 'first')).toEqual(['first']);
});
