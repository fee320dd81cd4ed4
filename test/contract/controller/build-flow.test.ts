import type { Stored } from '../../../src/lib/api/object.ts';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { configMapType, eventType, jobType, secretType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFBuild } from '../../../src/lib/api/types.generated.ts';
import { buildBuild, buildBuildEnvSecret, buildPackage } from '../../../src/templates/build.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';
import { app, info, startScene } from './build-scene.ts';
import type { BuildScene } from './build-scene.ts';
import { author, digest, ended, makeSpace, runPod as runBuildPod, startBuild, type AskedBuild, type Containers } from './build-run.ts';
import { settled } from './settled.ts';

const metadata = gzipSync(
  '[[processes]]\ntype = "web"\ncommand = ["node", "s.js"]\ndirect = true\n[[buildpacks]]\nid = "kf/nodejs"\nversion = "1.0.0"\n',
).toString('base64');
const wellEnded = { source: ended(0), build: ended(0), registry: ended(0, `digest=${digest}\nmetadata=${metadata}\n`) };

describe('builds', () => {
  let scene: BuildScene;
  let cluster: MemoryCluster;
  beforeEach(async () => {
    scene = await startScene();
    cluster = scene.cluster;
    await makeSpace(cluster);
  });
  afterEach(() => scene.stop());

  const build = (name = 'b-1') => cluster.peek(kinds.build, 's-1', name);
  const succeeded = (name = 'b-1') => scene.condition(kinds.build, 's-1', name, 'Succeeded');
  const job = (name = 'b-1') => cluster.peek(jobType, 's-1', name);
  const start = (options: AskedBuild = {}): Promise<Stored<CFBuild>> => startBuild(cluster, options);
  const runPod = (containers: Containers, status?: Pod['status'], name?: string): Promise<void> =>
    runBuildPod(scene, containers, status, name);

  const backdate = async (name: string): Promise<void> => {
    const long = '2026-01-01T00:00:00Z';
    const conditions = build(name)?.status?.conditions?.map((condition) => ({ ...condition, lastTransitionTime: long }));
    await cluster.mergePatch(kinds.build, 's-1', name, { status: { conditions } }, { subresource: 'status' });
    await cluster.mergePatch(kinds.package, 's-1', name, { metadata: { creationTimestamp: long } });
  };

  test("wait until the app's environment contains a service that was bound a moment before", async () => {
    await cluster.create(kinds.app, app('a-1'));
    const binding = { type: 'app' as const, appRef: { name: 'a-1' }, service: { kind: 'CFServiceInstance', name: 'i-1' } };
    await cluster.create(kinds.serviceBinding, { metadata: { name: 'sb-1', namespace: 's-1' }, spec: binding } as never);
    await start();
    await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Ready')?.reason).toBe('BindingNotReady'));
    expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')).toBeUndefined();
    const serviceBindings = [{ guid: 'sb-1', name: 'db', secret: 'sb-1' }];
    await cluster.mergePatch(kinds.app, 's-1', 'a-1', { status: { serviceBindings } }, { subresource: 'status' });
    await scene.until(() => expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')?.spec.services).toMatchObject([{ name: 'sb-1' }]));
  });

  test('make a Job with its Secret and program, and a droplet from its report', async () => {
    await start({ env: { FOO: 'bar' } });
    await scene.until(() => expect(build()?.status?.state).toBe('STAGING'));
    await runPod({ source: ended(0), registry: { running: {} }, build: { running: {} } });
    expect(
      cluster
        .all(configMapType)
        .filter((map) => map.metadata.namespace === 's-1')
        .map((map) => map.data),
    ).toEqual([{ 'fetch.mjs': 'fetch()' }]);
    const credential = cluster.peek(secretType, 's-1', 'b-1-registry');
    const [, until] = /^build\.s-1\.a-1\.(\d{10})$/.exec(Buffer.from(credential?.data?.['username'] ?? '', 'base64').toString()) ?? [];
    // It may take five minutes until a node has enough resources, and fifteen until the droplet is uploaded.
    expect(Number(until) - Date.parse(credential?.metadata.creationTimestamp ?? '') / 1_000).toBeGreaterThan(20 * 60);
    await runPod(wellEnded, { phase: 'Succeeded' });
    await scene.until(() => expect(build()?.status?.state).toBe('STAGED'));
    expect(build()?.status?.droplet).toEqual({
      architecture: 'amd64',
      buildpacks: [{ name: 'kf/nodejs', version: '1.0.0' }],
      processTypes: [{ type: 'web', command: 'node s.js' }],
      registry: { image: `localhost:32500/s-1/a-1-droplets@${digest}`, imagePullSecrets: [{ name: 'image-registry-credentials' }] },
      stack: 'kf',
    });
    expect(build()?.metadata.labels).toMatchObject({
      'korifi.cloudfoundry.org/build-state': 'STAGED',
      'korifi.cloudfoundry.org/droplet-guid': 'b-1',
    });
    await scene.until(() => expect(cluster.peek(secretType, 's-1', 'b-1-registry')).toBeUndefined());
    expect(job()).toBeDefined();
  });

  test('get the installation’s, the build’s and VCAP variables, the last of each name', async () => {
    await start({ env: { FOO: 'bar', MIRROR: 'own' } });
    await scene.until(() =>
      expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')?.spec.env).toEqual([
        { name: 'MIRROR', valueFrom: { secretKeyRef: { name: 'b-1-env', key: 'MIRROR' } } },
        { name: 'FOO', valueFrom: { secretKeyRef: { name: 'b-1-env', key: 'FOO' } } },
        {
          name: 'VCAP_APPLICATION',
          valueFrom: { secretKeyRef: { name: 'a-1-vcap-application', key: 'VCAP_APPLICATION', optional: true } },
        },
        { name: 'VCAP_SERVICES', valueFrom: { secretKeyRef: { name: 'a-1-vcap-services', key: 'VCAP_SERVICES', optional: true } } },
      ]),
    );
  });

  test('get their stack in CF_STACK, whatever the app says', async () => {
    await start({ env: { CF_STACK: 'mine' } });
    await scene.until(() => expect(job()).toBeDefined());
    const platform = job()?.spec?.template.spec.volumes?.find(({ name }) => name === 'platform-env');
    const shown = (platform?.['projected'] as { sources: { secret: { name: string; items: { path: string }[] } }[] }).sources;
    const of = shown.filter(({ secret }) => secret.items.some(({ path }) => path === 'CF_STACK'));
    expect(of.map(({ secret }) => secret.name)).toEqual(['b-1-literals']);
    expect(cluster.peek(secretType, 's-1', 'b-1-literals')?.data).toEqual({ CF_STACK: Buffer.from('kf').toString('base64') });
  });

  test('get the installation’s values for the build only: neither the workload nor its Job contains them', async () => {
    await start({ env: { FOO: 'bar' } });
    await scene.until(() => expect(job()).toBeDefined());
    const uid = build()?.metadata.uid;
    expect(cluster.peek(secretType, 's-1', 'b-1-installation-env')).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'CFBuild', uid }] },
      data: { MIRROR: Buffer.from('m').toString('base64') },
    });
    expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')?.spec.env?.[0]).toEqual({
      name: 'MIRROR',
      valueFrom: { secretKeyRef: { name: 'b-1-installation-env', key: 'MIRROR' } },
    });
    expect(JSON.stringify(job()?.spec)).toContain('b-1-installation-env');
  });

  test('wait for the environment that the CLI can only make after the build object', async () => {
    const made = await start({ env: { FOO: 'bar' }, late: true });
    await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Ready')?.reason).toBe('EnvironmentMissing'));
    expect(job()).toBeUndefined();
    await cluster.create(secretType, buildBuildEnvSecret(made, { FOO: 'bar' }, author));
    await scene.until(() => expect(job()).toBeDefined());
  });

  test('fail if their push ended before it made their environment, instead of waiting for ever', async () => {
    await start({ env: { FOO: 'bar' }, late: true });
    await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Ready')?.reason).toBe('EnvironmentMissing'));
    const creationTimestamp = new Date(Date.now() - 60_000).toISOString();
    await cluster.mergePatch(kinds.build, 's-1', 'b-1', { metadata: { creationTimestamp } });
    await scene.until(() => expect(build()?.status?.state).toBe('FAILED'));
    expect(scene.condition(kinds.build, 's-1', 'b-1', 'Succeeded')?.message).toBe(
      "The Secret 'b-1-env' with the build's environment is missing: its push was interrupted, or the Secret was deleted.",
    );
    expect(job()).toBeUndefined();
  });

  test('fail with more variables than a process can start with, before anything of them is made', async () => {
    await start({ env: Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`V${index}`, 'x'])) });
    await scene.until(() => expect(build()?.status?.state).toBe('FAILED'));
    expect(scene.condition(kinds.build, 's-1', 'b-1', 'Succeeded')?.message).toBe(
      'The app has 1001 environment variables; at most 1000 are possible.',
    );
    expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')).toBeUndefined();
  });

  test('wait for the variables of their app if they have none of their own, and do not run as if it had none', async () => {
    await cluster.delete(secretType, 's-1', 'a-1-env');
    await start();
    await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Ready')?.reason).toBe('EnvironmentLost'));
    expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')).toBeUndefined();
    await cluster.create(secretType, { metadata: { name: 'a-1-env', namespace: 's-1' }, data: { COLOUR: 'cmVk' } });
    await cluster.mergePatch(kinds.app, 's-1', 'a-1', { metadata: { annotations: { looked: 'again' } } });
    const variable = { name: 'COLOUR', valueFrom: { secretKeyRef: { name: 'a-1-env', key: 'COLOUR' } } };
    await scene.until(() => expect(cluster.peek(kinds.buildWorkload, 's-1', 'b-1')?.spec.env).toContainEqual(variable));
  });

  test('use the layers of the newest droplet again', async () => {
    await start();
    await runPod(wellEnded, { phase: 'Succeeded' });
    await scene.until(() => expect(build()?.status?.state).toBe('STAGED'));
    await start({ guid: 'b-2' });
    await scene.until(() =>
      expect(JSON.stringify(job('b-2'))).toContain(`-previous-image=kf-registry.kf-system.svc:5000/s-1/a-1-droplets@${digest}`),
    );
  });

  test('fail with the cause, stop what still runs, and stay failed', async () => {
    await start();
    await runPod({ source: ended(0), registry: { running: {} }, build: ended(51, 'npm ci failed\nERROR: failed to build: exit status 1') });
    await scene.until(() =>
      expect(succeeded()).toMatchObject({
        status: 'False',
        reason: 'BuildFailed',
        message: 'The build failed with exit code 51: npm ci failed.',
      }),
    );
    expect(build()?.status).toMatchObject({ state: 'FAILED', failure: { lane: 'build', exitCode: 51, reason: 'BuildFailed' } });
    await scene.until(() => expect(cluster.peek(podType, 's-1', 'b-1-x')?.spec?.activeDeadlineSeconds).toBe(1));
    await runPod({ source: ended(0), registry: ended(137), build: ended(51) }, { phase: 'Failed', reason: 'DeadlineExceeded' });
    await scene.until(() => expect(cluster.peek(secretType, 's-1', 'b-1-registry')).toBeUndefined());
    expect(succeeded()?.message).toBe('The build failed with exit code 51: npm ci failed.');
  });

  test('report what they wait for, and fail if an image cannot be pulled', async () => {
    await start();
    const waiting = { waiting: { reason: 'ErrImagePull', message: 'not found' } };
    await runPod({ source: { running: {} }, registry: waiting, build: waiting });
    await scene.until(() =>
      expect(scene.condition(kinds.build, 's-1', 'b-1', 'Staging')?.message).toBe(
        "The image 'i' of the build's registry container cannot be pulled: not found.",
      ),
    );
    scene.pass(31_000);
    await scene.until(() => expect(build()?.status?.failure?.reason).toBe('BuilderNotFound'));
  });

  test('report a quota that admits no pod, and leave no Job that would start later', async () => {
    await start();
    await scene.until(() => expect(job()).toBeDefined());
    const refused = (name: string, second: number, message: string) => ({
      metadata: { name, namespace: 's-1' },
      involvedObject: { uid: job()?.metadata.uid ?? '' },
      reason: 'FailedCreate',
      message: `Error creating: pods "b-1-x" is forbidden: ${message}`,
      lastTimestamp: `2026-01-01T00:00:0${second}Z`,
    });
    // The API server returns them in the order of their names, and a repeated Event keeps its name.
    await cluster.create(eventType, refused('e', 9, 'exceeded quota: q'));
    await cluster.create(eventType, refused('f', 1, 'a policy'));
    await cluster.mergePatch(jobType, 's-1', 'b-1', { metadata: { uid: job()?.metadata.uid, creationTimestamp: '2026-01-01T00:00:00Z' } });
    await scene.until(() => expect(build()?.status?.failure?.reason).toBe('QuotaExceeded'));
    expect(succeeded()?.message).toBe('The build\'s pod cannot be made: pods "b-1-x" is forbidden: exceeded quota: q');
    await scene.until(() => expect(job()).toBeUndefined());
  });

  test('do not take the BuildWorkload of an earlier build with the same GUID for their own', async () => {
    const owner = { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFBuild', name: 'b-1', uid: 'the-earlier-one' };
    const left = { name: 'b-1', namespace: 's-1', ownerReferences: [owner] };
    await cluster.create(kinds.buildWorkload, { metadata: left, spec: { buildRef: { name: 'b-1' }, builderName: 'elsewhere' } });
    const conditions = [{ type: 'Succeeded', status: 'True', reason: 'x', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }];
    const droplet = { registry: { image: 'old' }, processTypes: [], ports: [] };
    await cluster.mergePatch(kinds.buildWorkload, 's-1', 'b-1', { status: { conditions, droplet } }, { subresource: 'status' });
    await start();
    await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Ready')?.reason).toBe('BuildWorkloadLeft'));
    expect(build()?.status?.droplet).toBeUndefined();
    // The garbage collector deletes it.
    await cluster.delete(kinds.buildWorkload, 's-1', 'b-1');
    await scene.until(() => expect(job()).toBeDefined());
  });

  test('refuse buildpacks that the builder lacks before anything runs', async () => {
    await start({ buildpacks: ['cobol'] });
    await scene.until(() => expect(succeeded()?.message).toBe("The builder has no buildpack 'cobol'. It has: kf/nodejs."));
    expect([build()?.status?.failure?.reason, job()]).toEqual(['InvalidBuildpacks', undefined]);
  });

  test('never start again, neither after a restart of the controller nor after a deletion of the Job', async () => {
    await start();
    await runPod({ source: { running: {} }, registry: { running: {} }, build: { running: {} } });
    await scene.stop();
    const uid = job()?.metadata.uid;
    scene = await startScene(cluster);
    await settled(cluster);
    expect(job()?.metadata.uid).toBe(uid);
    await cluster.delete(jobType, 's-1', 'b-1');
    await scene.until(() =>
      expect(succeeded()).toMatchObject({ status: 'False', message: 'The Job of the build was deleted while it ran.' }),
    );
    expect(job()).toBeUndefined();
  });

  test('are not made for an app whose name is taken, nor by a foreign builder', async () => {
    await cluster.create(kinds.app, app('other', 's-1', 'a-1'));
    await scene.until(() => expect(scene.condition(kinds.app, 's-1', 'other', 'Claimed')?.status).toBe('True'));
    await start();
    await scene.until(() => expect(scene.condition(kinds.build, 's-1', 'b-1', 'Ready')?.reason).toBe('DuplicateName'));
    const foreign = {
      metadata: { name: 'f', namespace: 's-1', labels: {} },
      spec: { buildRef: { name: 'f' }, builderName: 'kpack-image-builder' },
    };
    await cluster.create(kinds.buildWorkload, foreign);
    await settled(cluster);
    expect([cluster.peek(kinds.buildWorkload, 's-1', 'b-1'), cluster.peek(kinds.buildWorkload, 's-1', 'f')?.status, job('f')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('of an app, a package and a build that disagree about the lifecycle fail with a sentence', async () => {
    const owner = await cluster.create(kinds.app, app('a-1'));
    await cluster.create(kinds.package, buildPackage({ guid: 'b-1', app: owner, type: 'docker', image: 'nginx' }, author));
    const input = {
      guid: 'b-1',
      app: owner,
      packageGuid: 'b-1',
      lifecycle: { type: 'buildpack' as const, data: { stack: '' } },
      stagingMemoryMB: 0,
      stagingDiskMB: 0,
    };
    await cluster.create(kinds.build, buildBuild(input, author));
    await scene.until(() =>
      expect(succeeded()?.message).toBe('Build, app and package disagree about the lifecycle: buildpack, buildpack, docker.'),
    );
    expect(build()?.status?.state).toBe('FAILED');
  });

  test('of a ready image whose registry is not reachable continue with the image as typed, with a note', async () => {
    const docker = { ...app('a-1'), spec: { ...app('a-1').spec, lifecycle: { type: 'docker' as const, data: { stack: '' } } } };
    const owner = await cluster.create(kinds.app, docker);
    await cluster.create(kinds.package, buildPackage({ guid: 'b-1', app: owner, type: 'docker', image: '127.0.0.1:1/x/y:1' }, author));
    await cluster.create(
      kinds.build,
      buildBuild(
        { guid: 'b-1', app: owner, packageGuid: 'b-1', lifecycle: docker.spec.lifecycle, stagingMemoryMB: 0, stagingDiskMB: 0 },
        author,
      ),
    );
    await scene.until(() =>
      expect(build()?.status).toMatchObject({ state: 'STAGED', droplet: { registry: { image: '127.0.0.1:1/x/y:1' }, ports: [8080] } }),
    );
    expect(build()?.metadata.annotations?.[annotations.imageNotRead]).toMatch(/^The registry cannot be reached/);
  });

  test('delete the oldest droplet and all that belongs to it from the sixth on, once it is not new any more', async () => {
    for (let n = 1; n <= 6; n += 1) {
      if (n === 6) await backdate('b-1');
      await start({ guid: `b-${String(n)}` });
      await runPod(wellEnded, { phase: 'Succeeded' }, `b-${String(n)}`);
      await scene.until(() => expect(build(`b-${String(n)}`)?.status?.state).toBe('STAGED'));
    }
    await scene.until(() => expect(cluster.all(kinds.build)).toHaveLength(5));
    await scene.until(() => expect(cluster.all(kinds.package)).toHaveLength(5));
    expect([build('b-1'), job('b-1'), cluster.peek(kinds.buildWorkload, 's-1', 'b-1')]).toEqual([undefined, undefined, undefined]);
  });

  test('read a new builder in a short pod before they start', async () => {
    const other = { ...info, builder: { ...info.builder, image: 'builder:2' } };
    const map = cluster.peek(configMapType, 'cf', 'kf-info');
    await cluster.mergePatch(configMapType, 'cf', 'kf-info', {
      metadata: { uid: map?.metadata.uid },
      data: { 'info.json': JSON.stringify(other) },
    });
    await start();
    await scene.until(() => expect(cluster.peek(podType, 'kf-system', 'kf-builder-info')?.spec?.containers[0]?.image).toBe('builder:2'));
    expect(job()).toBeUndefined();
    const message = `uid=2000\ngid=2000\nmachine=x86_64\nstack=st\ndescription=D\norder=${gzipSync('[[order.group]]\nid = "x/y"\nversion = "3"\n').toString('base64')}\n`;
    const containerStatuses = [
      { name: 'look', image: 'builder:2', imageID: `x@${digest}`, ready: false, restartCount: 0, state: ended(0, message) },
    ];
    const uid = cluster.peek(podType, 'kf-system', 'kf-builder-info')?.metadata.uid;
    await cluster.mergePatch(
      podType,
      'kf-system',
      'kf-builder-info',
      { metadata: { uid }, status: { containerStatuses } },
      { subresource: 'status' },
    );
    await scene.until(() => expect(job()?.spec?.template.spec.securityContext).toMatchObject({ runAsUser: 2000, runAsGroup: 2000 }));
    expect(cluster.peek(kinds.builderInfo, 'cf', 'kf-builder')?.status).toMatchObject({
      builder: { digest, image: 'builder:2' },
      buildpacks: [{ name: 'x/y', version: '3' }],
    });
    expect(cluster.peek(podType, 'kf-system', 'kf-builder-info')).toBeUndefined();
    expect(cluster.peek(kinds.runnerInfo, 'cf', 'kf-runner')?.status?.capabilities).toEqual({ rollingDeploy: true });
  });

  test('have a ready builder again when another one could not be read, and kf-info names the one before', async () => {
    const name = async (builder: string): Promise<void> => {
      const uid = cluster.peek(configMapType, 'cf', 'kf-info')?.metadata.uid;
      const text = JSON.stringify({ ...info, builder: { ...info.builder, image: builder } });
      await cluster.mergePatch(configMapType, 'cf', 'kf-info', { metadata: { uid }, data: { 'info.json': text } });
    };
    const status = () => scene.condition(kinds.builderInfo, 'cf', 'kf-builder', 'Ready')?.status;
    await name('builder:2');
    const look = () => cluster.peek(podType, 'kf-system', 'kf-builder-info');
    await scene.until(() => expect(look()).toBeDefined());
    const waiting = {
      name: 'look',
      image: 'builder:2',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: 'ImagePullBackOff' } },
    };
    const patch = { metadata: { uid: look()?.metadata.uid }, status: { containerStatuses: [waiting] } };
    await cluster.mergePatch(podType, 'kf-system', 'kf-builder-info', patch, { subresource: 'status' });
    await scene.until(() => expect(status()).toBe('False'));
    await name(info.builder.image);
    await scene.until(() => expect(status()).toBe('True'));
    await scene.until(() => expect(look()).toBeUndefined());
  });

  test('read a builder again if the pod for it was evicted', async () => {
    const other = { ...info, builder: { ...info.builder, image: 'builder:2' } };
    const uid = cluster.peek(configMapType, 'cf', 'kf-info')?.metadata.uid;
    await cluster.mergePatch(configMapType, 'cf', 'kf-info', { metadata: { uid }, data: { 'info.json': JSON.stringify(other) } });
    const look = () => cluster.peek(podType, 'kf-system', 'kf-builder-info');
    await scene.until(() => expect(look()).toBeDefined());
    const first = look()?.metadata.uid;
    // A kubelet that ends a pod before its container ran names no container.
    const status = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: ephemeral-storage.' };
    await cluster.mergePatch(podType, 'kf-system', 'kf-builder-info', { metadata: { uid: first }, status }, { subresource: 'status' });
    await scene.until(() =>
      expect(scene.condition(kinds.builderInfo, 'cf', 'kf-builder', 'Ready')?.message).toBe(
        'The builder image could not be read: The node was low on resource: ephemeral-storage.',
      ),
    );
    await scene.until(() => expect(look()?.metadata.uid).not.toBe(first));
  });
});
