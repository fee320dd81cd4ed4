import { describe, expect, test } from 'vitest';
import { lastLine, outcomeOf } from '../../../src/controller/builds/outcome.ts';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import type { ContainerState } from '../../../src/lib/api/pod.ts';

const digest = `sha256:${'c'.repeat(64)}`;
const limits = { memoryMB: 1024, timeoutSeconds: 900 };
const running: ContainerState = { running: {} };
const ended = (exitCode: number, at = 10, more: { reason?: string; message?: string } = {}): ContainerState => ({
  terminated: { exitCode, finishedAt: `2026-01-01T00:00:${String(at)}Z`, ...more },
});
const pod = (containers: Partial<Record<'source' | 'registry' | 'build' | 'proxy', ContainerState>>, status: Pod['status'] = {}): Pod => ({
  metadata: { name: 'p' },
  status: {
    phase: 'Running',
    containerStatuses: Object.entries(containers).map(([name, state]) => ({
      name,
      image: 'img',
      imageID: '',
      ready: false,
      restartCount: 0,
      state,
    })),
    ...status,
  },
});

describe('the outcome of a build', () => {
  test('is a success with the report if all containers succeeded', () => {
    const done = pod({ source: ended(0), build: ended(0), registry: ended(0, 20, { message: `digest=${digest}\nmetadata=\n` }) });
    expect(outcomeOf(done, limits)).toEqual({ state: 'succeeded', report: { digest } });
  });

  test('is a failure if all containers succeeded but nothing was reported', () => {
    const done = pod({ source: ended(0), build: ended(0), registry: ended(0) });
    expect(outcomeOf(done, limits)).toMatchObject({ state: 'failed', message: 'The build ended without reporting a droplet.' });
  });

  test('is a failure also if the node does not know when a container ended', () => {
    const gone = { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown', startedAt: null, finishedAt: null } };
    for (const containers of [
      { build: ended(1), registry: gone },
      { build: gone, registry: ended(1) },
    ])
      expect(outcomeOf(pod({ source: ended(0), ...containers }), limits)).toMatchObject({ state: 'failed', failure: { exitCode: 1 } });
  });

  test('is open while a container runs', () =>
    expect(outcomeOf(pod({ source: ended(0), build: running, registry: running }), limits)).toEqual({ state: 'running' }));

  test.each([
    [
      'the fetch',
      {
        source: ended(1, 10, { message: 'The source could not be fetched: the registry answered 404.' }),
        registry: running,
        build: running,
      },
      'source',
      'SourceFetchFailed',
      'The source could not be fetched: the registry answered 404.',
    ],
    [
      'a refused export',
      { source: ended(0), build: ended(0), registry: ended(62, 20, { message: 'ERROR: failed to export: denied' }) },
      'registry',
      'RegistryRefused',
      'The registry side of the build failed: failed to export: denied.',
    ],
    [
      'no matching buildpack',
      {
        source: ended(0),
        registry: ended(99, 11),
        build: ended(20, 10, {
          message: 'fail: kf/a@1\nskip: kf/b@1\nfail: kf/c@2.0\nfail: kf/a@1\nERROR: No buildpack groups passed detection.\n',
        }),
      },
      'build',
      'NoBuildpackMatched',
      'No buildpack recognised the source; tried: kf/a, kf/c.',
    ],
    [
      'a failing buildpack',
      {
        source: ended(0),
        registry: ended(99, 11),
        build: ended(51, 10, { message: 'x\nkf/nodejs: npm ci failed\nERROR: failed to build: exit status 1\n' }),
      },
      'build',
      'BuildFailed',
      'The build failed with exit code 51: kf/nodejs: npm ci failed.',
    ],
    [
      'memory',
      { source: ended(0), registry: running, build: ended(137, 10, { reason: 'OOMKilled' }) },
      'build',
      'OutOfMemory',
      'The build ran out of memory in its build container (limit 1024 MB).',
    ],
  ] as const)('has %s as its cause, while other containers still run or ended because of it', (_, containers, lane, reason, message) => {
    expect(outcomeOf(pod(containers), limits)).toMatchObject({ state: 'failed', failure: { lane, reason }, message });
  });

  test('has the first of two failed containers as its cause, and never one that only ended because of another', () => {
    const both = pod({ source: ended(1, 12, { message: 'later' }), registry: ended(99, 9), build: ended(51, 11, { message: 'first' }) });
    expect(outcomeOf(both, limits)).toMatchObject({ failure: { lane: 'build' }, message: 'The build failed with exit code 51: first.' });
  });

  test('is a timeout if the pod passed its deadline, whatever its containers report', () => {
    const late = pod(
      { source: ended(0), registry: ended(137, 50), build: ended(137, 50) },
      { phase: 'Failed', reason: 'DeadlineExceeded' },
    );
    expect(outcomeOf(late, limits)).toEqual({
      state: 'failed',
      failure: { reason: 'BuildTimeout' },
      message: 'The build took longer than 15 minutes.',
    });
  });

  test('is open while all containers were killed and the kubelet has not said yet why it stopped the pod', () => {
    const containers = { source: ended(0), registry: ended(137, 50), build: ended(137, 50) };
    expect(outcomeOf(pod(containers), limits)).toEqual({ state: 'running' });
    const own = { lane: 'registry', exitCode: 137, reason: 'RegistryRefused' };
    expect(outcomeOf(pod(containers, { phase: 'Failed' }), limits)).toMatchObject({ state: 'failed', failure: own });
  });

  test('is a failure at once if a container was killed and one that is not of the build runs on', () => {
    const containers = { source: ended(0), registry: ended(99, 51), build: ended(137, 50) };
    const failure = { state: 'failed', failure: { lane: 'build', exitCode: 137, reason: 'BuildFailed' } };
    expect(outcomeOf(pod({ ...containers, proxy: running }), limits)).toMatchObject(failure);
    expect(outcomeOf(pod({ ...containers, proxy: ended(143, 51) }), limits)).toEqual({ state: 'running' });
  });

  test('is a failure at once if a container was killed for its memory, or while another one still runs', () => {
    const memory = pod({ source: ended(0), registry: ended(99, 50), build: ended(137, 50, { reason: 'OOMKilled' }) });
    expect(outcomeOf(memory, limits)).toMatchObject({ failure: { reason: 'OutOfMemory' } });
    const alone = pod({ source: ended(0), registry: running, build: ended(137, 50) });
    expect(outcomeOf(alone, limits)).toMatchObject({ message: 'The build failed with exit code 137.' });
  });

  test.each([
    [900, '15 minutes'],
    [90, '90 s'],
    [20, '20 s'],
  ])('names a limit of %i s as %s', (timeoutSeconds, text) => {
    const late = pod({}, { phase: 'Failed', reason: 'DeadlineExceeded' });
    expect(outcomeOf(late, { ...limits, timeoutSeconds })).toMatchObject({ message: `The build took longer than ${text}.` });
  });

  test('is the cause of the pod if it was evicted', () => {
    const evicted = pod(
      { build: ended(137, 50) },
      { phase: 'Failed', reason: 'Evicted', message: 'Pod ephemeral local storage usage exceeds the total limit' },
    );
    expect(outcomeOf(evicted, limits)).toMatchObject({
      failure: { reason: 'BuildFailed' },
      message: "The build's pod was ended (Evicted): Pod ephemeral local storage usage exceeds the total limit.",
    });
  });

  test('is open without a claim about room while a scheduling gate holds the pod back', () => {
    const message = 'Scheduling is blocked due to non-empty scheduling gates';
    const gated: Pod['status'] = { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message }] };
    expect(outcomeOf(pod({}, gated), limits)).toMatchObject({ state: 'waiting', message: `The build gets no node: ${message}.` });
  });

  test('is open while the pod waits, with the reason', () => {
    const unscheduled: Pod['status'] = {
      conditions: [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'Unschedulable',
          message: '0/1 nodes are available: 1 Insufficient memory',
          lastTransitionTime: 't',
        },
      ],
    };
    expect(outcomeOf(pod({}, unscheduled), limits)).toEqual({
      state: 'waiting',
      reason: 'Unschedulable',
      since: 't',
      message: 'No node can run the build: 0/1 nodes are available: 1 Insufficient memory.',
    });
    const pulling = pod({
      source: running,
      build: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "img": not found' } },
      registry: running,
    });
    expect(outcomeOf(pulling, limits)).toMatchObject({
      state: 'waiting',
      reason: 'BuilderNotFound',
      message: `The image 'img' of the build's build container cannot be pulled: Back-off pulling image "img": not found.`,
    });
    const unpulled = { waiting: { reason: 'ImagePullBackOff' } };
    const ownImage = pod({ source: unpulled, build: running });
    for (const status of ownImage.status?.containerStatuses ?? []) status.image = `img-of-${status.name}`;
    expect(outcomeOf(ownImage, limits)).toMatchObject({
      reason: 'BuildFailed',
      message: "The image 'img-of-source' of the build's source container cannot be pulled.",
    });
    expect(outcomeOf(pod({ source: unpulled, build: unpulled }), limits)).toMatchObject({ reason: 'BuilderNotFound' });
    expect(outcomeOf(pod({ source: { waiting: { reason: 'ContainerCreating' } } }), limits)).toMatchObject({
      state: 'waiting',
      reason: 'BuildRunning',
    });
  });
});

test.each([
  ['a\nb\n\n', 'b'],
  ['\u001b[31mERROR: \u001b[0mred', 'red'],
  ['cause\nERROR: failed to build: exit status 1', 'cause'],
  ['', ''],
])('the last meaningful line of %j is %j', (text, line) => expect(lastLine(text)).toBe(line));
