// What is kept of a task that has ended, so that its cause and its last lines can be read when its pod is gone.

import { beforeEach, describe, expect, test } from 'vitest';
import { jobType, nodeType, type Node } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import type { TaskFailure, TaskOutput } from '../../../src/lib/api/types.generated.ts';
import { apiError } from '../../support/memory-cluster.ts';
import { expectNoMoreWork, settled } from './settled.ts';
import {
  areTrue,
  cluster,
  condition,
  ended,
  endJob,
  givePod,
  job,
  ns,
  releasedTask,
  startController,
  stop,
  task,
  until,
  useTaskScene,
} from './task-scene.ts';

useTaskScene();

const failure = (): TaskFailure | undefined => task('task-1')?.status?.failure;
const missing = '/bin/sh: 1: rake: not found';
let reads: string[];

beforeEach(async () => {
  reads = [];
  await releasedTask('task-1');
});

/** The log of every pod from now on. */
function serveLog(answer: () => Promise<never> | undefined): void {
  const read = cluster.logs.bind(cluster);
  cluster.logs = async (space, pod) => {
    reads.push(`${space}/${pod}`);
    return (await answer()) ?? read(space, pod);
  };
}

/** The task ends as its Job and its kubelet tell it. */
async function fails(exitCode: number, more: { nodeName?: string; message?: string } = {}): Promise<void> {
  const { message, ...where } = more;
  const { terminated } = ended(exitCode, 'Error');
  await givePod('task-1', { terminated: { ...terminated, ...(message === undefined ? {} : { message }) } }, 'Failed', where);
  await endJob('task-1', 'Failed', 'BackoffLimitExceeded');
  await until(() => expect(condition('task-1', 'Failed')?.status).toBe('True'));
}

/** The pod and its Job are gone, as six hours later, and the next controller looks at everything. */
async function later(): Promise<void> {
  await cluster.delete(podType, ns, 'task-1-pod');
  await cluster.delete(jobType, ns, 'task-1');
  await stop();
  startController('two');
  await settled(cluster);
}

describe('a task that failed', () => {
  test('keeps its cause and its last lines with its end, before its Job may go, and they stay', async () => {
    const lines = [...Array.from({ length: 50 }, (_, line) => `line ${String(line)}`), '', missing];
    cluster.logTexts.set(`${ns}/task-1-pod`, `${lines.join('\n')}\n`);
    await fails(127);
    const kept = {
      cause: 'command-not-found',
      pod: 'task-1-pod',
      container: 'workload',
      exitCode: 127,
      logHead: lines.slice(0, 10),
      logOmitted: 12,
      logTail: lines.slice(-30),
    };
    expect(failure()).toEqual(kept);
    await until(() => expect(job('task-1')?.spec?.ttlSecondsAfterFinished).toBe(21_600));
    const writes = cluster.writes.map(({ kind, body }) => [kind, JSON.stringify(body)] as const);
    const at = (wanted: string, ...texts: string[]) =>
      writes.findIndex(([kind, body]) => kind === wanted && texts.every((text) => body.includes(text)));
    for (const kind of ['TaskWorkload', 'CFTask']) expect(at(kind, '"type":"Failed","status":"True"')).toBe(at(kind, missing));
    expect(at('TaskWorkload', missing)).toBeGreaterThan(-1);
    expect(at('Job', 'ttlSecondsAfterFinished')).toBeGreaterThan(at('TaskWorkload', missing));
    await later();
    expect(failure()).toEqual(kept);
  });

  test.each([
    ['long lines', 'x'.repeat(2_000)],
    ['control characters, which JSON makes six times longer', '\u001b'.repeat(2_000)],
  ])('keeps at most 8 KiB of %s, with the first and the last line', async (_, long) => {
    cluster.logTexts.set(`${ns}/task-1-pod`, ['first', ...Array.from({ length: 60 }, () => long), missing].join('\n'));
    await fails(127);
    const { logHead, logOmitted = 0, logTail } = failure() ?? {};
    expect(Buffer.byteLength(JSON.stringify({ logHead, logOmitted, logTail }))).toBeLessThanOrEqual(8 * 1024);
    expect([logHead?.[0], logTail?.at(-1), failure()?.cause]).toEqual(['first', missing, 'command-not-found']);
    expect((logHead?.length ?? 0) + logOmitted + (logTail?.length ?? 0)).toBe(62);
  });

  test.each([
    [
      'the log is refused',
      () => Promise.reject(apiError(500, 'InternalError', 'dial tcp 10.0.0.1:10250')),
      'The log of the pod could not be read.',
    ],
    ['the pod is gone', () => Promise.reject(apiError(404, 'NotFound', 'pods "x"')), 'The pod was gone before its last lines were read.'],
  ])('fails when %s, says so, and is read once', async (_, answer, logLost) => {
    serveLog(answer);
    await fails(127);
    expect(failure()).toEqual({ cause: 'exit-code', pod: 'task-1-pod', container: 'workload', exitCode: 127, logLost });
    expect(condition('task-1', 'Failed')?.message).toBe('Failed with exit code: 127');
    await expectNoMoreWork(cluster, reads);
    expect(reads).toEqual([`${ns}/task-1-pod`]);
  });

  test('keeps the last lines of its kubelet when the log cannot be read', async () => {
    serveLog(() => Promise.reject(new Error('connection reset')));
    await fails(127, { message: `at work\n${missing}\n` });
    expect(failure()).toMatchObject({ cause: 'command-not-found', logTail: ['at work', missing] });
    expect(failure()).not.toHaveProperty('logLost');
  });

  test('whose pod is gone before its end was seen says so, and is looked at no more', async () => {
    serveLog(() => undefined);
    await givePod('task-1', { running: {} });
    await cluster.delete(podType, ns, 'task-1-pod');
    await endJob('task-1', 'Failed', 'BackoffLimitExceeded');
    await until(() => expect(condition('task-1', 'Failed')?.reason).toBe('BackoffLimitExceeded'));
    expect(failure()).toEqual({ cause: 'unknown', logLost: 'The pod was gone before its last lines were read.' });
    await expectNoMoreWork(cluster, reads);
    expect(reads).toEqual([]);
  });

  test('on a node that does not answer is not read, and says so', async () => {
    serveLog(() => undefined);
    const since = new Date(Date.now() - 50_000).toISOString();
    const status = { conditions: [{ type: 'Ready', status: 'Unknown', lastTransitionTime: since }] };
    await cluster.create(nodeType, { metadata: { name: 'n-1' }, status } as Node);
    await fails(7, { nodeName: 'n-1' });
    expect(failure()).toMatchObject({ cause: 'exit-code', exitCode: 7, logLost: "Node 'n-1' does not answer." });
    expect(reads).toEqual([]);
  });

  test('whose container never ran has its cause, and no lines that could be lost', async () => {
    serveLog(() => undefined);
    await givePod('task-1', { waiting: { reason: 'ErrImagePull', message: 'shop:1: not found' } }, 'Pending');
    await until(() => expect(condition('task-1', 'Failed')?.reason).toBe('ImagePull'));
    expect(failure()).toEqual({ cause: 'image-not-found', pod: 'task-1-pod', container: 'workload' });
    expect(reads).toEqual([]);
  });
});

describe('a task that succeeded', () => {
  const output = (): TaskOutput | undefined => task('task-1')?.status?.output;
  const place = { pod: 'task-1-pod', container: 'workload' };
  const podGone = 'The pod was gone before its last lines were read.';

  async function succeeds(): Promise<void> {
    await endJob('task-1', 'Complete');
    await until(() => expect(condition('task-1', 'Succeeded')?.status).toBe('True'));
  }

  test('keeps its last lines with its end, before its Job may go, and they stay', async () => {
    cluster.logTexts.set(`${ns}/task-1-pod`, 'migrating\n42 rows\n');
    await givePod('task-1', ended(0, 'Completed'), 'Succeeded');
    await succeeds();
    const kept = { ...place, logTail: ['migrating', '42 rows'] };
    expect([output(), failure()]).toEqual([kept, undefined]);
    await until(() => expect(job('task-1')?.spec?.ttlSecondsAfterFinished).toBe(21_600));
    const writes = cluster.writes.map(({ kind, body }) => [kind, JSON.stringify(body)] as const);
    const at = (wanted: string, text: string) => writes.findIndex(([kind, body]) => kind === wanted && body.includes(text));
    for (const kind of ['TaskWorkload', 'CFTask']) expect(at(kind, '"type":"Succeeded","status":"True"')).toBe(at(kind, '42 rows'));
    expect(at('TaskWorkload', '42 rows')).toBeGreaterThan(-1);
    expect(at('Job', 'ttlSecondsAfterFinished')).toBeGreaterThan(at('TaskWorkload', '42 rows'));
    await later();
    expect(output()).toEqual(kept);
  });

  test.each([
    [
      'is refused',
      () => Promise.reject(apiError(500, 'InternalError', 'dial tcp')),
      { ...place, logLost: 'The log of the pod could not be read.' },
    ],
    ['is empty', () => undefined, place],
  ])('has succeeded when its log %s, and is read once', async (_, answer, kept) => {
    serveLog(answer);
    await givePod('task-1', ended(0, 'Completed'), 'Succeeded');
    await succeeds();
    await expectNoMoreWork(cluster, reads);
    expect([output(), reads]).toEqual([kept, [`${ns}/task-1-pod`]]);
  });

  test('keeps no lines of the pod of an earlier run of its name', async () => {
    const earlier = {
      name: 'a-pod',
      namespace: ns,
      labels: { [labels.taskGuid]: 'task-1', [labels.appGuid]: 'app' },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'task-1', uid: 'earlier' }],
    };
    const status = {
      name: 'workload',
      image: '',
      imageID: '',
      ready: false,
      restartCount: 0,
      containerID: 'c://a',
      state: ended(0, 'Completed'),
    };
    await cluster.create<Pod>(podType, { metadata: earlier, spec: { containers: [] }, status: { containerStatuses: [status] } });
    await givePod('task-1', ended(0, 'Completed'), 'Succeeded');
    cluster.logTexts.set(`${ns}/a-pod`, 'earlier\n');
    cluster.logTexts.set(`${ns}/task-1-pod`, '42 rows\n');
    await succeeds();
    expect(output()).toEqual({ ...place, logTail: ['42 rows'] });
  });

  test('of which the watch of pods has not told the end yet is asked for', async () => {
    cluster.logTexts.set(`${ns}/task-1-pod`, '42 rows\n');
    await givePod('task-1', { waiting: { reason: 'ContainerCreating' } }, 'Pending');
    const list = cluster.list.bind(cluster);
    const pod = await cluster.get(podType, ns, 'task-1-pod');
    const end = { containerID: 'containerd://task-1', state: ended(0, 'Completed') };
    const containerStatuses = pod?.status?.containerStatuses?.map((status) => ({ ...status, ...end }));
    cluster.list = (async (type: typeof podType, how: object) =>
      type.plural === 'pods' ? { items: [{ ...pod, status: { containerStatuses } }] } : list(type, how)) as typeof cluster.list;
    await succeeds();
    expect(output()).toEqual({ ...place, logTail: ['42 rows'] });
  });

  test('whose run is deleted before its lines were copied says so', async () => {
    await stop();
    const conditions = areTrue('Started', 'Succeeded');
    await cluster.mergePatch(
      kinds.taskWorkload,
      ns,
      'task-1',
      { status: { conditions, output: { ...place, logTail: ['42 rows'] } } },
      { subresource: 'status' },
    );
    const get = cluster.get.bind(cluster);
    cluster.get = (async (type: typeof kinds.taskWorkload, ...at: [string, string]) =>
      type.plural === 'taskworkloads' ? undefined : get(type, ...at)) as typeof cluster.get;
    startController('two');
    await until(() => expect(condition('task-1', 'Succeeded')?.status).toBe('True'));
    expect(output()).toEqual({ ...place, logLost: 'What ran the task was deleted before its last lines were copied.' });
  });

  test('whose pod is gone before its end was seen says so', async () => {
    serveLog(() => undefined);
    await givePod('task-1', { running: {} });
    await cluster.delete(podType, ns, 'task-1-pod');
    await succeeds();
    expect([output(), reads]).toEqual([{ logLost: podGone }, []]);
  });

  test('keeps them when it is canceled after its end', async () => {
    cluster.logTexts.set(`${ns}/task-1-pod`, '42 rows\n');
    await stop();
    await givePod('task-1', ended(0, 'Completed'), 'Succeeded');
    await endJob('task-1', 'Complete');
    const conditions = areTrue('Started', 'Succeeded');
    const kept = { ...place, logTail: ['42 rows'] };
    await cluster.mergePatch(kinds.taskWorkload, ns, 'task-1', { status: { conditions, output: kept } }, { subresource: 'status' });
    await cluster.mergePatch(kinds.task, ns, 'task-1', { spec: { canceled: true } });
    startController('two');
    await until(() => expect(condition('task-1', 'Succeeded')?.status).toBe('True'));
    expect(output()).toEqual(kept);
  });
});

test('a task whose run ended under an earlier kf, which kept nothing, fails as it did', async () => {
  await stop();
  const say = (type: string) => ({
    type,
    status: 'True' as const,
    reason: 'Error',
    message: 'Failed with exit code: 7',
    lastTransitionTime: '',
  });
  const status = { conditions: [say('Started'), say('Failed')] };
  await cluster.mergePatch(kinds.taskWorkload, ns, 'task-1', { status }, { subresource: 'status' });
  startController('two');
  await until(() => expect(condition('task-1', 'Failed')?.message).toBe('Failed with exit code: 7'));
  expect(failure()).toBeUndefined();
});
