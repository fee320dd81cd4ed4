// A build whose node stops answering, on a cluster in memory.

import { expect, test, vi } from 'vitest';
import { jobType, namespaceType, nodeType, secretType } from '../../../src/lib/api/core.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { buildBuild, buildPackage } from '../../../src/templates/build.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { app, startScene } from './build-scene.ts';

const author = { changedBy: 'alice', now: new Date() };
const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };

const since = new Date(Date.now() - 300_000).toISOString();

/** A build that runs, and a node that has been silent for long. @returns the labels of the build's pod */
async function startBuild(cluster: MemoryCluster): Promise<Record<string, string>> {
  await cluster.create(namespaceType, { metadata: { name: 's-1', labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } });
  const owner = await cluster.create(kinds.app, app('a-1'));
  await cluster.create(secretType, { metadata: { name: 'a-1-env', namespace: 's-1' } });
  const image = `kf-registry.kf-system.svc:5000/s-1/a-1-packages@sha256:${'e'.repeat(64)}`;
  await cluster.create(kinds.package, buildPackage({ guid: 'b-1', app: owner, type: 'bits', image }, author));
  const input = { guid: 'b-1', app: owner, packageGuid: 'b-1', lifecycle, stagingMemoryMB: 0, stagingDiskMB: 0 };
  await cluster.create(kinds.build, buildBuild(input, author));
  await vi.waitFor(() => expect(cluster.peek(jobType, 's-1', 'b-1')).toBeDefined(), { timeout: patienceMs, interval: 5 });
  const conditions = [{ type: 'Ready', status: 'Unknown' as const, lastTransitionTime: since }];
  await cluster.create(nodeType, { metadata: { name: 'dead' }, status: { conditions } });
  return { ...cluster.peek(jobType, 's-1', 'b-1')?.metadata.labels };
}

test('fails with its node as the reason, and its pod is removed', async () => {
  const scene = await startScene();
  try {
    const { cluster } = scene;
    const labels = await startBuild(cluster);
    const running = { name: 'build', image: '', imageID: '', ready: true, restartCount: 0, state: { running: { startedAt: since } } };
    await cluster.create(podType, {
      metadata: { name: 'b-1-x', namespace: 's-1', labels, deletionTimestamp: since },
      spec: { containers: [], nodeName: 'dead' },
      status: { phase: 'Running', containerStatuses: [running] },
    });
    await scene.until(() =>
      expect(scene.condition(kinds.build, 's-1', 'b-1', 'Succeeded')).toMatchObject({
        status: 'False',
        message: expect.stringContaining("Node 'dead' does not answer") as string,
      }),
    );
    expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')?.status?.failure).toEqual({
      reason: 'NodeLost',
      cause: 'node-lost',
      pod: 'b-1-x',
    });
    await scene.until(() => expect(cluster.peek(podType, 's-1', 'b-1-x')).toBeUndefined());
    const removal = cluster.writes.find(({ verb, name }) => verb === 'delete' && name === 'b-1-x')?.body;
    expect(removal).toMatchObject({ gracePeriodSeconds: 0, uid: expect.any(String) as string });
  } finally {
    await scene.stop();
  }
});

test('and that was deleted with its app leaves no pod there', async () => {
  const scene = await startScene();
  try {
    const { cluster } = scene;
    const labels = await startBuild(cluster);
    await cluster.delete(kinds.app, 's-1', 'a-1');
    await scene.until(() => expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')).toBeUndefined());
    // The API server keeps a pod until its node has confirmed the end.
    const metadata = { name: 'b-1-x', namespace: 's-1', labels, deletionTimestamp: since };
    await cluster.create<Pod>(podType, { metadata, spec: { containers: [], nodeName: 'dead' } });
    await scene.until(() => expect(cluster.peek(podType, 's-1', 'b-1-x')).toBeUndefined());
  } finally {
    await scene.stop();
  }
});
