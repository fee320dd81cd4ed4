// What is kept of a build that failed, so that its cause can be read when its pod is gone.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { jobType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { BuildFailure } from '../../../src/lib/api/types.generated.ts';
import { apiError, type MemoryCluster } from '../../support/memory-cluster.ts';
import { startScene, type BuildScene } from './build-scene.ts';
import { ended, makeSpace, runPod, startBuild } from './build-run.ts';
import { expectNoMoreWork, settled } from './settled.ts';

let scene: BuildScene;
let cluster: MemoryCluster;
/** The containers whose logs were read. */
let reads: string[];
/** What each container printed; undefined: its log cannot be read. */
let printed: Record<string, string | undefined>;
/** What the API server says of a log that cannot be read. */
let refusal: Error;

beforeEach(async () => {
  scene = await startScene();
  cluster = scene.cluster;
  [reads, printed, refusal] = [[], {}, apiError(500, 'InternalError', 'dial tcp 10.0.0.1:10250')];
  const read = cluster.logs.bind(cluster);
  cluster.logs = async (ns: string, pod: string, options?: { container?: string }) => {
    const container = options?.container ?? '';
    reads.push(container);
    const text = printed[container];
    if (text === undefined) throw refusal;
    cluster.logTexts.set(`${ns}/${pod}`, text);
    return read(ns, pod);
  };
  await makeSpace(cluster);
  await startBuild(cluster);
});
afterEach(() => scene.stop());

const status = () => cluster.peek(kinds.build, 's-1', 'b-1')?.status;
const failure = (): BuildFailure | undefined => status()?.failure;
const running = { running: {} };
const failed = (): Promise<void> => scene.until(() => expect(status()?.state).toBe('FAILED'));

/** As lifecycle 0.20 prints it when no group passes. */
const detected = ['nodejs', 'go', 'python', 'staticfile', 'binary', 'ruby', 'php', 'java'].flatMap((id) => [
  `======== Output: kf/${id}@1.0.0 ========`,
  `kf/${id}: looked for a file of ${id} in the app's folder; there is none`,
  '======== Results ========',
  `fail: kf/${id}@1.0.0`,
  'skip: kf/procfile@1.0.0',
]);
const noMatch = [...detected, 'ERROR: No buildpack groups passed detection.', 'ERROR: failed to detect: no buildpacks participating'];

/** The pod and its Job are gone, as six hours later, and the next controller looks at everything. */
async function later(): Promise<void> {
  await cluster.delete(podType, 's-1', 'b-1-x');
  await cluster.delete(jobType, 's-1', 'b-1');
  await scene.stop();
  scene = await startScene(cluster);
  await settled(cluster);
}

describe('a build that failed', () => {
  test('keeps with its end what every detector looked for, before its pod is ended, and it stays', async () => {
    printed = { build: `${noMatch.join('\n')}\n` };
    await runPod(scene, { source: ended(0), registry: running, build: ended(20, noMatch.slice(-12).join('\n')) });
    await failed();
    const kept = { lane: 'build', exitCode: 20, reason: 'NoBuildpackMatched', cause: 'no-buildpack', pod: 'b-1-x', logTail: noMatch };
    expect(failure()).toEqual(kept);
    expect(reads).toEqual(['build']);
    await scene.until(() => expect(cluster.peek(podType, 's-1', 'b-1-x')?.spec?.activeDeadlineSeconds).toBe(1));
    const writes = cluster.writes.map(({ kind, body }) => [kind, JSON.stringify(body)] as const);
    const at = (wanted: string, text: string) => writes.findIndex(([kind, body]) => kind === wanted && body.includes(text));
    for (const kind of ['BuildWorkload', 'CFBuild']) expect(at(kind, '"type":"Succeeded","status":"False"')).toBe(at(kind, 'looked for'));
    expect(at('BuildWorkload', 'looked for')).toBeGreaterThan(-1);
    expect(at('Pod', 'activeDeadlineSeconds')).toBeGreaterThan(at('BuildWorkload', 'looked for'));
    await later();
    expect(failure()).toEqual(kept);
  });

  test('keeps at most 8 KiB, with the first and the last line', async () => {
    printed = { build: ['first', ...Array.from({ length: 200 }, () => 'x\u001b[31m'.repeat(80)), 'last'].join('\n') };
    await runPod(scene, { source: ended(0), registry: running, build: ended(51) });
    await failed();
    const { logHead, logOmitted = 0, logTail } = failure() ?? {};
    expect(Buffer.byteLength(JSON.stringify({ logHead, logOmitted, logTail }))).toBeLessThanOrEqual(8 * 1024);
    expect([logHead?.[0], logTail?.at(-1), failure()?.cause]).toEqual(['first', 'last', 'build-failed']);
    expect((logHead?.length ?? 0) + logOmitted + (logTail?.length ?? 0)).toBe(202);
  });

  test.each([
    ['the step that failed', { source: ended(1), registry: running, build: ended(99) }, {}, 'source'],
    ['the registry', { source: ended(0), registry: ended(62), build: ended(99) }, {}, 'registry'],
    [
      'the step it had come to when its time was over',
      { source: ended(0), registry: ended(137), build: ended(137) },
      { reason: 'DeadlineExceeded' },
      'build',
    ],
    [
      'the source that was not there when its time was over',
      { source: ended(137), registry: ended(137), build: ended(137) },
      { reason: 'DeadlineExceeded' },
      'source',
    ],
    ['the export, which ended well without a droplet', { source: ended(0), registry: ended(0), build: ended(0) }, {}, 'registry'],
  ])('keeps the lines of %s', async (_, containers, more, container) => {
    printed = { source: 'of source\n', registry: 'of registry\n', build: 'of build\n' };
    await runPod(scene, containers, { phase: 'Failed', ...more });
    await failed();
    expect([failure()?.logTail, reads]).toEqual([[`of ${container}`], [container]]);
  });

  test.each([
    ['the log is refused', apiError(500, 'InternalError', 'dial tcp'), 'The log of the pod could not be read.'],
    ['the pod is gone', apiError(404, 'NotFound', 'pods "x"'), 'The pod was gone before its last lines were read.'],
  ])('fails when %s, says so, and is read once', async (_, error, logLost) => {
    refusal = error;
    await runPod(scene, { source: ended(0), registry: ended(99), build: ended(51) }, { phase: 'Failed' });
    await failed();
    expect(failure()).toEqual({ lane: 'build', exitCode: 51, reason: 'BuildFailed', cause: 'build-failed', pod: 'b-1-x', logLost });
    await expectNoMoreWork(cluster, reads);
    expect(reads).toEqual(['build']);
  });

  test('keeps the last lines of its kubelet when the log cannot be read', async () => {
    await runPod(scene, { source: ended(0), registry: ended(99), build: ended(51, 'npm ci failed\n') }, { phase: 'Failed' });
    await failed();
    expect(failure()).toMatchObject({ cause: 'build-failed', logTail: ['npm ci failed'] });
    expect(failure()).not.toHaveProperty('logLost');
  });

  test('whose pod is gone before its end was seen says so, and is looked at no more', async () => {
    await runPod(scene, { source: running, registry: running, build: running });
    await scene.until(() => expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')?.status?.conditions).toBeDefined());
    await cluster.delete(podType, 's-1', 'b-1-x');
    const conditions = [{ type: 'Failed', status: 'True', message: 'Job has reached the specified backoff limit' }];
    await cluster.mergePatch(jobType, 's-1', 'b-1', { status: { conditions } }, { subresource: 'status' });
    await failed();
    const logLost = 'The pod was gone before its last lines were read.';
    expect(failure()).toEqual({ reason: 'BuildFailed', cause: 'build-failed', logLost });
    await expectNoMoreWork(cluster, reads);
    expect(reads).toEqual([]);
  });

  test('whose pod succeeded and is gone before its droplet was read says so', async () => {
    await scene.until(() => expect(cluster.peek(jobType, 's-1', 'b-1')).toBeDefined());
    await scene.stop();
    const conditions = [{ type: 'Complete', status: 'True' }];
    await cluster.mergePatch(jobType, 's-1', 'b-1', { status: { conditions } }, { subresource: 'status' });
    scene = await startScene(cluster);
    await failed();
    expect(scene.condition(kinds.build, 's-1', 'b-1', 'Succeeded')?.message).toBe(
      'The build ended well, but its pod was deleted before the controller had read which droplet it made.',
    );
    expect(failure()?.cause).toBe('build-failed');
  });

  test('whose pod somebody deletes while it runs is not explained by how its containers end then', async () => {
    await runPod(scene, { source: running, registry: running, build: running });
    await scene.until(() => expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')?.status?.conditions).toBeDefined());
    // The Job holds the pod until it has counted it; the kubelet ends the containers meanwhile.
    await cluster.mergePatch(podType, 's-1', 'b-1-x', { metadata: { finalizers: ['batch.kubernetes.io/job-tracking'] } });
    await cluster.delete(podType, 's-1', 'b-1-x');
    const said = {
      exitCode: 1,
      message: 'The source could not be fetched: The operation was aborted.',
      finishedAt: new Date().toISOString(),
    };
    await runPod(scene, { source: { terminated: said }, registry: running, build: running });
    await settled(cluster);
    expect(failure()).toBeUndefined();
    await cluster.mergePatch(podType, 's-1', 'b-1-x', { metadata: { finalizers: null } });
    const conditions = [{ type: 'Failed', status: 'True', message: 'Job has reached the specified backoff limit' }];
    await cluster.mergePatch(jobType, 's-1', 'b-1', { status: { conditions } }, { subresource: 'status' });
    await failed();
    expect(failure()).toMatchObject({ reason: 'BuildFailed', cause: 'build-failed' });
  });

  test('whose image cannot be pulled has its cause, and no lines that could be lost', async () => {
    const waiting = { waiting: { reason: 'ErrImagePull', message: 'not found' } };
    await runPod(scene, { source: running, registry: waiting, build: waiting });
    await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Staging')?.message).toContain('cannot be pulled'));
    scene.pass(31_000);
    await failed();
    expect(failure()).toEqual({ reason: 'BuilderNotFound', cause: 'no-builder' });
    expect(reads).toEqual([]);
  });
});

test('a build for which no node has room leaves no pod that waits for one', async () => {
  await runPod(scene, {});
  const waits = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message: '0/1 nodes are available: 1 Insufficient memory.',
  };
  const conditions = [{ ...waits, lastTransitionTime: new Date().toISOString() }];
  const status = { phase: 'Pending', conditions, containerStatuses: null };
  await cluster.mergePatch(podType, 's-1', 'b-1-x', { status }, { subresource: 'status' });
  await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Staging')?.message).toContain('Insufficient memory'));
  scene.pass(301_000);
  await failed();
  expect(failure()).toMatchObject({ cause: 'no-room' });
  // The garbage collector deletes the pod.
  await scene.until(() => expect(cluster.peek(jobType, 's-1', 'b-1')).toBeUndefined());
  await cluster.delete(podType, 's-1', 'b-1-x');
  await scene.until(() => expect(cluster.peek(secretType, 's-1', 'b-1-registry')).toBeUndefined());
});

describe('a build', () => {
  const quota = 'is forbidden: exceeded quota: q, requested: count/secrets=1, used: count/secrets=9, limited: count/secrets=9';
  const policy = "is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no Jobs";
  const refuse = (kind: string, said: string): void => {
    cluster.intercept = (verb, type, name) => {
      if (verb === 'create' && type.kind === kind && name.startsWith('b-2'))
        throw apiError(403, 'Forbidden', `${type.plural} "${name}" ${said}`);
    };
  };
  const second = () => cluster.peek(kinds.build, 's-1', 'b-2')?.status;
  const awaited = () => scene.condition(kinds.build, 's-1', 'b-2', 'Staging')?.message;

  test.each([
    ['Job', policy, 'admission'],
    ['Job', quota, 'quota'],
    ['Secret', quota, 'quota'],
    ['BuildWorkload', policy, 'admission'],
  ])('whose %s is refused says why at once, and fails when that lasts: %s', async (kind, said, cause) => {
    refuse(kind, said);
    await startBuild(cluster, { guid: 'b-2' });
    await scene.until(() => expect(awaited()).toContain(said));
    expect(second()?.state).toBe('STAGING');
    scene.pass(8_000);
    await scene.until(() => expect(second()?.state).toBe('FAILED'));
    expect(second()?.failure?.cause).toBe(cause);
    expect(scene.condition(kinds.build, 's-1', 'b-2', 'Succeeded')?.message).toMatch(/^The build cannot start: .* "b-2/);
    expect(cluster.peek(jobType, 's-1', 'b-2')).toBeUndefined();
  });

  test.each(['Job', 'BuildWorkload'])('whose %s is refused in other words at each try is not tried again at once', async (kind) => {
    let tries = 0;
    cluster.intercept = (verb, type, name) => {
      if (verb !== 'create' || type.kind !== kind || !name.startsWith('b-2')) return;
      tries += 1;
      throw apiError(403, 'Forbidden', `admission webhook "p" denied the request: request ${String(tries)}`);
    };
    await startBuild(cluster, { guid: 'b-2' });
    await scene.until(() => expect(awaited()).toContain('denied the request: request 1'));
    await sleep(500);
    // The write of the condition wakes the build once.
    expect(tries).toBeLessThanOrEqual(2);
    expect(awaited()).toMatch(/request 1$/);
  });

  test.each(['Job', 'BuildWorkload'])('whose %s no webhook answers for says so at once, and fails only when that lasts', async (kind) => {
    const said = (end: string) => `failed calling webhook "p.example": failed to call webhook: ${end}`;
    let end = 'connection refused';
    cluster.intercept = (verb, type, name) => {
      if (verb === 'create' && type.kind === kind && name.startsWith('b-2'))
        throw apiError(500, 'InternalError', `Internal error occurred: ${said(end)}`);
    };
    await startBuild(cluster, { guid: 'b-2' });
    await scene.until(() => expect(awaited()).toBe(`The build cannot start: Internal error occurred: ${said(end)}`));
    // A refusal would have ended it by now.
    scene.pass(60_000);
    await sleep(1_500);
    expect(second()?.state).toBe('STAGING');
    end = 'context deadline exceeded';
    scene.pass(60_000);
    await scene.until(() => expect(second()?.state).toBe('FAILED'));
    expect(second()?.failure?.cause).toBe('admission');
    expect(scene.condition(kinds.build, 's-1', 'b-2', 'Succeeded')?.message).toContain(said(end));
  });

  test('whose Job is refused for a moment goes on', async () => {
    refuse('Job', policy);
    await startBuild(cluster, { guid: 'b-2' });
    await scene.until(() => expect(awaited()).toContain('no Jobs'));
    cluster.intercept = () => undefined;
    await scene.until(() => expect(cluster.peek(jobType, 's-1', 'b-2')).toBeDefined());
    await scene.until(() => expect(awaited()).toBe(''));
  });
});

test('a build that is refused before anything runs has its cause, and no lines that could be lost', async () => {
  await startBuild(cluster, { guid: 'b-2', buildpacks: ['cobol'] });
  await scene.until(() => expect(cluster.peek(kinds.build, 's-1', 'b-2')?.status?.state).toBe('FAILED'));
  expect(cluster.peek(kinds.build, 's-1', 'b-2')?.status?.failure).toEqual({ reason: 'InvalidBuildpacks', cause: 'unknown' });
});
