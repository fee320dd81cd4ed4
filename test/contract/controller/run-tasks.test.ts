// Tasks on a cluster in memory: the values that a CFTask fixes when it begins, the Job that runs it once, and how its end is reported.

import { beforeEach, describe, expect, test } from 'vitest';
import { jobType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { info } from './build-scene.ts';
import { isElection, settled } from './settled.ts';
import {
  areTrue,
  cluster,
  condition,
  ended,
  endJob,
  givePod,
  job,
  jobsMade,
  makeApp,
  makeTask,
  ns,
  releasedTask,
  startController,
  stop,
  task,
  until,
  useTaskScene,
} from './task-scene.ts';

useTaskScene();

const workloadSpec = { command: ['x'], image: 'shop:1', imagePullSecrets: [], env: [], resources: {} };

describe('a task that begins', () => {
  test('gets its number, its sizes and its droplet, and runs once with the environment of the app', async () => {
    await makeApp();
    await makeTask('task-1', { command: 'rake db:migrate' });
    await until(() => expect(condition('task-1', 'Started')?.status).toBe('True'));
    const { memoryMB, diskQuotaMB } = info.processDefaults;
    expect(task('task-1')?.status).toMatchObject({ sequenceId: 1, memoryMB, diskQuotaMB, dropletRef: { name: 'build-1' } });
    expect(condition('task-1', 'Initialized')?.status).toBe('True');
    const { spec, metadata } = job('task-1') ?? {};
    expect(metadata?.ownerReferences?.[0]).toMatchObject({ kind: 'TaskWorkload', name: 'task-1' });
    expect(spec).toMatchObject({ backoffLimit: 0, completions: 1, template: { spec: { restartPolicy: 'Never' } } });
    const [container] = spec?.template.spec.containers ?? [];
    expect(container).toMatchObject({
      name: 'workload',
      image: 'shop:1',
      command: ['/bin/sh', '-c', 'rake db:migrate'],
      resources: { limits: { memory: `${String(memoryMB)}Mi`, 'ephemeral-storage': `${String(diskQuotaMB)}Mi` } },
    });
    expect(container?.env).toContainEqual({ name: 'COLOUR', valueFrom: { secretKeyRef: { name: 'env', key: 'COLOUR' } } });
    expect(jobsMade()).toEqual(['task-1']);
  });

  test('gets the default for a missing size, because a limit of 0 would mean no limit', async () => {
    await makeApp();
    await cluster.mergePatch(kinds.process, ns, 'worker', { spec: { memoryMB: 0 } });
    await makeTask('no-size', { command: 'rake', processType: 'worker', memoryMB: 0, diskMB: 0 });
    await until(() => expect(job('no-size')).toBeDefined());
    const { memoryMB } = info.processDefaults;
    expect(task('no-size')?.status).toMatchObject({ memoryMB, diskQuotaMB: 512 });
    const limits = job('no-size')?.spec?.template.spec.containers[0]?.resources?.limits;
    expect(limits).toEqual({ memory: `${String(memoryMB)}Mi`, 'ephemeral-storage': '512Mi' });
  });

  test('takes command and sizes from the process type that it names, with priority for its own sizes, and starts through the launcher of a droplet', async () => {
    await makeApp('buildpack');
    await makeTask('of-process', { processType: 'worker' });
    await makeTask('own-sizes', { processType: 'worker', memoryMB: 32, diskMB: 128 });
    await until(() => expect([job('of-process'), job('own-sizes')]).not.toContain(undefined));
    expect(task('of-process')?.status).toMatchObject({ memoryMB: 64, diskQuotaMB: 512 });
    expect(task('own-sizes')?.status).toMatchObject({ memoryMB: 32, diskQuotaMB: 128 });
    const container = (name: string) => job(name)?.spec?.template.spec.containers[0];
    expect(container('of-process')?.command).toEqual(['/cnb/lifecycle/launcher', 'work --hard']);
    expect(container('own-sizes')?.resources?.limits).toEqual({ memory: '32Mi', 'ephemeral-storage': '128Mi' });
    const env = container('own-sizes')?.env;
    expect(env).toContainEqual({ name: 'MEMORY_LIMIT', value: '32m' });
    expect(env).toContainEqual({ name: 'HOME', value: '/workspace' });
    const secretKeyRef = { name: 'app-vcap-services', key: 'DATABASE_URL', optional: true };
    expect(env).toContainEqual({ name: 'DATABASE_URL', valueFrom: { secretKeyRef } });
  });

  test('gets the variables of an instance, as in cf without index and port, and no folder of bindings without a service', async () => {
    await makeApp();
    await makeTask('plain');
    await until(() => expect(job('plain')).toBeDefined());
    const { containers, volumes } = job('plain')?.spec?.template.spec ?? {};
    const env = containers?.[0]?.env ?? [];
    const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } });
    expect(env.filter(({ name }) => /INSTANCE|PORT|POD_NAME|BINDING_ROOT/.test(name))).toEqual([
      field('POD_NAME', 'metadata.name'),
      field('CF_INSTANCE_GUID', 'metadata.uid'),
      field('CF_INSTANCE_IP', 'status.hostIP'),
      field('CF_INSTANCE_INTERNAL_IP', 'status.podIP'),
      { name: 'INSTANCE_GUID', value: '$(CF_INSTANCE_GUID)' },
      { name: 'CF_INSTANCE_PORT', value: '' },
      { name: 'CF_INSTANCE_ADDR', value: '' },
      { name: 'CF_INSTANCE_PORTS', value: '[]' },
    ]);
    expect([volumes, containers?.[0]?.volumeMounts]).toEqual([undefined, undefined]);
  });

  test('gets the files of the bindings of its app, also of one that was made a moment before', async () => {
    await makeApp();
    await cluster.create(kinds.serviceBinding, {
      metadata: { name: 'bound', namespace: ns },
      spec: { type: 'app', appRef: { name: 'app' }, service: { kind: 'CFServiceInstance', name: 'db' }, parameters: { name: '' } },
    });
    await makeTask('with-files');
    await until(() => expect(condition('with-files', 'Ready')?.reason).toBe('BindingNotReady'));
    expect(job('with-files')).toBeUndefined();
    const serviceBindings = [{ guid: 'bound', name: 'db', secret: 'db-files' }];
    await cluster.mergePatch(kinds.app, ns, 'app', { status: { serviceBindings } }, { subresource: 'status' });
    await until(() => expect(job('with-files')).toBeDefined());
    const { containers, volumes } = job('with-files')?.spec?.template.spec ?? {};
    // A binding that is removed before the pod starts does not keep it from starting.
    expect(volumes).toEqual([{ name: 'binding-0', secret: { secretName: 'db-files', defaultMode: 0o644, optional: true } }]);
    expect(containers?.[0]?.volumeMounts).toEqual([{ name: 'binding-0', mountPath: '/bindings/db', readOnly: true }]);
    expect(containers?.[0]?.env).toContainEqual({ name: 'SERVICE_BINDING_ROOT', value: '/bindings' });
  });

  test('waits for the variables of its app, and does not run as if it had none', async () => {
    await makeApp();
    await cluster.delete(secretType, ns, 'env');
    await makeTask('lost');
    await until(() => expect(condition('lost', 'Ready')).toMatchObject({ status: 'False', reason: 'EnvironmentLost' }));
    expect(condition('lost', 'Ready')?.message).toMatch(/^The Secret 'env' with the app's environment variables is missing, /);
    expect([cluster.peek(kinds.taskWorkload, ns, 'lost'), jobsMade()]).toEqual([undefined, []]);
    await cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: { COLOUR: 'cmVk' } });
    await cluster.mergePatch(kinds.app, ns, 'app', { metadata: { annotations: { looked: 'again' } } });
    await until(() => expect(job('lost')).toBeDefined());
    const variable = { name: 'COLOUR', valueFrom: { secretKeyRef: { name: 'env', key: 'COLOUR' } } };
    expect(job('lost')?.spec?.template.spec.containers[0]?.env).toContainEqual(variable);
  });

  test('of an app with more variables than a process can start with is not made, says so, and runs when they are fewer', async () => {
    await makeApp();
    const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`V${index}`, 'eA==']));
    await cluster.mergePatch(secretType, ns, 'env', { data: many });
    await makeTask('large');
    await until(() => expect(condition('large', 'Ready')).toMatchObject({ status: 'False', reason: 'EnvironmentTooLarge' }));
    expect(condition('large', 'Ready')?.message).toMatch(/^The app has 10\d\d environment variables; at most 1000 are possible\.$/);
    expect([cluster.peek(kinds.taskWorkload, ns, 'large'), jobsMade()]).toEqual([undefined, []]);
    await cluster.mergePatch(secretType, ns, 'env', { data: Object.fromEntries(Object.keys(many).map((key) => [key, null])) });
    await cluster.mergePatch(kinds.app, ns, 'app', { metadata: { annotations: { looked: 'again' } } });
    await until(() => expect(job('large')).toBeDefined());
  });

  test('of an app without a Secret for variables begins without any, and asks for no Secret without a name', async () => {
    const read: string[] = [];
    cluster.intercept = (verb, type, name) => void (verb === 'get' && type === secretType && read.push(name));
    await makeApp('docker', { envSecretName: '' });
    await makeTask('bare');
    await until(() => expect(job('bare')).toBeDefined());
    expect(read).not.toContain('');
  });

  test('gives its name for people to its pod, for log lines', async () => {
    await makeApp();
    await makeTask('named', { command: 'rake', displayName: 'Night run' });
    await makeTask('unnamed', { command: 'rake', displayName: '' });
    await until(() => expect([job('named'), job('unnamed')]).not.toContain(undefined));
    const notes = (name: string) => job(name)?.spec?.template.metadata?.annotations;
    expect([notes('named'), notes('unnamed')]).toEqual([{ 'kf.cloudfoundry.org/task-name': 'Night run' }, {}]);
  });

  test('does not end by what an earlier task of its name has left, and runs when that is gone', async () => {
    await makeApp();
    const ownerReferences = [{ apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFTask', name: 'again', uid: 'earlier' }];
    const left = await cluster.create(kinds.taskWorkload, {
      metadata: { name: 'again', namespace: ns, ownerReferences },
      spec: workloadSpec,
    });
    const conditions = areTrue('Started', 'Succeeded');
    await cluster.mergePatch(kinds.taskWorkload, ns, 'again', { status: { conditions } }, { subresource: 'status' });
    await makeTask('again');
    await until(() => expect(condition('again', 'Ready')?.reason).toBe('TaskWorkloadLeft'));
    expect([condition('again', 'Succeeded'), jobsMade()]).toEqual([undefined, []]);
    await cluster.delete(kinds.taskWorkload, ns, 'again', { uid: left.metadata.uid });
    await until(() => expect(condition('again', 'Started')?.status).toBe('True'));
    expect(jobsMade()).toEqual(['again']);
  });

  test('gets the next number of its app', async () => {
    await makeApp();
    for (const name of ['a', 'b', 'c']) {
      await makeTask(name);
      await until(() => expect(task(name)?.status?.sequenceId).toBeDefined());
    }
    expect(['a', 'b', 'c'].map((name) => task(name)?.status?.sequenceId)).toEqual([1, 2, 3]);
  });

  test('belongs to its app and is deleted with it, also while it waits for a droplet', async () => {
    await makeApp('docker', { currentDropletRef: { name: '' } });
    await makeTask('early');
    const uid = cluster.peek(kinds.app, ns, 'app')?.metadata.uid;
    await until(() =>
      expect(task('early')?.metadata.ownerReferences).toMatchObject([{ kind: 'CFApp', name: 'app', uid, controller: true }]),
    );
    await cluster.delete(kinds.app, ns, 'app');
    await until(() => expect(task('early')).toBeUndefined());
  });

  test('waits for a droplet, reports it, and begins when there is one', async () => {
    await makeApp('docker', { currentDropletRef: { name: '' } });
    await makeTask('early');
    await until(() => expect(condition('early', 'Ready')).toMatchObject({ status: 'False', reason: 'AppCurrentDropletRefNotSet' }));
    expect(jobsMade()).toEqual([]);
    await cluster.mergePatch(kinds.app, ns, 'app', { spec: { currentDropletRef: { name: 'build-1' } } });
    await until(() => expect(condition('early', 'Started')?.status).toBe('True'));
  });
});

describe('the start of a task', () => {
  /** The verb and the kind of each write, with what was said. */
  const order = (): string[] =>
    cluster.writes.flatMap(({ verb, kind, body }) => {
      const text = JSON.stringify(body ?? {});
      if (kind === 'Event') return [];
      if (kind === 'Job') return verb === 'create' ? ['Job waits'] : text.includes('"suspend":false') ? ['Job runs'] : [];
      const isStarted = text.includes('"type":"Started","status":"True"') || text.includes('JobStarted');
      return isStarted ? [`${kind} started`] : [];
    });

  test('is recorded at the workload and at the task before the command can run', async () => {
    await releasedTask('task-1');
    expect([...new Set(order())]).toEqual(['Job waits', 'TaskWorkload started', 'CFTask started', 'Job runs']);
    expect(job('task-1')?.spec).toMatchObject({ backoffLimit: 0 });
  });

  const released = (name: string): number =>
    cluster.writes.filter((write) => write.kind === 'Job' && write.name === name && JSON.stringify(write.body).includes('"suspend":false'))
      .length;

  /** All writes for the task fail from that one on, the creation of the task itself not counted. */
  function failWritesFrom(first: number, task: string): void {
    let count = 0;
    cluster.intercept = (verb, type, name) => {
      if (name !== task || ['get', 'list', 'watch'].includes(verb) || (verb === 'create' && type.plural === kinds.task.plural)) return;
      count += 1;
      if (count > first) throw new Error('killed');
    };
  }

  const cases = [
    ...([2, 3, 4, 5, 6] as const).map((writes) => ['Job', writes] as const),
    ...([2, 3, 4, 5, 6] as const).map((writes) => ['TaskWorkload', writes] as const),
  ];
  test.each(cases)('happens once when the %s is deleted and the controller is killed after %i writes', async (kind, writes) => {
    // prettier-ignore
    await makeApp();
    failWritesFrom(writes, 'task-1');
    await makeTask('task-1');
    await settled(cluster);
    await stop();
    const before = released('task-1');
    cluster.intercept = () => undefined;
    const type = kind === 'Job' ? jobType : kinds.taskWorkload;
    if (cluster.peek(type as typeof jobType, ns, 'task-1') !== undefined) await cluster.delete(type, ns, 'task-1');
    startController('two');
    await until(() => expect([released('task-1') === 1, condition('task-1', 'Failed')?.status === 'True']).toContain(true));
    await settled(cluster);
    expect(released('task-1')).toBeLessThanOrEqual(1);
    if (before === 1) expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True' });
  });
});

describe('a task that ends', () => {
  beforeEach(async () => {
    await makeApp();
    await makeTask('task-1');
    await until(() => expect(job('task-1')).toBeDefined());
  });

  test('with exit code 0 has Succeeded, and nothing more is written', async () => {
    await givePod('task-1', ended(0, 'Completed'), 'Succeeded');
    await endJob('task-1', 'Complete');
    await until(() => expect(condition('task-1', 'Succeeded')).toMatchObject({ status: 'True', reason: 'JobSucceeded' }));
    expect(condition('task-1', 'Failed')?.status).not.toBe('True');
    await settled(cluster);
    const before = cluster.writes.length;
    await settled(cluster);
    expect(cluster.writes.slice(before).filter((write) => !isElection(write))).toEqual([]);
  });

  test('has its status written before its Job, with the pod and its log, gets six hours to its deletion', async () => {
    expect(job('task-1')?.spec).not.toHaveProperty('ttlSecondsAfterFinished');
    await givePod('task-1', ended(0, 'Completed'), 'Succeeded');
    await endJob('task-1', 'Complete');
    await until(() => expect(job('task-1')?.spec?.ttlSecondsAfterFinished).toBe(21_600));
    const writes = cluster.writes.map(({ kind, body }) => [kind, JSON.stringify(body)] as const);
    const written = writes.findIndex(([kind, body]) => kind === 'TaskWorkload' && body.includes('JobSucceeded'));
    expect(written).toBeGreaterThan(-1);
    expect(writes.findIndex(([kind, body]) => kind === 'Job' && body.includes('ttlSecondsAfterFinished'))).toBeGreaterThan(written);
    // As the cluster does when the time has passed.
    await cluster.delete(jobType, ns, 'task-1');
    await settled(cluster);
    expect(condition('task-1', 'Succeeded')).toMatchObject({ status: 'True', reason: 'JobSucceeded' });
    expect(condition('task-1', 'Failed')?.status).not.toBe('True');
  });

  test('with another exit code has Failed with it', async () => {
    await givePod('task-1', ended(7, 'Error'), 'Failed');
    await endJob('task-1', 'Failed', 'BackoffLimitExceeded');
    await until(() =>
      expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True', reason: 'Error', message: 'Failed with exit code: 7' }),
    );
    expect(condition('task-1', 'Succeeded')?.status).not.toBe('True');
    expect(condition('task-1', 'Ready')?.status).toBe('True');
  });

  test('has Failed if its image does not exist, and leaves no Job that waits for ever', async () => {
    await givePod('task-1', { waiting: { reason: 'ErrImagePull', message: 'shop:1: not found' } }, 'Pending');
    await until(() => expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True', reason: 'ImagePull' }));
    expect(condition('task-1', 'Failed')?.message).toContain('shop:1');
    await until(() => expect(job('task-1')).toBeUndefined());
  });

  test('because its image does not exist leaves no Job, whose command would run later, also when its deletion fails at first', async () => {
    let failures = 0;
    cluster.intercept = (verb, type) => {
      if (verb !== 'delete' || type.plural !== jobType.plural || failures > 0) return;
      failures += 1;
      throw new Error('connection reset');
    };
    await givePod('task-1', { waiting: { reason: 'ErrImagePull', message: 'shop:1: not found' } }, 'Pending');
    await until(() => expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True', reason: 'ImagePull' }));
    await until(() => expect(job('task-1')).toBeUndefined());
    expect(failures).toBe(1);
  });

  test.each(['Job', 'TaskWorkload'] as const)('because its %s was deleted has failed and never runs again', async (kind) => {
    await until(() => expect(condition('task-1', 'Started')?.status).toBe('True'));
    await cluster.delete(kind === 'Job' ? jobType : kinds.taskWorkload, ns, 'task-1');
    await until(() => expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True', reason: `${kind}Deleted` }));
    await settled(cluster);
    expect([job('task-1'), jobsMade()]).toEqual([undefined, ['task-1']]);
  });

  test('because its user cancels it is deleted with its Job', async () => {
    await cluster.mergePatch(kinds.task, ns, 'task-1', { spec: { canceled: true } });
    await until(() => expect(condition('task-1', 'Canceled')).toMatchObject({ status: 'True', reason: 'TaskCanceled' }));
    expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True', reason: 'TaskCanceled' });
    await until(() => expect([cluster.peek(kinds.taskWorkload, ns, 'task-1'), job('task-1')]).toEqual([undefined, undefined]));
  });
});

describe('a task without its app', () => {
  const longAgo = new Date(Date.now() - 11 * 60_000).toISOString();

  test('waits for an app that may still be created, and runs then', async () => {
    await makeTask('task-1');
    await until(() => expect(condition('task-1', 'Ready')).toMatchObject({ status: 'False', reason: 'AppNotFound' }));
    await makeApp();
    await until(() => expect(condition('task-1', 'Initialized')?.status).toBe('True'));
  });

  test('has failed after ten minutes, so that it does not count in the quota for ever', async () => {
    await makeTask('task-1');
    await until(() => expect(condition('task-1', 'Ready')?.reason).toBe('AppNotFound'));
    await cluster.mergePatch(kinds.task, ns, 'task-1', { metadata: { creationTimestamp: longAgo } });
    await until(() => expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True', reason: 'AppNotFound' }));
    expect(condition('task-1', 'Failed')?.message).toBe("The app 'app' does not exist.");
  });

  test('ends at once if it is cancelled', async () => {
    await makeTask('task-1', { command: 'rake', canceled: true });
    await until(() => expect(condition('task-1', 'Failed')).toMatchObject({ status: 'True', reason: 'TaskCanceled' }));
  });
});
