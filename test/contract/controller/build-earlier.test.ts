// A build with the GUID of an earlier one, of which something is still there: what that says does not end the new build.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { jobType } from '../../../src/lib/api/core.ts';
import { group, kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { ended, makeSpace, runPod, startBuild } from './build-run.ts';
import { startScene, type BuildScene } from './build-scene.ts';
import { settled } from './settled.ts';

let scene: BuildScene;
beforeEach(async () => {
  scene = await startScene();
  await makeSpace(scene.cluster);
});
afterEach(() => scene.stop());

const marks = { [labels.buildWorkloadName]: 'b-1', [labels.buildGuid]: 'b-1', [labels.appGuid]: 'a-1' };
const succeeded = () => scene.condition(kinds.build, 's-1', 'b-1', 'Succeeded');
const job = () => scene.cluster.peek(jobType, 's-1', 'b-1');

test('waits until the Job of the earlier one is gone, and makes its own', async () => {
  const owner = { apiVersion: `${group}/v1alpha1`, kind: 'BuildWorkload', name: 'b-1', uid: 'earlier' };
  const earlier = await scene.cluster.create(jobType, {
    metadata: { name: 'b-1', namespace: 's-1', labels: marks, ownerReferences: [owner] },
  });
  await startBuild(scene.cluster);
  await runPod(scene, { source: ended(0), registry: ended(0), build: ended(20) }, { phase: 'Failed' });
  await settled(scene.cluster);
  expect([succeeded()?.status, job()?.metadata.uid]).not.toContain('False');
  expect(job()?.metadata.uid).toBe(earlier.metadata.uid);
  // The garbage collector deletes it.
  await scene.cluster.delete(jobType, 's-1', 'b-1');
  await scene.until(() => {
    expect(job()?.metadata.uid).toBeDefined();
    expect(job()?.metadata.uid).not.toBe(earlier.metadata.uid);
  });
});

test('does not end with the pod of the earlier one, which takes its time to end', async () => {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'b-1', uid: 'earlier' };
  const status = { name: 'build', image: 'i', imageID: '', ready: false, restartCount: 0, containerID: 'c://1', state: ended(20) };
  await scene.cluster.create(podType, {
    metadata: { name: 'a-first', namespace: 's-1', labels: marks, ownerReferences: [owner] },
    status: { phase: 'Failed', containerStatuses: [status] },
  });
  await startBuild(scene.cluster);
  await scene.until(() => expect(job()).toBeDefined());
  await settled(scene.cluster);
  expect(succeeded()?.status).not.toBe('False');
  await runPod(scene, { source: ended(0), registry: ended(0), build: ended(51) }, { phase: 'Failed' });
  await scene.until(() => expect(succeeded()?.status).toBe('False'));
  expect(scene.cluster.peek(kinds.build, 's-1', 'b-1')?.status?.failure).toMatchObject({ pod: 'b-1-x', exitCode: 51 });
});
