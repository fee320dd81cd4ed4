// Objects of a running app that are deleted, and the controller's reaction.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventType, secretType, statefulSetType, type Secret } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { httpRouteType } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { AppWorkload, CFBuild } from '../../../src/lib/api/types.generated.ts';
import { defined } from '../../../src/lib/defined.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
beforeEach(async () => {
  scene = await startRunScene();
});
afterEach(async () => scene.stop());

const deployment = () => scene.app()?.status?.deployment;
const serving = async (id: string): Promise<void> => scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Serving' }));
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const workload = (): AppWorkload => scene.cluster.all(kinds.appWorkload).at(-1) as AppWorkload;
const frozenEnv = (of: AppWorkload = workload()): Secret | undefined => scene.cluster.peek(secretType, ns, `${of.metadata.name ?? ''}-env`);
const setColour = (colour: string): Promise<unknown> =>
  scene.cluster.mergePatch(secretType, ns, 'env', { data: { COLOUR: base64(colour) } });

/** Deletes the frozen environment while no controller has its content in memory. */
async function loseEnvironment(): Promise<void> {
  await scene.stopController();
  await scene.cluster.delete(secretType, ns, frozenEnv()?.metadata.name ?? '');
}

test('an AppWorkload is created again with its own Secrets, and evaluated from the beginning', async () => {
  const id = await scene.deploy('good:1');
  await serving(id);
  const before = workload();
  const left = frozenEnv();
  const [pod] = scene.cluster.all(podType);
  const phases = new Set<string | undefined>();
  const timer = setInterval(() => phases.add(deployment()?.phase), 2);
  await scene.cluster.delete(kinds.appWorkload, ns, before.metadata.name ?? '');
  // The garbage collector deletes later what the deleted object owned: a Secret, and an instance that still looks healthy.
  if (left !== undefined) await scene.cluster.create(secretType, left);
  if (pod !== undefined) await scene.cluster.create(podType, pod);
  await scene.until(() => expect(workload()).toMatchObject({ spec: { instances: 1 } }));
  await scene.until(() => expect(deployment()?.phase).not.toBe('Serving'));
  await scene.until(() => expect(scene.cluster.all(statefulSetType)).toHaveLength(1));
  const seen = scene.cluster.writes.length;
  await scene.patchApp({ metadata: { annotations: { touched: 'yes' } } });
  await scene.until(() => expect(scene.cluster.writes.length).toBeGreaterThan(seen));
  expect(deployment()?.phase).not.toBe('Serving');
  await scene.cluster.delete(podType, ns, pod?.metadata.name ?? '');
  await serving(id);
  clearInterval(timer);
  expect(workload().metadata.name).toBe(before.metadata.name);
  expect(frozenEnv()?.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([workload().metadata.uid]);
  expect(frozenEnv()?.data?.['COLOUR']).toBe(base64('red'));
});

test("a Secret of another owner's kind that has the AppWorkload's uid is replaced by the frozen environment", async () => {
  const create = scene.cluster.create.bind(scene.cluster);
  let forged: Secret | undefined;
  scene.cluster.create = async (type, object) => {
    const owner = object.metadata.ownerReferences?.[0];
    if (
      type.kind === 'Secret' &&
      owner?.kind === 'AppWorkload' &&
      object.metadata.name?.endsWith('-env') === true &&
      forged === undefined
    ) {
      const metadata = { ...object.metadata, ownerReferences: [{ ...owner, apiVersion: 'example.com/v1', kind: 'None' }] };
      forged = { ...(object as Secret), metadata, data: { COLOUR: base64('forged') } };
      await create(secretType, forged);
    }
    return create(type, object);
  };
  await serving(await scene.deploy('good:1'));
  expect(forged).toBeDefined();
  expect(frozenEnv()?.data?.['COLOUR']).toBe(base64('red'));
});

test('a StatefulSet that the garbage collector forgot goes when its AppWorkload was made again under the same name', async () => {
  const id = await scene.deploy('good:1');
  await serving(id);
  await scene.stopController();
  const [set] = scene.cluster.all(statefulSetType);
  await scene.cluster.delete(kinds.appWorkload, ns, workload().metadata.name ?? '');
  const ownerReferences = set?.metadata.ownerReferences?.map((owner) => ({ ...owner, uid: 'of-an-earlier-workload' }));
  if (set !== undefined)
    await scene.cluster.create(statefulSetType, { ...set, metadata: { ...set.metadata, ...defined({ ownerReferences }) } });
  await scene.restartController();
  const owners = (): unknown => scene.cluster.all(statefulSetType).map(({ metadata }) => metadata.ownerReferences?.map(({ uid }) => uid));
  await scene.until(() => expect(owners()).toEqual([[workload().metadata.uid]]));
  await serving(id);
});

describe('a frozen environment that was lost', () => {
  test('is made again if the app still has the same variables', async () => {
    const id = await scene.deploy('good:1');
    await serving(id);
    const before = workload().metadata.uid;
    await loseEnvironment();
    await scene.restartController();
    await scene.until(() => expect(frozenEnv()?.data?.['COLOUR']).toBe(base64('red')));
    expect(workload().metadata.uid).toBe(before);
    await serving(id);
  });

  test('is replaced by a new version beside the one that serves, if the app has other variables now', async () => {
    const id = await scene.deploy('good:1');
    await serving(id);
    await setColour('blue');
    await loseEnvironment();
    await scene.restartController();
    await scene.until(() => expect(scene.cluster.all(kinds.appWorkload)).toHaveLength(2));
    await scene.until(() => expect(scene.cluster.all(kinds.appWorkload)).toHaveLength(1));
    await serving(id);
    expect(frozenEnv()?.data?.['COLOUR']).toBe(base64('blue'));
    const told = scene.cluster.all(eventType).filter(({ reason }) => reason === 'EnvironmentLost');
    expect(told.map(({ message }) => message)).toContainEqual(expect.stringContaining("as after 'kf restart'"));
  });

  test('is reported if the app has no variables any more, and running instances continue', async () => {
    const id = await scene.deploy('good:1');
    await serving(id);
    const [pod] = scene.cluster.all(podType);
    await loseEnvironment();
    await scene.cluster.delete(secretType, ns, 'env');
    await scene.restartController();
    await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Serving', reason: 'EnvironmentLost' }));
    expect(scene.cluster.all(podType).map(({ metadata }) => metadata.uid)).toEqual([pod?.metadata.uid]);
  });
});

test('an app whose variables are missing does not start without them, says so, and starts once they exist', async () => {
  await serving(await scene.deploy('good:1'));
  await scene.cluster.delete(secretType, ns, 'env');
  const id = await scene.deploy('good:1', { rev: '1' });
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Pending', reason: 'EnvironmentLost' }));
  expect(deployment()?.message).toMatch(
    /^The Secret 'env' with the app's environment variables is missing, and its values are lost: push the app .* 'kf rollback', or .* 'kf set-env'\.$/,
  );
  expect(scene.cluster.all(kinds.appWorkload)).toHaveLength(1);
  await scene.cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: { COLOUR: base64('green') } });
  await serving(id);
});

test('an app whose first start is hindered is stopped as soon as the user stops it', async () => {
  await scene.cluster.delete(secretType, ns, 'env');
  const id = await scene.deploy('good:1');
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Pending', reason: 'EnvironmentLost' }));
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'stop' } }, spec: { desiredState: 'STOPPED' } });
  await scene.until(() => expect(deployment()).toMatchObject({ id: 'stop', phase: 'Stopped' }));
  expect(deployment()).not.toHaveProperty('reason');
  await scene.until(() => expect(scene.cluster.all(eventType).map(({ message }) => message)).toContain('All instances have ended.'));
  await scene.cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: {} });
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'start' } }, spec: { desiredState: 'STARTED' } });
  await serving('start');
});

test('VCAP_SERVICES and VCAP_APPLICATION of an app come back without a restart', async () => {
  await serving(await scene.deploy('good:1'));
  const names = [`${appGuid}-vcap-services`, `${appGuid}-vcap-application`];
  const data = () => names.map((name) => scene.cluster.peek(secretType, ns, name)?.data);
  const before = data();
  for (const name of names) await scene.cluster.delete(secretType, ns, name);
  await scene.until(() => expect(data()).toEqual(before));
});

test('an app whose build is deleted keeps its route, and a restart says that there is nothing to start', async () => {
  await serving(await scene.deploy('good:1'));
  const rules = () => scene.cluster.peek(httpRouteType, ns, 'route-1')?.spec?.rules;
  const [build, before] = [scene.cluster.all(kinds.build)[0]?.metadata.name ?? '', rules()];
  await scene.cluster.delete(kinds.build, ns, build);
  await scene.cluster.mergePatch(kinds.route, ns, 'route-1', { metadata: { annotations: { touched: 'yes' } } });
  const id = 'restart';
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: id, [annotations.appRev]: '1' } } });
  const message = `The app's droplet was deleted (build '${build}'); 'kf push' makes a new one.`;
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Pending', message }));
  expect(rules()).toEqual(before);
  expect(scene.cluster.all(podType)).toHaveLength(1);
  await serving(await scene.deploy('good:2'));
});

test('an app does not start with a droplet of another app, whose builds are deleted without it', async () => {
  await serving(await scene.deploy('good:1'));
  await scene.cluster.create(kinds.build, {
    metadata: { name: 'foreign', namespace: ns },
    spec: { appRef: { name: 'another' }, packageRef: { name: 'p' }, lifecycle: { type: 'docker', data: { stack: '' } } },
  } as CFBuild);
  const status = { state: 'STAGED', droplet: { registry: { image: 'good:2' }, ports: [8080] } };
  await scene.cluster.mergePatch(kinds.build, ns, 'foreign', { status }, { subresource: 'status' });
  const marks = { [annotations.deployId]: 'restart', [annotations.appRev]: '1' };
  await scene.patchApp({ metadata: { annotations: marks }, spec: { currentDropletRef: { name: 'foreign' } } });
  const message = "The build 'foreign' belongs to another app; 'kf droplets' shows those of this one.";
  await scene.until(() => expect(deployment()).toMatchObject({ id: 'restart', phase: 'Pending', message }));
  expect(scene.cluster.all(kinds.appWorkload).map(({ spec }) => spec.image)).toEqual(['good:1']);
  await serving(await scene.deploy('good:3'));
});

test('a refused second binding of one name does not prevent a restart', async () => {
  await serving(await scene.deploy('good:1'));
  const condition = { reason: 'x', message: '', lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 };
  for (const [name, status] of [
    ['b-1', 'True'],
    ['b-2', 'False'],
  ] as const) {
    await scene.cluster.create(secretType, { metadata: { name, namespace: ns }, data: { uri: base64(name) } });
    await scene.cluster.create(kinds.serviceBinding, {
      metadata: { name, namespace: ns },
      spec: { appRef: { name: appGuid }, displayName: 'db', parameters: { name: '' }, service: { name: name }, type: 'app' },
    });
    const conditions = [
      { ...condition, type: 'Claimed', status },
      { ...condition, type: 'Ready', status },
    ];
    const written = { conditions, mountSecretRef: { name } };
    await scene.cluster.mergePatch(kinds.serviceBinding, ns, name, { status: written }, { subresource: 'status' });
  }
  await serving(await scene.deploy('good:1', { rev: '1' }));
  expect(workload().spec.services).toMatchObject([{ guid: 'b-1', name: 'db' }]);
});
