// A CLI and a controller that are too many releases apart: every command that writes says so in one sentence, and writes nothing (docs/compatibility.md).

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  const place = { KF_ORG: 'example-org', KF_SPACE: 'example-space' };
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), ...place });
  const metadata = { name: 'app-guid', namespace: ns };
  const lifecycle = { type: 'docker' as const, data: { stack: '' } };
  const spec = { displayName: 'my-app', desiredState: 'STARTED' as const, lifecycle, envSecretName: 'app-env' };
  await cluster.add(kinds.app, { metadata, spec: { ...spec, currentDropletRef: { name: 'droplet' } } });
  await cluster.add(secretType, { metadata: { name: 'app-env', namespace: ns }, data: { B: 'Yg==' } });
  const labels = { 'korifi.cloudfoundry.org/app-guid': 'app-guid' };
  for (const displayName of ['free', 'bound']) {
    const service = { displayName, secretName: displayName, type: 'user-provided' as const, planGuid: '' };
    await cluster.add(kinds.serviceInstance, { metadata: { name: displayName, namespace: ns }, spec: service });
  }
  await cluster.add(kinds.serviceBinding, {
    metadata: { name: 'binding', namespace: ns, labels: { ...labels, 'korifi.cloudfoundry.org/service-instance-guid': 'bound' } },
    spec: { type: 'app', appRef: { name: 'app-guid' }, service: { name: 'bound' }, parameters: { name: '' } },
  });
  await cluster.add(kinds.route, {
    metadata: { name: 'route', namespace: ns, labels: { 'korifi.cloudfoundry.org/domain-guid': 'default-domain' } },
    spec: { host: 'free', protocol: 'http', domainRef: { name: 'default-domain', namespace: 'cf' } },
    status: {
      uri: 'free.apps.localhost',
      conditions: [{ type: 'Claimed', status: 'True', reason: 'Claimed', message: '', lastTransitionTime: '' }],
    },
  });
  await cluster.add(kinds.task, {
    metadata: { name: 'task', namespace: ns, labels },
    spec: { appRef: { name: 'app-guid' }, command: 'x' },
  });
  await cluster.memory.mergePatch(kinds.task, ns, 'task', { status: { sequenceId: 1 } }, { subresource: 'status' });
  const marks = { ...labels, 'korifi.cloudfoundry.org/guid': 'app-guid-web', 'apps.kubernetes.io/pod-index': '0' };
  await cluster.add(podType, { metadata: { name: 'pod', namespace: ns, labels: marks } });
  const healthCheck = { type: 'port' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
  await cluster.add(kinds.process, {
    metadata: { name: 'app-guid-web', namespace: ns, labels },
    spec: { appRef: { name: 'app-guid' }, processType: 'web', desiredInstances: 1, memoryMB: 256, diskQuotaMB: 1024, healthCheck },
  });
});
afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

/** The controller has another version from now on. */
async function controllerOf(version: string): Promise<void> {
  const map = cluster.memory.peek(configMapType, 'cf', 'kf-info');
  const info = JSON.parse(map?.data?.['info.json'] ?? '{}') as { controller: object };
  const changed = { ...info, controller: { ...info.controller, version } };
  await cluster.memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': JSON.stringify(changed) } });
  cluster.memory.writes.length = 0;
}

const commands = [
  ['push', 'my-app', '-o', 'registry.example.com/app:1'],
  ['create-app', 'other'],
  ['scale', 'my-app', '-i', '2'],
  ['stop', 'my-app'],
  ['restart', 'my-app'],
  ['set-env', 'my-app', 'A', 'b'],
  ['unset-env', 'my-app', 'B'],
  ['bind-service', 'my-app', 'free'],
  ['unbind-service', 'my-app', 'bound'],
  ['update-user-provided-service', 'bound', '-p', '{"url":"y"}'],
  ['delete-service', 'bound', '-f'],
  ['delete', 'my-app', '-f'],
  ['run-task', 'my-app', '-c', 'true'],
  ['create-route', 'apps.localhost', '-n', 'x'],
  ['map-route', 'my-app', 'apps.localhost', '-n', 'x'],
  ['create-user-provided-service', 'db', '-p', '{"url":"x"}'],
  ['set-label', 'app', 'my-app', 'a=b'],
  ['create-space', 'x'],
  ['create-org', 'x'],
  ['autoscale', 'my-app', '--min', '1', '--max', '2', '--cpu', '60'],
  ['autoscale', 'my-app', '--off'],
  ['prune'],
  ['rotate', 'registry-key'],
  ['delete-route', 'apps.localhost', '-n', 'free', '-f'],
  ['delete-orphaned-routes', '-f'],
  ['terminate-task', 'my-app', '1'],
  ['restart-app-instance', 'my-app', '0'],
  ['enable-ssh', 'my-app'],
  ['disable-feature-flag', 'diego_docker'],
];

describe('a controller two releases newer than the CLI', () => {
  it.each(commands)('%s says so and writes nothing', async (...args) => {
    await controllerOf('0.3.0');
    const { code, stderr } = await cli.run(args);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("This kf (0.1.0) is too old for the cluster's controller (0.3.0): they may be one release apart."),
    ]);
    expect(cluster.memory.writes).toEqual([]);
  });

  it('curl answers with it, and writes nothing', async () => {
    await controllerOf('0.3.0');
    expect((await cli.run(['curl', '/v3/apps/app-guid', '-X', 'DELETE'])).stdout).toContain('is too old for');
    expect(cluster.memory.writes).toEqual([]);
  });

  it('is still there for commands that only read', async () => {
    await controllerOf('0.3.0');
    expect((await cli.run(['apps'])).stdout).toContain('my-app');
  });
});

it('a controller one release newer than the CLI accepts its changes', async () => {
  await controllerOf('0.2.0');
  expect(await cli.run(['set-env', 'my-app', 'A', 'b'])).toMatchObject({ code: 0 });
});
