// Tasks on nodes that come and go, on a cluster in memory.

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { nodeType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import {
  cluster,
  condition,
  endJob,
  givePod,
  job,
  jobsMade,
  ns,
  releasedTask,
  startController,
  stop,
  until,
  useTaskScene,
} from './task-scene.ts';

useTaskScene();

const ago = (seconds: number): string => new Date(Date.now() - seconds * 1_000).toISOString();
const readyState = (status: 'True' | 'Unknown', secondsAgo: number) => ({
  status: { conditions: [{ type: 'Ready', status, lastTransitionTime: ago(secondsAgo) }] },
});
const dead = 'dead-node';

/** A node that has been silent for long, with the pod of the task, whose end began as long ago. */
async function giveLostPod(name: string): Promise<void> {
  const since = ago(300);
  await cluster.create(nodeType, { metadata: { name: dead }, ...readyState('Unknown', 300) });
  await givePod(name, { running: { startedAt: since } }, 'Running', { deletionTimestamp: since, nodeName: dead });
}

test('a task that no node takes waits for a node that came back a moment ago, and fails when none moves', async () => {
  await releasedTask('task-stuck');
  await cluster.create(nodeType, { metadata: { name: 'node' }, ...readyState('True', 5) });
  const scheduled = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: ago(30) } as const;
  await givePod('task-stuck', {}, 'Pending', { conditions: [scheduled] });
  await sleep(300);
  expect(condition('task-stuck', 'Failed')?.status).not.toBe('True');
  await cluster.mergePatch(nodeType, undefined, 'node', readyState('True', 300), { subresource: 'status' });
  await cluster.mergePatch(podType, ns, 'task-stuck-pod', { metadata: { annotations: { looked: 'again' } } });
  await until(() => expect(condition('task-stuck', 'Failed')).toMatchObject({ status: 'True', reason: 'Unschedulable' }));
});

describe('a task whose node is lost', () => {
  const said = `Node '${dead}' does not answer. How far the task came there is not known; it is not run again.`;

  test('fails with its node as the reason, its pod is removed, and it is not run again', async () => {
    await releasedTask('task-lost');
    await giveLostPod('task-lost');
    await until(() => expect(condition('task-lost', 'Failed')).toMatchObject({ status: 'True', reason: 'NodeLost', message: said }));
    await until(() => expect(cluster.peek(podType, ns, 'task-lost-pod')).toBeUndefined());
    const removal = cluster.writes.find(({ verb, name }) => verb === 'delete' && name === 'task-lost-pod')?.body;
    expect(removal).toMatchObject({ gracePeriodSeconds: 0, uid: expect.any(String) as string });
    expect(jobsMade()).toEqual(['task-lost']);
  });

  test('has the same reason when the Job says first that it failed', async () => {
    await releasedTask('task-lost');
    await stop();
    await giveLostPod('task-lost');
    await endJob('task-lost', 'Failed', 'BackoffLimitExceeded');
    startController('two');
    await until(() => expect(condition('task-lost', 'Failed')).toMatchObject({ reason: 'NodeLost', message: said }));
    await until(() => expect(cluster.peek(podType, ns, 'task-lost-pod')).toBeUndefined());
  });

  test.each(['canceled', 'deleted'])('and that was %s leaves no pod there, and one on a node that answers stays', async (how) => {
    await releasedTask('task-left');
    const marks = { ...job('task-left')?.spec?.template.metadata?.labels };
    if (how === 'deleted') await cluster.delete(kinds.task, ns, 'task-left');
    else await cluster.mergePatch(kinds.task, ns, 'task-left', { spec: { canceled: true } });
    await until(() => expect(job('task-left')).toBeUndefined());
    await cluster.create(nodeType, { metadata: { name: dead }, ...readyState('Unknown', 300) });
    await cluster.create(nodeType, { metadata: { name: 'node' }, ...readyState('True', 300) });
    // The API server keeps a pod until its node has confirmed the end.
    for (const nodeName of ['node', dead])
      await cluster.create<Pod>(podType, {
        metadata: { name: `pod-on-${nodeName}`, namespace: ns, labels: marks, deletionTimestamp: ago(300) },
        spec: { containers: [], nodeName },
      });
    await until(() => expect(cluster.peek(podType, ns, `pod-on-${dead}`)).toBeUndefined());
    expect(cluster.peek(podType, ns, 'pod-on-node')).toBeDefined();
  });
});
