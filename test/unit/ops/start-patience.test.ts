// How long the commands that start instances wait: an app that needs more than cf's five minutes gets its time.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { continueDeployment } from '../../../src/lib/ops/apps/deployments.ts';
import { restartApp, startApp, waitUntilServing } from '../../../src/lib/ops/apps/lifecycle.ts';
import { scaleApp } from '../../../src/lib/ops/apps/scale.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { kfVersion } from '../../../src/lib/version.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const [ns, guid] = ['space', 'app'];
const nothing = (): void => undefined;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An app of which one process may take ten minutes, in a cluster whose controller accepts each change and finishes none. */
async function scene(
  desiredState: 'STARTED' | 'STOPPED',
  env: Record<string, string> = {},
): Promise<{ session: SpaceSession; app: Stored<CFApp> }> {
  const cluster = new MemoryCluster();
  const app = await cluster.create(kinds.app, {
    metadata: { name: guid, namespace: ns, annotations: { [annotations.appRev]: '1' } },
    spec: {
      ...{ displayName: 'slow', desiredState, currentDropletRef: { name: 'droplet' } },
      lifecycle: { type: 'buildpack', data: { stack: '' } },
    },
  });
  for (const [processType, timeoutSeconds] of [['web', 60] as const, ['worker', 600] as const]) {
    await cluster.create(kinds.process, {
      metadata: { name: processType, namespace: ns, labels: { [labels.appGuid]: guid } },
      spec: {
        ...{ appRef: { name: guid }, processType, desiredInstances: 1, memoryMB: 64, diskQuotaMB: 64 },
        healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 1, timeoutSeconds } },
      },
    });
  }
  const session = {
    ...{ cluster, env, report: nothing, bin: 'kf', changedBy: () => Promise.resolve('somebody'), signal: new AbortController().signal },
    ...{ org: { name: 'org', guid: 'org' }, space: { name: 'space', guid: ns } },
    info: () => Promise.resolve({ controller: { version: kfVersion() }, oldestCli: kfVersion() }),
  } as unknown as SpaceSession;
  return { session, app };
}

/** Acts as the controller, which has seen the change. */
async function takeUp({ cluster }: SpaceSession, id: string): Promise<void> {
  const status = { deployment: { id, phase: 'Starting', message: 'Waiting for instance 0.' } };
  await cluster.mergePatch(kinds.app, ns, guid, { status }, { subresource: 'status' });
}

/** The message of a wait that ends by its time limit, and after how many seconds. */
async function endOf(waiting: Promise<unknown>): Promise<[seconds: number, message: string]> {
  let message: string | undefined;
  const began = Date.now();
  waiting.then(nothing, (error: Error) => (message = error.message));
  while (message === undefined && Date.now() - began < 3_600_000) await vi.advanceTimersByTimeAsync(1000);
  return [Math.round((Date.now() - began) / 1000), message ?? ''];
}

test.each([
  ['start', 'STOPPED', startApp],
  ['restart', 'STARTED', restartApp],
] as const)('%s waits for the longest timeout of the processes', async (_verb, state, act) => {
  const { session, app } = await scene(state);
  const changed = await act(session, app);
  await takeUp(session, changed.deployId);
  const [seconds, message] = await endOf(waitUntilServing(session, changed.app, changed.deployId));
  expect(message).toContain("Start app timeout: after 10.5 min app 'slow' still waits for: instance 0");
  expect(seconds).toBeGreaterThan(600);
});

test('CF_STARTUP_TIMEOUT has priority', async () => {
  const { session, app } = await scene('STOPPED', { CF_STARTUP_TIMEOUT: '0.5' });
  const changed = await startApp(session, app);
  await takeUp(session, changed.deployId);
  const [, message] = await endOf(waitUntilServing(session, changed.app, changed.deployId));
  expect(message).toContain('Start app timeout: after 0.5 min');
});

test.each([
  ['web', '5 min'],
  ['worker', '10 min 30 s'],
])('scale -i waits as long as process %s may take: %s', async (process, time) => {
  const { session, app } = await scene('STARTED');
  const scaling = endOf(scaleApp(session, app, { process, instances: 2 }));
  await vi.advanceTimersByTimeAsync(100);
  const { generation } = session.cluster instanceof MemoryCluster ? (session.cluster.peek(kinds.process, ns, process)?.metadata ?? {}) : {};
  await session.cluster.mergePatch(kinds.process, ns, process, { status: { observedGeneration: generation } }, { subresource: 'status' });
  expect((await scaling)[1]).toContain(`Timed out after ${time} waiting for 2 instances of '${process}'`);
});

test('scale -i beside a paused canary ends when the instances of both versions are ready, although an index has two of them', async () => {
  const { session, app } = await scene('STARTED');
  const write = async (before: number, ready: number): Promise<void> => {
    const { items } = await session.cluster.list(kinds.process, { ns });
    const observedGeneration = items.find(({ metadata }) => metadata.name === 'web')?.metadata.generation;
    const generations = [
      { hash: 'a', state: 'Old', instances: before, ready } as const,
      { hash: 'b', state: 'Current', instances: 2, ready: 2 } as const,
    ];
    const running = { state: 'RUNNING' as const, ready: true };
    const status = {
      observedGeneration,
      rollout: { id: 'canary', phase: 'Paused', generations },
      instancesStatus: { 0: running, 1: running, 2: running },
    };
    await session.cluster.mergePatch(kinds.process, ns, 'web', { status }, { subresource: 'status' });
  };
  let hasEnded = false;
  const scaling = scaleApp(session, app, { process: 'web', instances: 4 }).then(() => (hasEnded = true));
  await vi.advanceTimersByTimeAsync(100);
  // An instance starts; then one is still to be stopped.
  for (const [before, ready] of [
    [3, 2],
    [4, 4],
  ] as const) {
    await write(before, ready);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(hasEnded).toBe(false);
  }
  await write(3, 3);
  await vi.advanceTimersByTimeAsync(6_000);
  expect(await scaling).toBe(true);
});

test('scale -i 0 of a canary that has not reached its step ends with the instances, and its next step needs one', async () => {
  const { session, app } = await scene('STARTED');
  const begun = await restartApp(session, app, { strategy: 'canary', instanceSteps: [20, 50] });
  const state = { id: begun.deployId, phase: 'Pending' as const, step: 1, message: 'There is no instance to try the new version with.' };
  const current = await session.cluster.mergePatch(kinds.app, ns, guid, { status: { deployment: state } }, { subresource: 'status' });
  const scaling = scaleApp(session, current, { process: 'web', instances: 0 });
  await vi.advanceTimersByTimeAsync(100);
  const { items } = await session.cluster.list(kinds.process, { ns });
  const observedGeneration = items.find(({ metadata }) => metadata.name === 'web')?.metadata.generation;
  const status = { observedGeneration, rollout: { ...state, generations: [] }, instancesStatus: {} };
  await session.cluster.mergePatch(kinds.process, ns, 'web', { status }, { subresource: 'status' });
  await vi.advanceTimersByTimeAsync(100);
  await scaling;
  const paused = { deployment: { ...state, phase: 'Paused' } };
  const reached = await session.cluster.mergePatch(kinds.app, ns, guid, { status: paused }, { subresource: 'status' });
  await expect(continueDeployment(session, reached)).rejects.toMatchObject({
    code: 'conflict',
    message: "App 'slow' has no instances, so there is nothing to try the new version with in the next step.",
    hints: ['kf scale slow -i 1', 'kf cancel-deployment slow'],
  });
});

test('continue-deployment says after 20 s that no controller has taken it up, and waits longer for one that has', async () => {
  const { session, app } = await scene('STARTED');
  const paused = await restartApp(session, app, { strategy: 'canary', instanceSteps: [20] });
  const status = { deployment: { id: paused.deployId, phase: 'Paused', step: 1, message: 'The canary has reached step 1 of 1.' } };
  const current = await session.cluster.mergePatch(kinds.app, ns, guid, { status }, { subresource: 'status' });
  const continued = await continueDeployment(session, current);
  expect(continued.app.spec.rollout).toMatchObject({ step: 2 });
  const told = "The change of app 'slow' is accepted, but no controller has taken it up; it waits in the cluster.";
  expect(await endOf(waitUntilServing(session, continued.app, continued.deployId))).toEqual([20, told]);
  expect(await endOf(waitUntilServing(session, continued.app, continued.deployId, { wait: false }))).toEqual([20, told]);
  await takeUp(session, continued.deployId);
  const [, message] = await endOf(waitUntilServing(session, continued.app, continued.deployId));
  expect(message).toContain("Start app timeout: after 10.5 min app 'slow' still waits for: instance 0");
});
