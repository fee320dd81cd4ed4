// A sidecar that was ended for lack of memory, as the controller sees it: its cache keeps little of a pod.

import { afterEach, expect, test } from 'vitest';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { reported } from './deployment-scene.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

test('a version whose sidecar is ended for lack of memory has failed, and the limit of the sidecar is named', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', {
    spec: { memoryMB: 128, sidecars: [{ name: 'proxy', command: 'proxy', memoryMB: 16 }] },
  });
  const id = await scene.deploy('silent:2', { rev: '1' });
  const silent = () => scene.cluster.all(podType).find(({ spec }) => spec?.containers[0]?.image === 'silent:2');
  await scene.until(() => expect(silent()?.status?.containerStatuses).toHaveLength(1));
  const now = new Date().toISOString();
  const terminated = { reason: 'OOMKilled', exitCode: 137, startedAt: now, finishedAt: now };
  const sidecar = { name: 'sidecar-0-proxy-s', image: 'silent:2', imageID: '', ready: false, restartCount: 2 };
  const initContainerStatuses = [{ ...sidecar, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated } }];
  await scene.cluster.mergePatch(
    podType,
    ns,
    silent()?.metadata.name ?? '',
    { status: { ...silent()?.status, initContainerStatuses } },
    { subresource: 'status' },
  );
  await reported(scene, id, 'Failed', { cause: 'oom' });
  expect(scene.app()?.status?.deployment?.message).toContain("The sidecar 'proxy' used more memory than its limit of 16M and was ended;");
});
