import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { leaseType, nodeType, secretType, serviceType, statefulSetType } from '../../../src/lib/api/core.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { httpRouteType, mainBackends, revisionOf } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { processGuid } from '../../../src/lib/api/names.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import { readyPods } from './run-node.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';
import { isElection, settled } from './settled.ts';

let scene: RunScene;
afterEach(async () => {
  vi.restoreAllMocks();
  await scene.stop();
});

const phase = () => scene.app()?.status?.deployment?.phase;
const deployment = () => scene.app()?.status?.deployment;
const serving = async (id: string): Promise<void> => scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Serving' }));
const text = (base64: string | undefined): string => Buffer.from(base64 ?? '', 'base64').toString('utf8');
const webImages = () => scene.cluster.all(statefulSetType).map((set) => set.spec?.template.spec.containers[0]?.image);

/** The pods of a process, found from the pod by owners: StatefulSet, workload, process. */
function podsBelow(process: string): Pod[] {
  const ownerOf = (object: KubeObject | undefined): string => object?.metadata.ownerReferences?.[0]?.name ?? '';
  return scene.cluster
    .all(podType)
    .filter(
      (pod) =>
        ownerOf(scene.cluster.peek(kinds.appWorkload, ns, ownerOf(scene.cluster.peek(statefulSetType, ns, ownerOf(pod))))) === process,
    );
}

/** The objects that a label selector of equalities finds; none without a selector. */
function selectedBy(selector: string | undefined): Pod[] {
  const wanted = (selector ?? 'none=none').split(',').map((term) => term.split('='));
  return scene.cluster.all(podType).filter(({ metadata }) => wanted.every(([key = '', value]) => metadata.labels?.[key] === value));
}

/** Checks until it is ended that every version with traffic has an instance that answers. */
function guardService(): { broken: string[]; end: () => void } {
  const broken: string[] = [];
  const look = (): void => {
    const rules = scene.cluster.peek(httpRouteType, ns, 'route-1')?.spec?.rules ?? [];
    for (const { name, weight } of rules.at(-2)?.backendRefs ?? []) {
      const generation = name.slice(-10);
      if ((weight ?? 0) > 0 && readyPods(scene.cluster, generation) === 0) broken.push(generation);
    }
  };
  const timer = setInterval(look, 2);
  return { broken, end: () => clearInterval(timer) };
}

describe('an app behind a route', () => {
  test('starts, gets its environment, and serves when a request through the gateway was answered', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const app = scene.app();
    expect(app?.status).toMatchObject({ actualState: 'STARTED', vcapServicesSecretName: `${appGuid}-vcap-services` });
    expect(app?.metadata.labels).toMatchObject({ 'korifi.cloudfoundry.org/deployment-status': 'FINALIZED' });
    expect(deployment()?.generations).toMatchObject([{ process: 'web', state: 'Current', instances: 1, ready: 1, verified: true }]);
    const workload = scene.cluster.all(kinds.appWorkload)[0];
    const frozen = scene.cluster.peek(secretType, ns, `${workload?.metadata.name ?? ''}-env`);
    expect(frozen).toMatchObject({ immutable: true });
    expect(text(frozen?.data?.['COLOUR'])).toBe('red');
    const env = workload?.spec.env?.find(({ name }) => name === 'VCAP_APPLICATION')?.value ?? '';
    expect(JSON.parse(env.replace('$(CF_INSTANCE_INDEX)', '2').replace('$(CF_INSTANCE_GUID)', 'g'))).toMatchObject({
      application_id: appGuid, application_uris: ['shop.apps.example'], instance_index: 2, port: 8080, process_type: 'web',
      cf_api: 'https://kubernetes.default.svc',
    }); // prettier-ignore
    const shown = text(scene.cluster.peek(secretType, ns, `${appGuid}-vcap-application`)?.data?.['VCAP_APPLICATION']);
    const { memoryMB, diskQuotaMB } = scene.cluster.peek(kinds.process, ns, workload?.spec.GUID ?? '')?.spec ?? {};
    expect(Object.keys(JSON.parse(shown) as object)).toEqual([
      'application_id', 'application_name', 'application_uris', 'application_version', 'cf_api', 'limits', 'name',
      'organization_id', 'organization_name', 'space_id', 'space_name', 'uris', 'users', 'version',
    ]); // prettier-ignore
    expect(JSON.parse(shown)).toMatchObject({ limits: { fds: 16_384, mem: memoryMB, disk: diskQuotaMB }, users: null });
    expect(scene.cluster.peek(kinds.route, ns, 'route-1')?.status).toMatchObject({ fqdn: 'shop.apps.example', uri: 'shop.apps.example' });
  });

  test('changes its version without a failed request', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const guard = guardService();
    await serving(await scene.deploy('good:2'));
    expect(webImages()).toContain('good:1');
    await scene.until(() => expect(webImages()).toEqual(['good:2']));
    guard.end();
    expect(guard.broken).toEqual([]);
    await scene.until(() => expect(scene.cluster.all(serviceType)).toHaveLength(1));
  });

  test('reports Serving only when the gateway has had the time to load the change', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const before = scene.cluster.all(kinds.appWorkload)[0]?.metadata.labels?.[labels.generation] ?? '';
    const clock = vi.spyOn(Date, 'now');
    let switchedAt = 0;
    // The clock stops at the write that moves the last requests away from the old version.
    scene.cluster.intercept = (_verb, type) => {
      const asked = scene.web()?.status?.serving ?? before;
      if (switchedAt > 0 || type.plural !== httpRouteType.plural || new RegExp(`${before}(?!=0)`).test(asked)) return;
      switchedAt = Date.now();
      clock.mockReturnValue(switchedAt);
    };
    await scene.deploy('good:2');
    await scene.until(() => expect(switchedAt).toBeGreaterThan(0));
    /** Lets the controller reconcile the app once more, and returns the message of the status. */
    const askedAgain = async (id: string): Promise<string | undefined> => {
      await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: id } } });
      await scene.until(() => expect(deployment()?.id).toBe(id));
      return phase();
    };
    expect(await askedAgain('at-once')).not.toBe('Serving');
    clock.mockReturnValue(switchedAt + 499);
    expect(await askedAgain('too-early')).not.toBe('Serving');
    clock.mockReturnValue(switchedAt + 10_000);
    await scene.until(() => expect(phase()).toBe('Serving'));
  });

  test('does not report Serving while the gateway names an earlier form of the route, however long that takes', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const clock = vi.spyOn(Date, 'now');
    const programmed = () => scene.cluster.peek(kinds.route, ns, 'route-1')?.status?.conditions?.find(({ type }) => type === 'Programmed');
    const loadsLate = async (image: string): Promise<void> => {
      scene.freezeGateway(true);
      await scene.deploy(image);
      // Its answers to the probe are those of the new version, but for all other requests it names the form that it has loaded.
      await scene.until(() => expect(deployment()?.message).toBe('Waiting for all routes to lead to the new version.'));
      clock.mockReturnValue(Date.now() + 16_000);
      await scene.until(() => expect(programmed()).toMatchObject({ status: 'False', reason: 'NotLoaded' }));
      await settled(scene.cluster);
      clock.mockReturnValue(Date.now() + 16_000);
      await settled(scene.cluster);
      expect(phase()).toBe('Starting');
    };
    await loadsLate('good:2');
    // A result for the previous form does not apply to the next one.
    await loadsLate('good:3');
    scene.freezeGateway(false);
    clock.mockReturnValue(Date.now() + 16_000);
    await scene.until(() => expect(phase()).toBe('Serving'));
    expect(programmed()).toMatchObject({ status: 'True', reason: 'Loaded' });
  });

  test('keeps the old version if the new one crashes, and shows the cause with its last lines', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const guard = guardService();
    const id = await scene.deploy('crash:1');
    await scene.until(() =>
      expect(deployment()).toMatchObject({ id, phase: 'Failed', reason: 'Crashed', exitCode: 3, logTail: ['no database'] }),
    );
    await scene.until(() => expect(scene.cluster.all(podType).map(({ spec }) => spec?.containers[0]?.image)).toEqual(['good:1']));
    await sleep(100);
    guard.end();
    expect(guard.broken).toEqual([]);
    expect(deployment()?.phase).toBe('Failed');
    await serving(await scene.deploy('good:3'));
    await scene.until(() => expect(webImages()).toEqual(['good:3']));
  });

  test('keeps its result across a restart of the controller, and nothing starts again', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const id = await scene.deploy('crash:1');
    await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Failed' }));
    await scene.until(() => expect(scene.cluster.all(podType)).toHaveLength(1));
    const pods = scene.cluster.all(podType).map(({ metadata }) => metadata.uid);
    await scene.until(() => {
      const programmed = scene.cluster.peek(kinds.route, ns, 'route-1')?.status?.conditions?.find(({ type }) => type === 'Programmed');
      expect(programmed?.message).toContain(revisionOf(scene.cluster.peek(httpRouteType, ns, 'route-1')) ?? 'none');
    });
    await settled(scene.cluster);
    const before = scene.cluster.writes.length;
    await scene.restartController();
    await scene.until(() => expect(scene.cluster.peek(leaseType, 'kf-system', 'kf-controller')?.spec?.holderIdentity).toBe('two'));
    await settled(scene.cluster);
    expect(scene.cluster.all(podType).map(({ metadata }) => metadata.uid)).toEqual(pods);
    expect(deployment()).toMatchObject({ id, phase: 'Failed', logTail: ['no database'] });
    expect(scene.cluster.writes.slice(before).filter((write) => !isElection(write) && write.kind !== 'Pod')).toEqual([]);
  });

  test('serves with the last version that served after a failed update, a stop and a start, with a message', async () => {
    for (const routed of [true, false]) {
      scene = await startRunScene({ routed });
      await serving(await scene.deploy('good:1'));
      await scene.until(() => expect(scene.web()?.status?.rollout?.generations).toMatchObject([{ served: true }]));
      const failed = await scene.deploy('crash:1');
      await scene.until(() => expect(deployment()).toMatchObject({ id: failed, phase: 'Failed' }));
      // Who wrote the kept log stays known, so that no line is shown twice while it can be read.
      const kept = { pod: deployment()?.pod, logTail: ['no database'] };
      expect(kept.pod).toMatch(/-0$/);
      await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'stop' } }, spec: { desiredState: 'STOPPED' } });
      await scene.until(() => expect(deployment()).toMatchObject({ id: 'stop', phase: 'Stopped', ...kept }));
      await scene.restartController();
      await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'start' } }, spec: { desiredState: 'STARTED' } });
      await scene.until(() => expect(deployment()).toMatchObject({ id: 'start', phase: 'Failed', reason: 'Crashed' }));
      expect(deployment()?.message).toContain('The version that served last is started in its place.');
      const images = () => scene.cluster.all(podType).map(({ spec, status }) => [spec?.containers[0]?.image, status?.phase]);
      await scene.until(() => expect(images()).toEqual([['good:1', 'Running']]));
      await serving(await scene.deploy('good:2'));
      await scene.until(() => expect(webImages()).toEqual(['good:2']));
      if (routed) await scene.stop();
    }
  });

  test('a first version that crashes is reported, stays, and is replaced by a good one', async () => {
    scene = await startRunScene();
    const id = await scene.deploy('crash:1');
    await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Failed', reason: 'Crashed' }));
    expect(scene.cluster.all(podType)).toHaveLength(1);
    await serving(await scene.deploy('good:1'));
    await scene.until(() => expect(webImages()).toEqual(['good:1']));
  });

  test('with the same droplet and settings keeps its generation: a new deploy id starts nothing', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const pods = scene.cluster.all(podType).map(({ metadata }) => metadata.uid);
    await serving(await scene.deploy('good:1'));
    expect(scene.cluster.all(podType).map(({ metadata }) => metadata.uid)).toEqual(pods);
    expect(scene.cluster.all(kinds.appWorkload)).toHaveLength(1);
  });
});

describe('frozen data', () => {
  test('a changed environment does not reach running instances until a new revision asks for it', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    await scene.cluster.mergePatch(secretType, ns, 'env', { data: { COLOUR: Buffer.from('blue').toString('base64') } });
    const [set] = scene.cluster.all(statefulSetType);
    await scene.cluster.delete(statefulSetType, ns, set?.metadata.name ?? '');
    await scene.until(() => {
      const [again] = scene.cluster.all(statefulSetType);
      expect(again).toBeDefined();
      expect(again?.metadata.uid).not.toBe(set?.metadata.uid);
    });
    expect(scene.cluster.all(statefulSetType)[0]?.spec).toEqual(set?.spec);
    const colours = () =>
      scene.cluster
        .all(secretType)
        .filter(({ immutable, metadata }) => immutable && metadata.ownerReferences?.[0]?.kind === 'AppWorkload')
        .map(({ data }) => text(data?.['COLOUR']));
    expect(colours()).toEqual(['red']);
    await serving(await scene.deploy('good:1', { rev: '1' }));
    await scene.until(() => expect(colours()).toEqual(['blue']));
  });

  test('a generation that was only partly made is made again', async () => {
    scene = await startRunScene();
    let cut = true;
    scene.cluster.intercept = async (verb, type, name) => {
      if (!cut || verb !== 'create' || type.kind !== 'Secret' || !name.endsWith('-env')) return;
      cut = false;
      void scene.restartController();
      await sleep(50);
      throw new Error('cut off');
    };
    await serving(await scene.deploy('good:1'));
    expect(cut).toBe(false);
    const [workload] = scene.cluster.all(kinds.appWorkload);
    expect(scene.cluster.peek(secretType, ns, `${workload?.metadata.name ?? ''}-env`)?.metadata.ownerReferences?.[0]?.uid).toBe(
      workload?.metadata.uid,
    );
  });
});

describe('stop, start, scale, delete', () => {
  test('a stop ends all instances, increases the revision, and keeps the StatefulSet for a start without the controller', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    expect(JSON.stringify(scene.cluster.writes)).toContain('"reason":"DesiredStateNotReached","message":"No instance of the app runs."');
    await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'stop' } }, spec: { desiredState: 'STOPPED' } });
    await scene.until(() => expect(phase()).toBe('Stopped'));
    expect(scene.app()?.metadata.annotations).toMatchObject({ [annotations.appRev]: '1', [annotations.lastStopAppRev]: '1' });
    expect(scene.cluster.all(statefulSetType)[0]?.spec?.replicas).toBe(0);
    await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'start' } }, spec: { desiredState: 'STARTED' } });
    await serving('start');
    expect(scene.cluster.all(kinds.appWorkload).some(({ spec }) => spec.version === '1' && spec.instances === 1)).toBe(true);
  });

  test('the number of instances follows the process, and a change without the controller stays', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const web = scene.web()?.metadata.name ?? '';
    await scene.cluster.mergePatch(kinds.process, ns, web, { spec: { desiredInstances: 3 } });
    await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: 3 }));
    await scene.stopController();
    const set = scene.cluster.all(statefulSetType)[0]?.metadata.name ?? '';
    await scene.cluster.mergePatch(kinds.process, ns, web, { spec: { desiredInstances: 5 } });
    await scene.cluster.mergePatch(statefulSetType, ns, set, { spec: { replicas: 5 } });
    await scene.until(() => expect(scene.cluster.all(podType)).toHaveLength(5));
    const pods = scene.cluster.all(podType).map(({ metadata }) => metadata.uid);
    await scene.restartController();
    await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: 5 }));
    expect(scene.cluster.all(podType).map(({ metadata }) => metadata.uid)).toEqual(pods);
  });

  test('the status of a process selects its pods, of all its generations, and no others', async () => {
    scene = await startRunScene();
    const spec = { appRef: { name: appGuid }, processType: 'worker', memoryMB: 1, diskQuotaMB: 1, command: 'work', desiredInstances: 2 };
    const healthCheck = { type: 'process' as const, data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } };
    await scene.cluster.create(kinds.process, { metadata: { name: 'worker', namespace: ns }, spec: { ...spec, healthCheck } });
    const wrong: string[] = [];
    const generations = new Set<string>();
    const look = (): void => {
      for (const process of scene.cluster.all(kinds.process)) {
        const pods = podsBelow(process.metadata.name ?? '');
        for (const { metadata } of pods) generations.add(`${process.spec.processType} ${metadata.labels?.[labels.generation] ?? ''}`);
        const [own, selected] = [pods, selectedBy(process.status?.selector)].map((list) => list.map(({ metadata }) => metadata.name));
        if (pods.length > 0 && JSON.stringify(own) !== JSON.stringify(selected)) wrong.push(`${String(own)} but ${String(selected)}`);
      }
    };
    const timer = setInterval(look, 2);
    await serving(await scene.deploy('good:1'));
    await serving(await scene.deploy('good:2'));
    clearInterval(timer);
    expect(wrong).toEqual([]);
    expect([...generations].map((of) => of.split(' ')[0]).toSorted()).toEqual(['web', 'web', 'worker', 'worker']);
    expect(scene.web()?.status?.selector).toBe(`korifi.cloudfoundry.org/guid=${scene.web()?.metadata.name ?? ''}`);
    expect(selectedBy(scene.cluster.peek(kinds.process, ns, 'worker')?.status?.selector)).toHaveLength(2);
  });

  test('a deletion of the app removes the destinations of its routes, and its bindings', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    await scene.cluster.create(kinds.serviceBinding, {
      metadata: { name: 'binding-1', namespace: ns },
      spec: { appRef: { name: appGuid }, parameters: { name: '' }, service: { name: 'db' }, type: 'app' },
    });
    await scene.cluster.delete(kinds.app, ns, appGuid);
    await scene.until(() => expect(scene.cluster.peek(kinds.route, ns, 'route-1')?.spec.destinations).toEqual([]));
    await scene.until(() => expect(scene.cluster.all(kinds.serviceBinding)).toEqual([]));
    await scene.until(() => expect(scene.cluster.all(httpRouteType).map(mainBackends)).toEqual([[]]));
    expect(scene.cluster.all(statefulSetType)).toEqual([]);
  });

  test('deleted Services, HTTPRoutes and StatefulSets are made again', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    const names = () =>
      [...scene.cluster.all(serviceType), ...scene.cluster.all(httpRouteType), ...scene.cluster.all(statefulSetType)].map(
        ({ metadata }) => metadata.name,
      );
    const before = names();
    const kindsToDelete: ResourceType[] = [serviceType, httpRouteType, statefulSetType];
    for (const type of kindsToDelete) {
      for (const { metadata } of scene.cluster.all(type)) await scene.cluster.delete(type, ns, metadata.name ?? '');
    }
    await scene.until(() => expect(names()).toEqual(before));
  });

  test('nothing is written if nothing changes', async () => {
    scene = await startRunScene();
    await serving(await scene.deploy('good:1'));
    await settled(scene.cluster);
    const before = scene.cluster.writes.length;
    await settled(scene.cluster);
    expect(scene.cluster.writes.slice(before).filter((write) => !isElection(write))).toEqual([]);
  });
});

describe('an app without routes', () => {
  test('tries the new version once and switches only then, and the old one is gone before the new one grows', async () => {
    scene = await startRunScene({ routed: false });
    await serving(await scene.deploy('good:1'));
    const both: number[] = [];
    const timer = setInterval(() => {
      const pods = scene.cluster.all(podType).map(({ spec }) => spec?.containers[0]?.image);
      if (pods.includes('good:1') && pods.includes('good:2')) both.push(pods.filter((image) => image === 'good:2').length);
    }, 2);
    const web = scene.web()?.metadata.name ?? '';
    await scene.cluster.mergePatch(kinds.process, ns, web, { spec: { desiredInstances: 2 } });
    await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(2));
    await serving(await scene.deploy('good:2'));
    clearInterval(timer);
    expect(Math.max(...both)).toBe(1);
    expect(scene.cluster.all(podType).map(({ spec }) => spec?.containers[0]?.image)).toEqual(['good:2', 'good:2']);
  });

  test('keeps running in its old version if the new one fails', async () => {
    scene = await startRunScene({ routed: false });
    await serving(await scene.deploy('good:1'));
    const uid = scene.cluster.all(podType)[0]?.metadata.uid;
    const id = await scene.deploy('crash:1');
    await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Failed' }));
    await scene.until(() => expect(scene.cluster.all(podType).map(({ metadata }) => metadata.uid)).toEqual([uid]));
  });
});

test('a pod that does not end on a node that does not answer is deleted for good', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const [pod] = scene.cluster.all(podType);
  const since = new Date(Date.now() - 60_000).toISOString();
  await scene.cluster.create(nodeType, {
    metadata: { name: 'dead' },
    status: { conditions: [{ type: 'Ready', status: 'Unknown', lastTransitionTime: since }] },
  });
  const metadata = { name: 'stuck', namespace: ns, labels: { ...pod?.metadata.labels }, deletionTimestamp: since };
  await scene.cluster.create(podType, { metadata, spec: { containers: [], nodeName: 'dead' } });
  await scene.until(() => expect(scene.cluster.peek(podType, ns, 'stuck')).toBeUndefined());
  const body = scene.cluster.writes.find(({ verb, name }) => verb === 'delete' && name === 'stuck')?.body;
  expect(body).toMatchObject({ gracePeriodSeconds: 0, uid: expect.any(String) as string });
});

test('a process type that the API server does not accept is tried once, and the other processes run', async () => {
  scene = await startRunScene();
  let tries = 0;
  scene.cluster.intercept = (verb, { plural }, name) => {
    if (verb !== 'create' || plural !== kinds.process.plural || name !== processGuid(appGuid, '_work')) return;
    tries += 1;
    throw new KubeError('failed', "The process type '_work' is not valid.", { status: 422, reason: 'Invalid' });
  };
  const id = await scene.deploy('good:1', { processTypes: ['_work', 'web', 'worker'] });
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  const ready = () => scene.app()?.status?.conditions?.find(({ type }) => type === 'Ready');
  await scene.until(() => expect(ready()).toMatchObject({ reason: 'InvalidProcess', message: "The process type '_work' is not valid." }));
  expect(
    scene.cluster
      .all(kinds.process)
      .map(({ spec }) => spec.processType)
      .toSorted(),
  ).toEqual(['web', 'worker']);
  expect(tries).toBeGreaterThan(0);
  expect(await scene.metrics()).not.toMatch(/kf_reconcile_total\{reconciler="app",outcome="error"\} [1-9]/);
});
