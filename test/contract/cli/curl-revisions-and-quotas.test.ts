// curl: revisions, quotas, users, credentials and what else scripts read to know the state of an installation.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, roleBindingType, secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { printRecord, printSettings } from '../../../src/lib/api/revisions.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const api = '/apis/korifi.cloudfoundry.org/v1alpha1';
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
  await addApp('shop');
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const curl = (...argv: string[]): Promise<CliRun> => cli.run(['curl', ...argv]);

async function asked<T = Record<string, unknown>>(...argv: string[]): Promise<T> {
  const run = await curl(...argv);
  expect([run.code, run.stderr]).toEqual([0, '']);
  return JSON.parse(run.stdout) as T;
}

interface Page {
  resources: { guid: string }[];
}
const guids = async (...argv: string[]): Promise<string[]> => (await asked<Page>(...argv)).resources.map(({ guid }) => guid);

async function addApp(name: string, more: object = {}): Promise<void> {
  const metadata = { name: `${name}-guid`, namespace: ns, creationTimestamp: '2026-11-22T10:00:00Z', generation: 1 };
  const lifecycle = { type: 'buildpack' as const, data: { stack: 'kf' } };
  const spec = { displayName: name, desiredState: 'STARTED' as const, lifecycle, currentDropletRef: { name: 'build-2' } };
  await cluster.add(kinds.app, { metadata, spec: { ...spec, ...more } });
}

async function addProcess(instances: number): Promise<void> {
  const metadata = { name: 'shop-web', namespace: ns, labels: { [labels.appGuid]: 'shop-guid' }, generation: 1 };
  const data = { timeoutSeconds: 60, invocationTimeoutSeconds: 0 };
  const spec = { appRef: { name: 'shop-guid' }, processType: 'web', desiredInstances: instances, memoryMB: 256, diskQuotaMB: 1024 };
  await cluster.add(kinds.process, { metadata, spec: { ...spec, healthCheck: { type: 'port' as const, data } } });
}

async function addBuild(name: string): Promise<void> {
  const spec = { appRef: { name: 'shop-guid' }, packageRef: { name: 'package-guid' }, stagingMemoryMB: 1, stagingDiskMB: 1 };
  const lifecycle = { type: 'buildpack' as const, data: { stack: 'kf' } };
  const metadata = { name, namespace: ns, labels: { [labels.appGuid]: 'shop-guid' } };
  await cluster.add(kinds.build, { metadata, spec: { ...spec, lifecycle } });
  await cluster.memory.mergePatch(kinds.build, ns, name, { status: { state: 'STAGED' } }, { subresource: 'status' });
}

describe('revisions', () => {
  const record = (version: number) => ({
    ...{ version, guid: `revision-${version}`, description: `Number ${version}.`, droplet: `build-${version}` },
    ...{ created: `2026-11-22T10:0${version}:00Z`, settings: version },
  });
  const env = { COLOUR: Buffer.from('blue').toString('base64') };

  beforeEach(async () => {
    await addBuild('build-2');
    const metadata = { name: 'shop-guid-revisions', namespace: ns, labels: { [labels.appGuid]: 'shop-guid' } };
    await cluster.add(configMapType, { metadata, data: { 1: printRecord(record(1)), 2: printRecord(record(2)) } });
    const settings = printSettings({ env, commands: { web: 'node a.js', worker: '' }, sidecars: {} });
    await cluster.add(secretType, { metadata, data: { 2: settings } });
    const revision = { change: '', version: 2, droplets: [], deployed: 2 };
    await cluster.memory.mergePatch(kinds.app, ns, 'shop-guid', { status: { revision } }, { subresource: 'status' });
  });

  it('of an app are listed as kf revisions lists them, and the deployed one alone', async () => {
    const { resources } = await asked<Page>('/v3/apps/shop-guid/revisions');
    expect(resources).toMatchObject([
      { guid: 'revision-1', version: 1, deployable: false, processes: {}, droplet: { guid: 'build-1' } },
      { guid: 'revision-2', version: 2, deployable: true, processes: { web: { command: 'node a.js' }, worker: { command: null } } },
    ]);
    expect(await guids('/v3/apps/shop-guid/revisions?versions=1')).toEqual(['revision-1']);
    expect(await guids('/v3/apps/shop-guid/revisions/deployed')).toEqual(['revision-2']);
  });

  it('are found by their GUID, also by a user who may read only some spaces', async () => {
    expect(await asked('/v3/revisions/revision-2')).toMatchObject({ description: 'Number 2.' });
    cluster.server.on(`GET ${api}/cfapps`, (call) => call.fail(403, 'Forbidden', 'is forbidden'));
    expect(await asked('/v3/revisions/revision-2/environment_variables')).toMatchObject({ var: { COLOUR: 'blue' } });
    expect(await asked('/v3/revisions/none')).toMatchObject({ errors: [{ detail: 'Revision not found' }] });
  });

  it('say that variables are not kept, or may not be read', async () => {
    const variables = '/v3/revisions/revision-1/environment_variables';
    expect(await asked(variables)).toMatchObject({ errors: [{ detail: expect.stringContaining('not kept any more') as string }] });
    cluster.server.on(`GET /api/v1/namespaces/${ns}/secrets/.*`, (call) => call.fail(403, 'Forbidden', 'secrets is forbidden'));
    expect(await asked('/v3/revisions/revision-2')).toMatchObject({ version: 2, processes: {} });
    expect(await asked('/v3/revisions/revision-2/environment_variables')).toMatchObject({ errors: [{ title: 'CF-NotAuthorized' }] });
  });
});

describe('quotas', () => {
  beforeEach(async () => {
    const quota = (name: string, namespace: string) =>
      cluster.add(kinds.quota, { metadata: { name, namespace }, spec: { displayName: name, totalMemoryMB: 1024, routes: 0 } });
    await quota('big', 'cf');
    await quota('unused', 'cf');
    await quota('small', 'org-guid');
    const named = (name: string): Record<string, unknown> => ({ metadata: { annotations: { [annotations.quota]: name } } });
    await cluster.memory.mergePatch(kinds.org, 'cf', 'org-guid', named('big'));
    await cluster.memory.mergePatch(kinds.space, 'org-guid', ns, named('small'));
  });

  it('of orgs and spaces are listed with who has them', async () => {
    const limits = { apps: { total_memory_in_mb: 1024, total_instances: null }, routes: { total_routes: 0 } };
    const organizations = { data: [{ guid: 'org-guid' }] };
    expect((await asked<Page>('/v3/organization_quotas?names=big')).resources).toMatchObject([
      { ...limits, relationships: { organizations } },
    ]);
    expect(await guids('/v3/organization_quotas?organization_guids=org-guid')).toEqual(['big']);
    expect(await asked('/v3/organization_quotas/unused')).toMatchObject({ name: 'unused', relationships: { organizations: { data: [] } } });
    expect(await guids(`/v3/space_quotas?space_guids=${ns}&organization_guids=org-guid`)).toEqual(['small']);
    expect(await asked('/v3/space_quotas/small')).toMatchObject({ relationships: { organization: { data: { guid: 'org-guid' } } } });
    expect(await asked('/v3/space_quotas/big')).toMatchObject({ errors: [{ detail: 'Space quota not found' }] });
    expect(await asked('/v3/organizations/org-guid')).toMatchObject({
      links: { quota: { href: expect.stringMatching(/big$/) as string } },
    });
  });

  it('are compared with what is used, if the caller may read all of it', async () => {
    await addProcess(3);
    const summary = { started_instances: 3, memory_in_mb: 768, routes: 0, service_instances: 0, per_app_tasks: 0 };
    for (const place of ['organizations/org-guid', `spaces/${ns}`])
      expect(await asked(`/v3/${place}/usage_summary`)).toMatchObject({ usage_summary: summary });
    cluster.server.on(`GET ${api}/namespaces/${ns}/cftasks`, (call) => call.fail(403, 'Forbidden', 'cftasks is forbidden'));
    expect(await asked('/v3/organizations/org-guid/usage_summary')).toMatchObject({ errors: [{ title: 'CF-NotAuthorized' }] });
  });
});

it('users are those with a role, and the caller', async () => {
  await cluster.add(roleBindingType, {
    metadata: { name: 'cf-1', namespace: ns },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'korifi-controllers-space-developer' },
    subjects: [
      { kind: 'User', name: 'bob' },
      { kind: 'ServiceAccount', name: 'ci', namespace: 'tools' },
      { kind: 'Group', name: 'devs' },
    ],
  });
  expect(await guids('/v3/users')).toEqual(['alice', 'bob', 'system:serviceaccount:tools:ci']);
  expect(await guids('/v3/users?usernames=bob,carol')).toEqual(['bob']);
  expect(await guids('/v3/users?partial_usernames=LI,:ci')).toEqual(['alice', 'system:serviceaccount:tools:ci']);
  expect(await guids('/v3/users?origins=client')).toEqual(['system:serviceaccount:tools:ci']);
  expect(await asked('/v3/users/bob')).toMatchObject({ username: 'bob', origin: 'kubernetes' });
  expect(await asked('/v3/users/carol')).toMatchObject({ errors: [{ detail: 'User not found' }] });
});

it('credentials of a user-provided service are answered, and what a binding gives', async () => {
  await cli.run(['target', '-o', 'example-org', '-s', 'example-space']);
  await cli.run(['cups', 'db', '-p', '{"user":"me"}', '-l', 'syslog://logs']);
  const [guid = ''] = await guids('/v3/service_instances?names=db');
  expect(await asked(`/v3/service_instances/${guid}/credentials`)).toEqual({ user: 'me' });
  const binding = { type: 'app' as const, service: { name: guid }, appRef: { name: 'shop-guid' }, parameters: { name: '' } };
  await cluster.add(kinds.serviceBinding, { metadata: { name: 'binding-guid', namespace: ns }, spec: binding });
  expect(await asked('/v3/service_credential_bindings/binding-guid/details')).toEqual({
    ...{ credentials: { user: 'me' }, syslog_drain_url: 'syslog://logs', volume_mounts: [] },
  });
  const secret = (await cluster.memory.get(kinds.serviceInstance, ns, guid))?.spec.secretName ?? '';
  await cluster.memory.delete(secretType, ns, secret);
  expect(await asked(`/v3/service_instances/${guid}/credentials`)).toMatchObject({ errors: [{ code: 10008 }] });
  cluster.server.on(`GET /api/v1/namespaces/${ns}/secrets/.*`, (call) => call.fail(403, 'Forbidden', 'secrets is forbidden'));
  expect(await asked(`/v3/service_instances/${guid}/credentials`)).toMatchObject({ errors: [{ title: 'CF-NotAuthorized' }] });
});

it('droplets of a package, the current one, and another one for the app', async () => {
  await cluster.add(kinds.package, {
    metadata: { name: 'package-guid', namespace: ns },
    spec: { type: 'bits', appRef: { name: 'shop-guid' } },
  });
  await addBuild('build-1');
  await addBuild('build-2');
  expect(await guids('/v3/packages/package-guid/droplets')).toEqual(['build-1', 'build-2']);
  expect(await guids('/v3/apps/shop-guid/droplets?current=true')).toEqual(['build-2']);
  const link = '/v3/apps/shop-guid/relationships/current_droplet';
  expect(await asked('-X', 'PATCH', link, '-d', '{"data":{"guid":"build-1"}}')).toMatchObject({ data: { guid: 'build-1' } });
  expect(await guids('/v3/apps/shop-guid/droplets?current=true')).toEqual(['build-1']);
  expect(await asked('-X', 'PATCH', link, '-d', '{"data":{"guid":"none"}}')).toMatchObject({ errors: [{ code: 10010 }] });
  expect(await asked('-X', 'PATCH', link, '-d', '{"data":{}}')).toMatchObject({ errors: [{ code: 10008 }] });
});

it('permissions say what the caller may read', async () => {
  const right = (allowed: boolean): unknown =>
    cluster.server.on('POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews', (call) => call.json({ status: { allowed } }));
  right(true);
  expect(await asked('/v3/apps/shop-guid/permissions')).toEqual({ read_basic_data: true, read_sensitive_data: true });
  right(false);
  expect(await asked('/v3/apps/shop-guid/permissions')).toEqual({ read_basic_data: true, read_sensitive_data: false });
});

it('DELETE of an instance ends it', async () => {
  await addProcess(1);
  const marks = { [labels.appGuid]: 'shop-guid', [labels.guid]: 'shop-web', [labels.podIndex]: '0' };
  const end = (path: string): Promise<CliRun> => curl('-i', '-X', 'DELETE', path);
  for (const path of ['/v3/processes/shop-web/instances/0', '/v3/apps/shop-guid/processes/web/instances/0']) {
    await cluster.add(podType, { metadata: { name: 'web-0', namespace: ns, labels: marks } });
    expect((await end(path)).stdout).toContain('HTTP/1.1 204');
    expect(await cluster.memory.get(podType, ns, 'web-0')).toBeUndefined();
  }
  expect((await end('/v3/processes/shop-web/instances/x')).stdout).toContain('HTTP/1.1 404');
});

it('PATCH of metadata changes labels and annotations of orgs, spaces, routes, domains and services', async () => {
  await cli.run(['target', '-o', 'example-org', '-s', 'example-space']);
  await cli.run(['cups', 'db', '-p', '{"a":"b"}']);
  const [db = ''] = await guids('/v3/service_instances?names=db');
  const route = { host: 'shop', path: '', domainRef: { name: 'default-domain', namespace: 'cf' }, destinations: [] };
  await cluster.add(kinds.route, { metadata: { name: 'route-guid', namespace: ns }, spec: route });
  const metadata = { labels: { team: 'blue' }, annotations: { contact: 'bob' } };
  const places = ['organizations/org-guid', `spaces/${ns}`, 'routes/route-guid', 'domains/default-domain', `service_instances/${db}`];
  for (const place of places) {
    expect(await asked('-X', 'PATCH', `/v3/${place}`, '-d', JSON.stringify({ metadata }))).toMatchObject({ metadata });
    expect(await asked(`/v3/${place}`)).toMatchObject({ metadata });
    const reserved = '{"metadata":{"labels":{"kf.cloudfoundry.org/ssh":"x"}}}';
    expect(await asked('-X', 'PATCH', `/v3/${place}`, '-d', reserved)).toMatchObject({ errors: [{ code: 10008 }] });
  }
});
