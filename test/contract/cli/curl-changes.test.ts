// curl with changes: each is seen in the objects of the cluster. Tests act as the controller.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import type { ResourceType } from '../../../src/lib/api/object.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const curl = (...argv: string[]): Promise<CliRun> => cli.run(['curl', ...argv]);
const post = (path: string, body = '{}'): Promise<CliRun> => curl('-X', 'POST', path, '-d', body, '--fail');
const patch = (path: string, body: object): Promise<CliRun> => curl('-X', 'PATCH', path, '-d', JSON.stringify(body), '--fail');
const remove = (path: string): Promise<CliRun> => curl('-X', 'DELETE', path, '-i', '--fail');
const appNow = (): CFApp | undefined => cluster.memory.peek(kinds.app, ns, 'shop-guid');
const setStatus = (type: ResourceType, place: string, name: string, status: object): void =>
  void cluster.memory.mergePatch(type, place, name, { status }, { subresource: 'status' }).catch(() => undefined);

async function addApp(desiredState: 'STARTED' | 'STOPPED'): Promise<void> {
  const lifecycle = { type: 'buildpack' as const, data: { stack: 'kf' } };
  const spec = { displayName: 'shop', desiredState, lifecycle, currentDropletRef: { name: 'droplet' } };
  await cluster.add(kinds.app, { metadata: { name: 'shop-guid', namespace: ns }, spec });
  const process = { appRef: { name: 'shop-guid' }, processType: 'web', desiredInstances: 1, memoryMB: 256, diskQuotaMB: 1024 };
  const healthCheck = { type: 'port' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
  const metadata = { name: 'shop-web', namespace: ns, labels: { [labels.appGuid]: 'shop-guid' } };
  await cluster.add(kinds.process, { metadata, spec: { ...process, healthCheck } });
}

/** Acts as the controller: after each request, objects of the kind get these conditions, and the app's change has this phase. */
function judge(type: ResourceType, phase = 'Serving'): void {
  cluster.memory.intercept = (verb, seen) => {
    if (verb !== 'watch' || seen.plural !== type.plural) return;
    for (const { metadata } of cluster.memory.all(type)) {
      const { namespace = '', name, generation: observedGeneration = 1 } = metadata;
      const common = { status: 'True', reason: 'x', message: '', lastTransitionTime: '2026-08-07T10:16:20Z', observedGeneration };
      const conditions = ['Claimed', 'Ready'].map((condition) => ({ type: condition, ...common }));
      const id = metadata.annotations?.[annotations.deployId];
      setTimeout(() => setStatus(type, namespace, name, { conditions, ...(id === undefined ? {} : { deployment: { id, phase } }) }), 20);
    }
  };
}

describe('the actions of an app', () => {
  it('start it, and answer when that is written', async () => {
    await addApp('STOPPED');
    const run = await post('/v3/apps/shop-guid/actions/start');
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { guid: 'shop-guid', state: 'STARTED' }]);
    expect(appNow()).toMatchObject({ spec: { desiredState: 'STARTED' }, metadata: { annotations: { [annotations.changedBy]: 'alice' } } });
  });

  it('stop it', async () => {
    await addApp('STARTED');
    judge(kinds.app, 'Stopped');
    const run = await post('/v3/apps/shop-guid/actions/stop');
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { state: 'STOPPED' }]);
    expect(appNow()?.spec.desiredState).toBe('STOPPED');
  });

  it('restart it with a new revision', async () => {
    await addApp('STARTED');
    const run = await post('/v3/apps/shop-guid/actions/restart');
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { state: 'STARTED' }]);
    expect(appNow()?.metadata.annotations?.[annotations.appRev]).toBe('1');
  });

  it('scale a process', async () => {
    await addApp('STOPPED');
    const run = await post('/v3/processes/shop-web/actions/scale', '{"instances":3,"memory_in_mb":512}');
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { instances: 3, memory_in_mb: 512 }]);
    const byType = await curl('-i', '/v3/apps/shop-guid/processes/web/actions/scale', '-d', '{"disk_in_mb":2048}');
    expect(byType.stdout).toMatch(/^HTTP\/1\.1 202 Accepted\r\n/);
    expect(JSON.parse((await post('/v3/processes/shop-guid/actions/scale', '{"instances":4}')).stdout)).toMatchObject({ instances: 4 });
    const { spec } = cluster.memory.peek(kinds.process, ns, 'shop-web') ?? {};
    expect(spec).toMatchObject({ desiredInstances: 4, memoryMB: 512, diskQuotaMB: 2048 });
  });

  it('scale a process whose new instance crashes: the change is accepted, and a warning says why', async () => {
    await addApp('STARTED');
    const crashed = { state: 'CRASHED' as const, details: 'exit code 7' };
    setStatus(kinds.process, ns, 'shop-web', { observedGeneration: 1, instancesStatus: { '0': { state: 'RUNNING' }, '1': crashed } });
    const run = await post('/v3/processes/shop-web/actions/scale', '{"instances":2}');
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { instances: 2 }]);
    expect(run.stderr).toContain("instance 1 of 'web' has crashed: exit code 7");
  });
});

describe('a change of an app', () => {
  it('gives it a name, labels and annotations', async () => {
    await addApp('STOPPED');
    judge(kinds.app);
    const metadata = { labels: { env: 'prod' }, annotations: { contact: 'bob' } };
    const run = await patch('/v3/apps/shop-guid', { name: 'store', metadata });
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { name: 'store', metadata }]);
    expect(appNow()).toMatchObject({ spec: { displayName: 'store' }, metadata });
    const removed = await patch('/v3/apps/shop-guid', { metadata: { labels: { env: null } } });
    expect(JSON.parse(removed.stdout)).toMatchObject({ metadata: { labels: {}, annotations: { contact: 'bob' } } });
    expect(appNow()?.metadata.labels?.['env']).toBeUndefined();
  });

  it.each([
    [{ metadata: { labels: { 'korifi.cloudfoundry.org/guid': 'x' } } }, "the platform's own"],
    [{ metadata: { labels: { env: 'not a label' } } }, "'not a label' cannot be the value of a label"],
    [{ metadata: { labels: [] } }, 'labels must be an object'],
    [{ name: 'a b', metadata: { labels: { env: 'x' } } }, 'The name of an app consists of'],
  ])('%j is refused before anything is written', async (body, detail) => {
    await addApp('STOPPED');
    const run = await patch('/v3/apps/shop-guid', body);
    expect([run.code, run.stderr]).toEqual([22, expect.stringContaining(detail)]);
    expect(cluster.server.callsOf('PATCH .*')).toEqual([]);
  });

  it('sets and removes variables, of an app without a Secret too', async () => {
    await addApp('STOPPED');
    const run = await patch('/v3/apps/shop-guid/environment_variables', { var: { COLOUR: 'blue', SIZE: 3, GONE: null } });
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { var: { COLOUR: 'blue', SIZE: '3' } }]);
    await patch('/v3/apps/shop-guid/environment_variables', { var: { SIZE: null } });
    const { data } = cluster.memory.peek(secretType, ns, appNow()?.spec.envSecretName ?? '') ?? {};
    expect(data).toEqual({ COLOUR: Buffer.from('blue').toString('base64') });
  });

  it('with a variable of the platform is refused, and sets no other', async () => {
    await addApp('STOPPED');
    const run = await patch('/v3/apps/shop-guid/environment_variables', { var: { COLOUR: 'blue', PORT: '1' } });
    expect([run.code, run.stderr]).toEqual([22, expect.stringContaining("'PORT' is set by the platform")]);
    expect(cluster.memory.all(secretType)).toEqual([]);
  });

  it('of an org and a space gives them other names', async () => {
    judge(kinds.space);
    expect(JSON.parse((await patch(`/v3/spaces/${ns}`, { name: 'dev' })).stdout)).toMatchObject({ guid: ns, name: 'dev' });
    judge(kinds.org);
    expect(JSON.parse((await patch('/v3/organizations/org-guid', { name: 'shops' })).stdout)).toMatchObject({ name: 'shops' });
    expect(cluster.memory.peek(kinds.space, 'org-guid', ns)?.spec.displayName).toBe('dev');
    expect(cluster.memory.peek(kinds.org, 'cf', 'org-guid')?.spec.displayName).toBe('shops');
  });
});

describe('a deletion', () => {
  /** The state of the job that the answer names. */
  async function jobOf({ stdout }: CliRun): Promise<unknown> {
    expect(stdout).toMatch(/^HTTP\/1\.1 202 Accepted\r\n/);
    const [, location = ''] = /^Location: (\S+)\r$/m.exec(stdout) ?? [];
    return (JSON.parse((await curl(location)).stdout) as { state: unknown }).state;
  }

  it('of an app leaves its route, and its job is complete', async () => {
    await addApp('STOPPED');
    const spec = { host: 'shop', domainRef: { name: 'default-domain', namespace: 'cf' } };
    const route = { name: 'route-guid', namespace: ns };
    await cluster.add(kinds.route, { metadata: { ...route, labels: { [labels.domainGuid]: 'default-domain' } }, spec });
    expect(await jobOf(await remove('/v3/apps/shop-guid'))).toBe('COMPLETE');
    expect([cluster.memory.all(kinds.app), cluster.memory.all(kinds.route).length]).toEqual([[], 1]);
    expect(await jobOf(await remove('/v3/routes/route-guid'))).toBe('COMPLETE');
    expect(cluster.memory.all(kinds.route)).toEqual([]);
  });

  it('of a route that the controller has not seen yet deletes the route of the GUID', async () => {
    const spec = { host: 'shop', domainRef: { name: 'default-domain', namespace: 'cf' } };
    await cluster.add(kinds.route, { metadata: { name: 'route-guid', namespace: ns }, spec });
    expect(await jobOf(await remove('/v3/routes/route-guid'))).toBe('COMPLETE');
    expect(cluster.memory.all(kinds.route)).toEqual([]);
  });

  it('is not complete while the object still exists', async () => {
    await addApp('STOPPED');
    await cluster.memory.mergePatch(kinds.app, ns, 'shop-guid', { metadata: { finalizers: ['kf.test/slow'] } });
    expect(await jobOf(await remove('/v3/apps/shop-guid'))).toBe('PROCESSING');
  });

  it('of a service instance deletes its bindings, and has no job', async () => {
    const service = { displayName: 'db', type: 'user-provided' as const, secretName: 'db', planGuid: '' };
    await cluster.add(kinds.serviceInstance, { metadata: { name: 'db-guid', namespace: ns }, spec: service });
    const binding = { type: 'app' as const, service: { name: 'db-guid' }, appRef: { name: 'x' }, parameters: { name: '' } };
    const marks = { [labels.serviceInstanceGuid]: 'db-guid' };
    await cluster.add(kinds.serviceBinding, { metadata: { name: 'binding-guid', namespace: ns, labels: marks }, spec: binding });
    expect((await remove('/v3/service_instances/db-guid')).stdout).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
    expect([...cluster.memory.all(kinds.serviceInstance), ...cluster.memory.all(kinds.serviceBinding)]).toEqual([]);
  });

  it('of a space and an org deletes those of the GUID', async () => {
    await cluster.add(kinds.space, { metadata: { name: 'dev-guid', namespace: 'org-guid' }, spec: { displayName: 'dev' } });
    expect(await jobOf(await remove(`/v3/spaces/${ns}`))).toBe('COMPLETE');
    expect(cluster.memory.all(kinds.space).map(({ metadata }) => metadata.name)).toEqual(['dev-guid']);
    expect(await jobOf(await remove('/v3/organizations/org-guid'))).toBe('COMPLETE');
    expect(cluster.memory.all(kinds.org)).toEqual([]);
  });

  it('that is interrupted goes on in the cluster', async () => {
    await cluster.memory.mergePatch(kinds.space, 'org-guid', ns, { metadata: { finalizers: ['kf.test/slow'] } });
    const kill = { after: "'example-space' is being deleted", signal: 'SIGINT' as const };
    const run = await cli.run(['curl', '-X', 'DELETE', `/v3/spaces/${ns}`], { kill });
    expect([run.code, run.stdout]).toEqual([130, expect.stringMatching(/FAILED\n$/)]);
    expect(run.stderr).toContain('The deletion goes on in the cluster');
  });

  it('of a space whose name an older one has too is refused', async () => {
    await cluster.add(kinds.space, { metadata: { name: 'twin-guid', namespace: 'org-guid' }, spec: { displayName: 'example-space' } });
    const oldest = cluster.memory.peek(kinds.space, 'org-guid', ns)?.metadata;
    Object.assign(oldest ?? {}, { creationTimestamp: '2020-01-01T00:00:00Z' });
    const run = await remove('/v3/spaces/twin-guid');
    expect([run.code, run.stderr]).toEqual([22, expect.stringContaining("Another space has the name 'example-space' too")]);
    expect(cluster.memory.all(kinds.space)).toHaveLength(2);
  });
});
