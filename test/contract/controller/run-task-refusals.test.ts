// Tasks whose pods the cluster refuses to make, on a cluster in memory.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventType, jobType } from '../../../src/lib/api/core.ts';
import { apiError } from '../../support/memory-cluster.ts';
import {
  cluster,
  condition,
  endJob,
  ended,
  givePod,
  job,
  jobsMade,
  makeApp,
  makeTask,
  ns,
  releasedTask,
  until,
  useTaskScene,
} from './task-scene.ts';

useTaskScene();

/** The Job controller has tried to make the pod for a while. */
async function refuse(name: string, message: string): Promise<void> {
  const involvedObject = { uid: job(name)?.metadata.uid ?? '' };
  await cluster.create(eventType, {
    metadata: { name: `${name}-refused`, namespace: ns },
    involvedObject,
    reason: 'FailedCreate',
    message,
  });
  await cluster.mergePatch(jobType, ns, name, { metadata: { creationTimestamp: '2026-08-07T10:16:20Z' } });
}

test.each([
  [
    'Error creating: pods "task-abcde" is forbidden: exceeded quota: kf-limits, requested: pods=1, used: pods=2, limited: pods=2',
    {
      reason: 'QuotaExceeded',
      message: 'The quota of the space is used up: exceeded quota: kf-limits, requested: pods=1, used: pods=2, limited: pods=2',
    },
  ],
  [
    'Error creating: pods "task-abcde" is forbidden: violates PodSecurity "restricted:latest": privileged',
    {
      reason: 'PodRefused',
      message: 'The cluster refuses to create the pod: the pod is forbidden: violates PodSecurity "restricted:latest": privileged',
    },
  ],
])('a task waits, and says why, while no pod is made: %s', async (said, expected) => {
  await releasedTask('task-full');
  await refuse('task-full', said);
  await until(() => expect(condition('task-full', 'Ready')).toMatchObject({ status: 'False', ...expected }));
  expect(condition('task-full', 'Started')?.status).toBe('True');
  expect(condition('task-full', 'Failed')?.status).not.toBe('True');
  await givePod('task-full', { running: {} });
  await until(() => expect(condition('task-full', 'Ready')?.status).toBe('True'));
  expect(jobsMade()).toEqual(['task-full']);
});

test('a refusal of before is not told of a task whose pod has ended', async () => {
  await releasedTask('task-done');
  await cluster.mergePatch(jobType, ns, 'task-done', { status: { failed: 1 } }, { subresource: 'status' });
  await refuse('task-done', 'Error creating: pods "x" is forbidden: exceeded quota: kf-limits');
  await givePod('task-done', ended(1, 'Error'));
  await endJob('task-done', 'Failed');
  await until(() => expect(condition('task-done', 'Failed')?.status).toBe('True'));
  expect(condition('task-done', 'Ready')?.status).toBe('True');
});

test('a task whose Job is refused waits, says why, and runs when it is taken', async () => {
  await makeApp();
  cluster.intercept = (verb, type, name) => {
    if (verb === 'create' && type.plural === jobType.plural)
      throw apiError(403, 'Forbidden', `jobs.batch "${name}" is forbidden: exceeded quota: q, requested: count/jobs.batch=1`);
  };
  await makeTask('task-full');
  const message = 'The quota of the space is used up: exceeded quota: q, requested: count/jobs.batch=1';
  await until(() => expect(condition('task-full', 'Ready')).toMatchObject({ status: 'False', reason: 'QuotaExceeded', message }));
  cluster.intercept = (verb, type, name) => {
    if (verb === 'create' && type.plural === jobType.plural)
      throw apiError(403, 'Forbidden', `admission webhook "p" denied the request: no ${name}`);
  };
  const denied = 'The cluster refuses to create the Job: admission webhook "p" denied the request: no task-full';
  await until(() => expect(condition('task-full', 'Ready')).toMatchObject({ reason: 'PodRefused', message: denied }));
  cluster.intercept = () => undefined;
  await until(() => expect(condition('task-full', 'Ready')?.status).toBe('True'));
  expect(jobsMade()).toEqual(['task-full']);
});

test('a task whose Job no webhook answers for waits, says why, and runs when it is taken', async () => {
  await makeApp();
  const said = 'Internal error occurred: failed calling webhook "p": failed to call webhook: connection refused';
  cluster.intercept = (verb, type) => {
    if (verb === 'create' && type.plural === jobType.plural) throw apiError(500, 'InternalError', said);
  };
  await makeTask('task-unasked');
  const message = `The cluster refuses to create the Job: ${said}`;
  await until(() => expect(condition('task-unasked', 'Ready')).toMatchObject({ status: 'False', reason: 'PodRefused', message }));
  cluster.intercept = () => undefined;
  await until(() => expect(condition('task-unasked', 'Ready')?.status).toBe('True'));
  expect(jobsMade()).toEqual(['task-unasked']);
});

test('a task whose Job is refused in other words at each try is not tried again at once', async () => {
  await makeApp();
  let tries = 0;
  cluster.intercept = (verb, type) => {
    if (verb !== 'create' || type.plural !== jobType.plural) return;
    tries += 1;
    throw apiError(403, 'Forbidden', `admission webhook "p" denied the request: request ${String(tries)}`);
  };
  await makeTask('task-full');
  const message = 'The cluster refuses to create the Job: admission webhook "p" denied the request: request 1';
  await until(() => expect(condition('task-full', 'Ready')).toMatchObject({ reason: 'PodRefused', message }));
  await sleep(300);
  // What is written of the run and of its task wakes it once each.
  expect(tries).toBeLessThanOrEqual(4);
  expect(condition('task-full', 'Ready')?.message).toBe(message);
});
