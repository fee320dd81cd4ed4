// The work of the controller for one app beside many others of its space: what its caches hand out, and its requests, do not grow with the others.

import { afterEach, expect, test, vi } from 'vitest';
import { Store } from '../../../src/controller/runtime/store.ts';
import { configMapType, secretType, serviceType, statefulSetType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { KubeObject } from '../../../src/lib/api/object.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { processGuid } from '../../../src/lib/api/names.ts';
import { ns, appGuid, startRunScene, type RunScene } from './run-scene.ts';
import { settled } from './settled.ts';

let scene: RunScene;
afterEach(async () => {
  vi.restoreAllMocks();
  await scene.stop();
});

/** What other apps own beside their processes and routes: no reconciler of the scene works on it, but a look at all of a kind would meet it. */
async function addOwned(name: string): Promise<void> {
  const { cluster } = scene;
  const process = processGuid(name, 'web');
  const own = { namespace: ns, labels: { [labels.appGuid]: name, [labels.processGuid]: process } };
  const of = { appRef: { name } };
  const lifecycle = { type: 'docker' as const, data: { stack: '' } };
  await cluster.create(kinds.package, { metadata: { ...own, name: `${name}-package` }, spec: { ...of, type: 'docker' } });
  await cluster.create(kinds.build, {
    metadata: { ...own, name: `${name}-build` },
    spec: { ...of, packageRef: { name: `${name}-package` }, stagingMemoryMB: 64, stagingDiskMB: 64, lifecycle },
  });
  await cluster.create(kinds.task, { metadata: { ...own, name: `${name}-task` }, spec: { ...of, command: 'true' } });
  // Of another runner, and of a process that is gone: nobody makes a set of it, and nobody takes it away.
  await cluster.create(kinds.appWorkload, {
    metadata: { ...own, name: `${name}-workload` },
    spec: { GUID: `${process}-gone`, appGUID: name, processType: 'web', version: '1', image: 'good:1', instances: 0, runnerName: 'other' },
  });
  const template = { metadata: { labels: own.labels }, spec: { containers: [] } };
  await cluster.create(statefulSetType, {
    metadata: { ...own, name: `${name}-set` },
    spec: { replicas: 0, selector: { matchLabels: own.labels }, template },
  });
  await cluster.create(podType, { metadata: { ...own, name: `${name}-set-0` }, spec: { containers: [] }, status: { phase: 'Running' } });
  await cluster.create(serviceType, { metadata: { ...own, name: `${name}-service` }, spec: {} });
}

/** Adds stopped apps, each with a process, a route, and objects of all kinds that belong to apps. */
async function addApps(howMany: number): Promise<void> {
  const { cluster } = scene;
  for (let index = 0; index < howMany; index += 1) {
    const name = `other-${String(index)}`;
    const of = { namespace: ns, labels: { [labels.appGuid]: name } };
    await cluster.create(secretType, { metadata: { ...of, name: `${name}-env` }, data: {} });
    await cluster.create(kinds.app, {
      metadata: { ...of, name },
      spec: {
        displayName: name,
        desiredState: 'STOPPED',
        lifecycle: { type: 'docker', data: { stack: '' } },
        envSecretName: `${name}-env`,
      },
    });
    await cluster.create(kinds.process, {
      metadata: { ...of, name: processGuid(name, 'web') },
      spec: {
        appRef: { name },
        processType: 'web',
        desiredInstances: 1,
        memoryMB: 64,
        diskQuotaMB: 64,
        healthCheck: { type: 'process', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } },
      },
    });
    await cluster.create(kinds.route, {
      metadata: { name: `${name}-route`, namespace: ns },
      spec: {
        host: name,
        domainRef: { name: 'domain-1', namespace: 'cf' },
        destinations: [{ guid: `${name}-dest`, appRef: { name }, processType: 'web' }],
      },
    });
    await addOwned(name);
  }
}

interface Work {
  /** Objects that the caches have handed out. */
  objects: number;
  requests: number;
}

async function workOf(act: () => Promise<void>): Promise<Work> {
  const work = { objects: 0, requests: 0 };
  const { list, by } = Store.prototype;
  vi.spyOn(Store.prototype, 'list').mockImplementation(function (this: Store<never>, namespace) {
    const found = list.call(this, namespace);
    work.objects += found.length;
    return found as never[];
  });
  vi.spyOn(Store.prototype, 'by').mockImplementation(function (this: Store<never>, index, value) {
    const found = by.call(this, index, value);
    work.objects += found.length;
    return found as never[];
  });
  scene.cluster.intercept = () => void (work.requests += 1);
  await act();
  await settled(scene.cluster);
  vi.restoreAllMocks();
  scene.cluster.intercept = () => undefined;
  return work;
}

const many = 300;

async function measured(others: number): Promise<{ label: Work; push: Work }> {
  scene = await startRunScene({ eventPauseMs: 50 });
  await addApps(others);
  await scene.deploy('good:1');
  await scene.until(() => expect(scene.app()?.status?.deployment?.phase).toBe('Serving'));
  await settled(scene.cluster);
  const label = await workOf(() => scene.patchApp({ metadata: { labels: { 'example.com/some': 'thing' } } }));
  const push = await workOf(async () => {
    const id = await scene.deploy('good:2');
    await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  });
  return { label, push };
}

test(`a change and a push of one app cost the same beside ${String(many)} others`, async () => {
  const alone = await measured(0);
  await scene.stop();
  const beside = await measured(many);
  expect(scene.cluster.all(kinds.app)).toHaveLength(many + 1);
  // Whoever looks at all of a kind meets them: nobody has removed them.
  for (const type of [kinds.appWorkload, statefulSetType, podType, kinds.build, kinds.task, kinds.package, serviceType])
    expect(scene.cluster.all<KubeObject>(type).length, type.kind).toBeGreaterThanOrEqual(many);
  expect(scene.cluster.peek(configMapType, ns, `${appGuid}-revisions`)).toBeDefined();
  // A single look at all others would add their number; the number of looks while a push waits differs a little.
  expect(beside.label.objects - alone.label.objects).toBeLessThan(many / 2);
  expect(beside.push.objects - alone.push.objects).toBeLessThan(many / 2);
  expect(beside.label.requests - alone.label.requests).toBeLessThan(many / 10);
  expect(beside.push.requests - alone.push.requests).toBeLessThan(many / 10);
});
