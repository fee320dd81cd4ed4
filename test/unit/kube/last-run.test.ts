// Which run of a container is read.

import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus } from '../../../src/lib/api/pod.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import { keptByKubelet, readLastRun, type Run } from '../../../src/lib/kube/last-run.ts';

const status = (state: ContainerState, restartCount: number): ContainerStatus => ({
  ...{ name: 'application', image: '', imageID: '', containerID: 'c://1', ready: false },
  state,
  restartCount,
});
const runs = status({ running: { startedAt: '2026-08-07T10:18:14Z' } }, 1);
const waits = status({ waiting: { reason: 'CrashLoopBackOff' } }, 1);
const isOver = status({ terminated: { exitCode: 1 } }, 0);
const isNew = status({ running: { startedAt: '2026-08-07T10:18:14Z' } }, 0);

/** What is read. @param keepsPrevious the kubelet still has the run before */
async function read(of: ContainerStatus | undefined, run?: Run, keepsPrevious = true): Promise<string | undefined> {
  const logs = (_ns: string, _pod: string, { previous }: { previous: boolean }) =>
    previous && !keepsPrevious
      ? Promise.reject(new KubeError('failed', 'previous terminated container not found', { status: 400, reason: 'BadRequest' }))
      : Promise.resolve([Buffer.from(previous ? 'previous\n' : 'present\n')]);
  const place = { ns: 's', pod: 'shop-0', container: 'application' };
  const { tail } = await readLastRun(
    { logs } as unknown as Cluster,
    place,
    of,
    new AbortController().signal,
    run === undefined ? {} : { run },
  );
  return tail[0];
}

test.each([
  ['that runs again', runs, 'previous', 'previous', 'present'],
  ['that waits for its next start', waits, 'previous', 'previous', 'present'],
  ['that has ended', isOver, 'present', 'present', 'present'],
  ['that has not ended: another pod of the name has', isNew, 'present', undefined, 'present'],
  ['that is gone', undefined, 'present', undefined, 'present'],
])('of a container %s', async (_, of, failed, ended, present) => {
  expect([await read(of), await read(of, 'ended'), await read(of, 'present')]).toEqual([failed, ended, present]);
});

test('of a container whose run before is lost, the run that goes on is no run that has ended', async () => {
  expect([await read(runs, 'failed', false), await read(runs, 'ended', false)]).toEqual(['present', undefined]);
  expect(await read(waits, 'ended', false)).toBe('present');
});

test('what a kubelet says of a container that it finds no more is not taken for lines of the program', async () => {
  const ended = (reason: string) =>
    keptByKubelet(status({ terminated: { exitCode: 137, reason, message: 'The container could not be located' } }, 1));
  expect((await ended('ContainerStatusUnknown')).tail).toEqual([]);
  expect((await ended('Error')).tail).toEqual(['The container could not be located']);
});

test.each([
  ['larger than 16 MiB', 17, 2],
  ['of exactly 16 MiB', 16, 1],
])('of a log %s, the first and the last lines are kept', async (_, mebibytes, requests) => {
  const line = `${'x'.repeat(1023)}\n`;
  const text = Buffer.from(`first\n${line.repeat(mebibytes * 1024)}`.slice(0, mebibytes * 1024 ** 2 - 5) + '\nend\n');
  const asked: (number | undefined)[] = [];
  const logs = (_ns: string, _pod: string, { tailLines }: { tailLines?: number }) => {
    asked.push(tailLines);
    return Promise.resolve([tailLines === undefined ? text : Buffer.from('last but one\nend\n')]);
  };
  const place = { ns: 's', pod: 'shop-0', container: 'application' };
  const { head, omitted, tail } = await readLastRun({ logs } as unknown as Cluster, place, isOver, new AbortController().signal);
  expect([head[0], tail.at(-1), asked]).toEqual(['first', 'end', requests === 2 ? [undefined, 29] : [undefined]]);
  if (requests === 2) expect(tail).toEqual(['... and more lines, because the log is larger than 16 MiB ...', 'last but one', 'end']);
  else expect(head.length + omitted + tail.length).toBe(text.toString().split('\n').length - 1);
});
