// The metrics that Prometheus reads from a running controller.

import { afterEach, expect, test } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(async () => scene.stop());

const deployment = () => scene.app()?.status?.deployment;
const ended = async (id: string, phase: string): Promise<void> => scene.until(() => expect(deployment()).toMatchObject({ id, phase }));

/** The number of observations of a histogram with the given labels. */
async function countOf(name: string, labels: string): Promise<number> {
  const line = (await scene.metrics()).split('\n').find((text) => text.startsWith(`${name}_count{${labels}} `));
  return Number(line?.split(' ')[1]);
}

async function ends(): Promise<Record<string, number>> {
  const [push, rollout] = ['kf_push_duration_seconds', 'kf_rollout_duration_seconds'];
  return {
    pushed: await countOf(push, 'outcome="succeeded"'),
    pushFailed: await countOf(push, 'outcome="failed"'),
    rolledOut: await countOf(rollout, 'outcome="succeeded"'),
    rolloutFailed: await countOf(rollout, 'outcome="failed"'),
  };
}

/** A push takes the app over first; later its id is that of the deployment. */
async function push(image: string, id: string): Promise<void> {
  await scene.patchApp({ metadata: { annotations: { [annotations.pushId]: id } } });
  await scene.deploy(image, { annotations: { [annotations.deployId]: id } });
}

test('pushes and rollouts are measured once, by outcome', async () => {
  scene = await startRunScene();
  await push('good:1', 'push-1');
  await ended('push-1', 'Serving');
  expect(await ends()).toEqual({ pushed: 1, pushFailed: 0, rolledOut: 1, rolloutFailed: 0 });
  await push('crash:1', 'push-2');
  await ended('push-2', 'Failed');
  expect(await ends()).toEqual({ pushed: 1, pushFailed: 1, rolledOut: 1, rolloutFailed: 1 });
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'stop' } }, spec: { desiredState: 'STOPPED' } });
  await ended('stop', 'Stopped');
  await scene.deploy('good:2');
  await scene.until(() => expect(deployment()?.phase).toBe('Serving'));
  expect(await ends()).toEqual({ pushed: 1, pushFailed: 1, rolledOut: 2, rolloutFailed: 1 });
});

test('changes that began before the controller started are not measured', async () => {
  scene = await startRunScene();
  await push('good:1', 'push-1');
  await ended('push-1', 'Serving');
  await scene.restartController();
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 2 } });
  await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: 2 }));
  expect(await ends()).toEqual({ pushed: 0, pushFailed: 0, rolledOut: 0, rolloutFailed: 0 });
  await push('good:2', 'push-2');
  await ended('push-2', 'Serving');
  expect(await ends()).toEqual({ pushed: 1, pushFailed: 0, rolledOut: 1, rolloutFailed: 0 });
});

test('reconciles and requests are counted and measured, and no series names an app or a space', async () => {
  scene = await startRunScene();
  await push('good:1', 'push-1');
  await ended('push-1', 'Serving');
  const text = await scene.metrics();
  expect(text).toMatch(/^kf_reconcile_duration_seconds_count\{reconciler="process"\} [1-9]/m);
  expect(text).toMatch(/^kf_reconcile_total\{reconciler="process",outcome="success"\} /m);
  expect(text).toMatch(/^kf_api_requests_total\{verb="create",kind="StatefulSet"\} [1-9]/m);
  expect(text).toMatch(/^kf_api_request_duration_seconds_count\{verb="create"\} [1-9]/m);
  expect(text).toMatch(/^kf_queue_depth\{reconciler="process"\} \d/m);
  expect(text).toMatch(/^kf_leader 1$/m);
  expect(text).toMatch(/^process_resident_memory_bytes [1-9]/m);
  for (const name of [appGuid, ns, 'shop', scene.web()?.metadata.name ?? '?']) expect(text).not.toContain(name);
});
