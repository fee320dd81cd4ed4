import { describe, expect, test } from 'vitest';
import type { LogEntry, LogGap } from '../../../src/lib/logs/entry.ts';
import { followLogs } from '../../../src/lib/logs/stream.ts';
import type { FollowOptions, LogStream } from '../../../src/lib/logs/stream.ts';
import { useLogScene } from './log-scene.ts';
import type { ScriptedPod } from './scripted-kubelet.ts';

const scene = useLogScene();

/** Reads a stream in the background; `texts` are the app's lines, `notes` kf's own. */
function follow(options: Partial<FollowOptions> = {}): {
  stream: LogStream;
  entries: LogEntry[];
  texts: () => string[];
  notes: () => string[];
  gaps: () => (LogGap | undefined)[];
  done: Promise<void>;
} {
  const stream = followLogs(scene.cluster, { ns: 'ns', selector: 'app=x', signal: scene.stop.signal, pauseMs: 10, ...options });
  const entries: LogEntry[] = [];
  const done = (async () => {
    for await (const entry of stream) entries.push(entry);
  })();
  done.catch(() => undefined);
  const ofKf = (wanted: boolean) => (): string[] =>
    entries.filter(({ source, gap }) => gap === undefined && (source.type === 'KF') === wanted).map(({ text }) => text);
  const gaps = (): (LogGap | undefined)[] => entries.flatMap(({ gap }) => gap ?? []);
  return { stream, entries, texts: ofKf(false), notes: ofKf(true), gaps, done };
}

/** Ends the followed run of the container, and waits until the follower has asked once more and received nothing more. */
async function endLife(pod: ScriptedPod): Promise<void> {
  const asked = scene.kubelet.logCalls.length;
  await scene.kubelet.stop(pod);
  await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(asked);
  await expect.poll(() => scene.kubelet.openStreams).toBe(0);
}

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_none, index) => `line ${String(from + index)}`);

describe('following one container', () => {
  test('every line comes once and in order, however often the connection breaks in the middle of a line', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    let chunk = 0;
    scene.kubelet.faults.dropNow = () => ++chunk % 41 === 0;
    const log = follow();
    for (let index = 1; index <= 400; index++) {
      // Bursts within a millisecond, and jumps over seconds.
      scene.kubelet.say(pod, `line ${String(index)}`, { afterMs: index % 10 === 0 ? 1_700 : 0 });
      if (index % 15 === 0) await new Promise((resolve) => setTimeout(resolve, 15));
    }
    await expect.poll(() => log.texts().length).toBe(400);
    expect(log.texts()).toEqual(numbered(1, 400));
    expect(log.stream.holes).toBe(0);
    expect(scene.kubelet.logCalls.length).toBeGreaterThan(5);
  });

  test('an answer that ends in order while the container continues does not end the log', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    let opened = 0;
    scene.kubelet.faults.endEarly = () => ++opened < 4;
    const log = follow();
    for (let index = 1; index <= 20; index++) scene.kubelet.say(pod, `line ${String(index)}`, { afterMs: 300 });
    await expect.poll(() => log.texts().length).toBe(20);
    expect(log.texts()).toEqual(numbered(1, 20));
    expect(log.stream.holes).toBe(0);
  });

  test('lines have their source and a time in UTC', async () => {
    const pod = scene.kubelet.addPod('p', {
      labels: {
        'korifi.cloudfoundry.org/process-type': 'worker',
        'apps.kubernetes.io/pod-index': '3',
        'kf.cloudfoundry.org/generation': 'abc',
      },
    });
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'hello', { afterMs: 1_500 });
    const log = follow();
    await expect
      .poll(() => log.entries)
      .toEqual([
        {
          time: '2026-01-01T00:00:01.500000000Z',
          source: { type: 'APP', process: 'worker', index: 3, pod: 'p', container: 'application', generation: 'abc' },
          stream: 'OUT',
          text: 'hello',
        },
      ]);
  });

  test('a file that was rotated away unread is reported as one gap', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'line 1');
    const log = follow();
    await expect.poll(() => log.texts().length).toBe(1);
    scene.kubelet.faults.dropNow = () => true;
    scene.kubelet.say(pod, 'lost', { afterMs: 2_000 });
    await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(2);
    scene.kubelet.rotate(pod);
    delete scene.kubelet.faults.dropNow;
    scene.kubelet.say(pod, 'line 2', { afterMs: 2_000 });
    await expect.poll(() => log.texts()).toEqual(['line 1', 'line 2']);
    expect(log.stream.holes).toBe(1);
    expect(log.gaps()).toEqual([{ from: '2026-01-01T00:00:00.001000000Z', to: '2026-01-01T00:00:04.001000002Z', reason: 'log rotated' }]);
    expect(log.entries.map(({ gap, text }) => gap?.reason ?? text)).toEqual(['line 1', 'log rotated', 'line 2']);
  });

  test('a file that an open connection jumped over, or began again, is one gap and no repeated line', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    const log = follow();
    scene.kubelet.say(pod, 'line 1');
    await expect.poll(() => log.texts()).toEqual(['line 1']);
    // The kubelet has not looked at the file for a while, and sends only the newest one, twice.
    const { lines } = pod.container().life;
    const line = (second: number) => ({ ms: 0, time: `2026-01-01T00:00:0${String(second)}.000000000Z`, text: `line ${String(second)}` });
    lines.splice(0, lines.length, { ...line(3), text: 'where line 1 was' }, line(3), line(4), line(3), line(4), line(5));
    pod.container().life.firstServed = 0;
    pod.container().wake();
    await expect.poll(() => log.texts()).toEqual(['line 1', 'line 3', 'line 4', 'line 5']);
    await expect
      .poll(() => log.gaps())
      .toEqual([{ from: '2026-01-01T00:00:00.001000000Z', to: '2026-01-01T00:00:03.000000000Z', reason: 'log rotated' }]);
    expect(log.stream.holes).toBe(1);
  });

  test('kf waits for a container that has not started', async () => {
    const pod = scene.kubelet.addPod('p');
    const log = follow();
    await expect.poll(() => scene.server.callsOf('GET .*/pods').length).toBe(2);
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'first');
    await expect.poll(() => log.texts()).toEqual(['first']);
    expect(log.notes()).toEqual([]);
  });

  test('a container that was silent is read from after its last line, whatever its clock says, also if the first connection breaks before a line came', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'old 1');
    scene.kubelet.say(pod, 'old 2');
    const log = follow({ since: '2026-01-01T00:01:00.000000000Z', isNewest: true });
    await expect.poll(() => scene.kubelet.openStreams).toBe(1);
    scene.server.dropConnections();
    scene.kubelet.say(pod, 'new');
    await expect.poll(() => log.texts()).toEqual(['new']);
  });

  test('a missing right to read logs ends the stream with that right', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.server.on('GET .*/log', (call) =>
      call.fail(403, 'Forbidden', 'pods "p" is forbidden: User "j" cannot get resource "pods/log" in API group "" in the namespace "ns"'),
    );
    await expect(follow().done).rejects.toMatchObject({ code: 'forbidden', missingRight: { resource: 'pods/log' } });
  });
});

describe('restarts of a container', () => {
  test('the unread log of a run that ended is read from the previous log', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'one');
    const log = follow();
    await expect.poll(() => log.texts()).toEqual(['one']);
    scene.kubelet.faults.dropNow = () => true;
    scene.kubelet.say(pod, 'two', { afterMs: 500 });
    scene.kubelet.say(pod, 'last words', { afterMs: 10 });
    await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(2);
    await scene.kubelet.stop(pod, undefined, true);
    await scene.kubelet.start(pod);
    delete scene.kubelet.faults.dropNow;
    scene.kubelet.say(pod, 'second life', { afterMs: 900 });
    await expect.poll(() => log.texts()).toEqual(['one', 'two', 'last words', 'second life']);
    expect(log.stream.holes).toBe(0);
  });

  test('a run whose log was read to its end is not read again', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    const log = follow();
    for (let life = 1; life <= 3; life++) {
      await expect.poll(() => scene.kubelet.openStreams).toBe(1);
      scene.kubelet.say(pod, `life ${String(life)}`, { afterMs: 100 });
      await expect.poll(() => log.texts().length).toBe(life);
      await endLife(pod);
      if (life < 3) await scene.kubelet.start(pod);
    }
    expect(log.texts()).toEqual(['life 1', 'life 2', 'life 3']);
    expect(scene.kubelet.logCalls.filter(({ query }) => query.has('previous'))).toEqual([]);
  });

  test('a new run that is served before the status shows it waits until the old one is read', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'a1');
    const log = follow({ pauseMs: 30 });
    await expect.poll(() => log.texts()).toEqual(['a1']);
    scene.kubelet.faults.dropNow = () => true;
    scene.kubelet.say(pod, 'a2', { afterMs: 400 });
    await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(1);
    await scene.kubelet.stop(pod, undefined, true);
    await scene.kubelet.start(pod, undefined, true);
    delete scene.kubelet.faults.dropNow;
    scene.kubelet.say(pod, 'b1', { afterMs: 1_500 });
    const before = scene.kubelet.logCalls.length;
    await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(before);
    await scene.kubelet.tell('MODIFIED', pod);
    scene.kubelet.say(pod, 'b2', { afterMs: 100 });
    await expect.poll(() => log.texts()).toEqual(['a1', 'a2', 'b1', 'b2']);
    expect(log.stream.holes).toBe(0);
  });

  test('a connection that unexpectedly shows a new run is closed, the old run is read, nothing is repeated', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.faults.dropNow = () => true;
    scene.kubelet.say(pod, 'a1');
    const log = follow();
    await expect.poll(() => scene.kubelet.logCalls.length).toBeGreaterThan(1);
    await scene.kubelet.stop(pod, undefined, true);
    await scene.kubelet.start(pod, undefined, true);
    delete scene.kubelet.faults.dropNow;
    scene.kubelet.say(pod, 'b1', { afterMs: 1_500 });
    await expect.poll(() => log.texts()).toEqual(['b1']);
    await scene.kubelet.tell('MODIFIED', pod);
    await expect.poll(() => log.texts()).toEqual(['b1', 'a1']);
    scene.kubelet.say(pod, 'b2', { afterMs: 100 });
    await expect.poll(() => log.texts()).toEqual(['b1', 'a1', 'b2']);
    expect(log.stream.holes).toBe(0);
  });

  test('a run whose first file is full before it is read begins with a gap', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'one');
    const log = follow();
    await expect.poll(() => log.texts()).toEqual(['one']);
    await endLife(pod);
    await scene.kubelet.start(pod, undefined, true);
    scene.kubelet.say(pod, 'lost');
    scene.kubelet.rotate(pod);
    scene.kubelet.say(pod, 'two', { afterMs: 3_000 });
    await scene.kubelet.tell('MODIFIED', pod);
    await expect.poll(() => log.texts()).toEqual(['one', 'two']);
    expect(log.gaps()).toEqual([{ to: '2026-01-01T00:00:03.002000001Z', reason: 'log rotated' }]);
    expect(log.entries.map(({ gap, text }) => gap?.reason ?? text)).toEqual(['one', 'log rotated', 'two']);
  });

  test('runs that began and ended unseen are counted, and the last of them is read', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'life 1');
    const log = follow();
    await expect.poll(() => log.texts()).toEqual(['life 1']);
    await endLife(pod);
    for (const life of [2, 3]) {
      await scene.kubelet.start(pod, undefined, true);
      scene.kubelet.say(pod, `life ${String(life)}`, { afterMs: 2_000 });
      await scene.kubelet.stop(pod, undefined, true);
    }
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'life 4', { afterMs: 2_000 });
    await expect.poll(() => log.texts()).toEqual(['life 1', 'life 3', 'life 4']);
    expect(log.stream.holes).toBe(1);
    expect(log.gaps()).toEqual([{ from: '2026-01-01T00:00:00.001000000Z', reason: '1 earlier run is no longer kept' }]);
  });

  test('a container that crashed before it was seen is read from its first line', async () => {
    const log = follow();
    await expect.poll(() => scene.server.callsOf('GET .*/pods').length).toBe(2);
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod, undefined, true);
    scene.kubelet.say(pod, 'cannot find module');
    await scene.kubelet.stop(pod, undefined, true);
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'again', { afterMs: 1_000 });
    await expect.poll(() => log.texts()).toEqual(['cannot find module', 'again']);
  });
});

describe('following many containers', () => {
  test('pods that are added later are read from their first line, and others are left when they are gone', async () => {
    const first = scene.kubelet.addPod('a');
    await scene.kubelet.start(first);
    scene.kubelet.say(first, 'old');
    const log = follow({ since: '2026-01-01T00:01:00.000000000Z', isNewest: true });
    await expect.poll(() => scene.kubelet.openStreams).toBe(1);
    const second = scene.kubelet.addPod('b');
    await scene.kubelet.start(second);
    scene.kubelet.say(second, 'from b');
    await expect.poll(() => log.texts()).toEqual(['from b']);
    scene.kubelet.say(first, 'bye');
    await expect.poll(() => log.texts()).toContain('bye');
    await scene.kubelet.remove(first);
    await expect.poll(() => scene.kubelet.openStreams).toBe(1);
    expect(log.stream.holes).toBe(0);
  });

  test('a pod that comes back under its name is another pod: nothing is repeated', async () => {
    const before = scene.kubelet.addPod('x-0', { uid: 'one' });
    await scene.kubelet.start(before);
    scene.kubelet.say(before, 'before');
    const log = follow();
    await expect.poll(() => log.texts()).toEqual(['before']);
    before.isDeleting = true;
    await scene.kubelet.tell('MODIFIED', before);
    await scene.kubelet.remove(before);
    const after = scene.kubelet.addPod('x-0', { uid: 'two' });
    await scene.kubelet.start(after);
    scene.kubelet.say(after, 'after', { afterMs: 50 });
    await expect.poll(() => log.texts()).toEqual(['before', 'after']);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(log.texts()).toEqual(['before', 'after']);
  });

  test('a build ends by itself once its pod has ended and is read, also if it fails at once', async () => {
    const log = follow({ endWithPods: true });
    await expect.poll(() => scene.server.callsOf('GET .*/pods').length).toBe(2);
    const pod = scene.kubelet.addPod('build', {
      containers: ['source', 'build'],
      labels: { 'korifi.cloudfoundry.org/build-workload-name': 'b' },
    });
    for (const container of ['source', 'build']) {
      await scene.kubelet.start(pod, container, true);
      scene.kubelet.say(pod, `${container} failed`, { container });
      await scene.kubelet.stop(pod, container, true);
    }
    pod.phase = 'Failed';
    await scene.kubelet.tell('MODIFIED', pod);
    await log.done;
    expect(log.texts().toSorted()).toEqual(['build failed', 'source failed']);
    expect(log.entries[0]?.source).toMatchObject({ type: 'STG' });
  });

  test('finish waits for the last lines and then ends', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    const log = follow();
    await expect.poll(() => scene.kubelet.openStreams).toBe(1);
    setTimeout(() => scene.kubelet.say(pod, 'late'), 50);
    await log.stream.finish(2_000);
    await log.done;
    expect(log.texts()).toEqual(['late']);
  });

  test('finish right after the beginning still returns the lines of a build that failed at once', async () => {
    const labels = { 'korifi.cloudfoundry.org/build-workload-name': 'b' };
    const pod = scene.kubelet.addPod('build', { containers: ['build'], labels });
    await scene.kubelet.start(pod, 'build', true);
    scene.kubelet.say(pod, 'no buildpack matches');
    await scene.kubelet.stop(pod, 'build', true);
    pod.phase = 'Failed';
    const log = follow();
    // Longer than a test may take: it ends because no more lines can come.
    await log.stream.finish(600_000);
    await log.done;
    expect(log.texts()).toEqual(['no buildpack matches']);
  });

  test('all of fifty streams are closed after the signal', async () => {
    for (let index = 0; index < 50; index++) await scene.kubelet.start(scene.kubelet.addPod(`p${String(index)}`), undefined, true);
    const log = follow();
    await expect.poll(() => scene.kubelet.openStreams).toBe(50);
    scene.stop.abort();
    await log.done;
    await expect.poll(() => scene.kubelet.openStreams).toBe(0);
  });

  test('a slow reader slows the log down and loses nothing', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    for (let index = 1; index <= 3_000; index++) scene.kubelet.say(pod, `line ${String(index)}`, { afterMs: 0 });
    const stream = followLogs(scene.cluster, { ns: 'ns', selector: 'app=x', signal: scene.stop.signal });
    const texts: string[] = [];
    for await (const entry of stream) {
      texts.push(entry.text);
      if (texts.length % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
      if (texts.length === 3_000) break;
    }
    expect(texts).toEqual(numbered(1, 3_000));
  });

  test('a restart of the API server interrupts, but loses nothing', async () => {
    const pod = scene.kubelet.addPod('p');
    await scene.kubelet.start(pod);
    scene.kubelet.say(pod, 'line 1');
    const log = follow();
    await expect.poll(() => log.texts().length).toBe(1);
    await scene.server.halt();
    scene.kubelet.say(pod, 'line 2', { afterMs: 300 });
    setTimeout(() => void scene.server.listen(), 300);
    await expect.poll(() => log.texts()).toEqual(['line 1', 'line 2']);
    expect(log.stream.holes).toBe(0);
  });
});
