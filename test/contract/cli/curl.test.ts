// curl: requests that scripts make, answered from the objects of a cluster; changes are seen in the objects.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, roleBindingType, secretType } from '../../../src/lib/api/core.ts';
import { kinds, labels, places } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
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
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const curl = (...argv: string[]): Promise<CliRun> => cli.run(['curl', ...argv]);

/** The answer as a document. */
async function asked<T = Record<string, unknown>>(...argv: string[]): Promise<T> {
  const run = await curl(...argv);
  expect([run.code, run.stderr]).toEqual([0, '']);
  return JSON.parse(run.stdout) as T;
}

interface Page {
  pagination: { total_results: number; next: { href: string } | null };
  resources: { guid: string; name?: string }[];
  included?: Record<string, { guid: string }[]>;
}
const guids = async (...argv: string[]): Promise<string[]> => (await asked<Page>(...argv)).resources.map(({ guid }) => guid);

async function addApp(name: string, namespace = ns, more: object = {}): Promise<void> {
  const metadata = { name: `${name}-guid`, namespace, creationTimestamp: '2026-11-22T10:00:00Z', generation: 1 };
  const spec = { displayName: name, desiredState: 'STOPPED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: 'kf' } } };
  await cluster.add(kinds.app, { metadata, spec: { ...spec, ...more } });
}

async function addProcess(app: string): Promise<void> {
  const metadata = { name: `${app}-web`, namespace: ns, labels: { [labels.appGuid]: `${app}-guid` }, generation: 1 };
  const data = { timeoutSeconds: 60, invocationTimeoutSeconds: 0 };
  const spec = { appRef: { name: `${app}-guid` }, processType: 'web', desiredInstances: 1, memoryMB: 256, diskQuotaMB: 1024 };
  await cluster.add(kinds.process, { metadata, spec: { ...spec, healthCheck: { type: 'port' as const, data } } });
}

async function addSecondSpace(): Promise<void> {
  await cluster.add(kinds.org, { metadata: { name: 'other-org', namespace: 'cf' }, spec: { displayName: 'other' } });
  await cluster.add(kinds.space, { metadata: { name: 'other-space', namespace: 'other-org' }, spec: { displayName: 'dev' } });
}

async function addRoute(): Promise<void> {
  const destinations = [{ guid: 'd', appRef: { name: 'shop-guid' }, processType: 'web' }];
  const spec = { host: 'shop', path: '', domainRef: { name: 'default-domain', namespace: 'cf' }, destinations };
  await cluster.add(kinds.route, { metadata: { name: 'route-guid', namespace: ns }, spec });
}

describe('curl', () => {
  it('answers the request that scripts make most, for one app by name and space', async () => {
    await addSecondSpace();
    await addApp('shop');
    await addApp('api');
    await addApp('shop', 'other-space');
    const page = await asked<Page>(`/v3/apps?names=shop&space_guids=${ns}`);
    expect(page.pagination.total_results).toBe(1);
    expect(page.resources[0]).toMatchObject({
      ...{ guid: 'shop-guid', name: 'shop', state: 'STOPPED', lifecycle: { type: 'buildpack', data: { buildpacks: [], stack: 'kf' } } },
      relationships: { space: { data: { guid: ns } } },
      links: { self: { href: `${cluster.server.url}/v3/apps/shop-guid` } },
    });
    expect(cluster.server.callsOf(`GET ${api}.*`).map((call) => call.path)).toEqual([`${api}/namespaces/${ns}/cfapps`]);
  });

  it('prints indented JSON, as the API does', async () => {
    const { stdout } = await curl('/v3/organizations?names=example-org');
    expect(stdout).toContain('\n      "guid": "org-guid",\n');
    expect(stdout.endsWith('}\n')).toBe(true);
  });

  it('takes a path without its slash, and a link of an answer', async () => {
    await addApp('a');
    await addApp('b');
    const { pagination } = await asked<Page>('v3/apps?per_page=1');
    expect(await guids(pagination.next?.href ?? '')).toEqual(['b-guid']);
  });

  it('-i prints the status and the headers before the body', async () => {
    const { stdout } = await curl('-i', '/v3/apps/none');
    expect(stdout).toMatch(
      /^HTTP\/1\.1 404 Not Found\r\nContent-Type: application\/json; charset=utf-8\r\nContent-Length: \d+\r\n\r\n\{\n/,
    );
  });

  it('--fail ends with exit code 22, and prints no body', async () => {
    for (const flag of ['-f', '--fail']) {
      const run = await curl(flag, '/v3/apps/none');
      expect([run.code, run.stdout, run.stderr]).toEqual([
        ...[22, 'FAILED\n', 'The requested URL returned error: 404\n\nTIP:\n   App not found\n'],
      ]);
    }
    expect((await curl('--fail', '/v3/apps')).code).toBe(0);
    cluster.server.on('GET /api/v1/secrets', (call) => call.fail(403, 'Forbidden', 'secrets is forbidden'));
    expect(await curl('-f', '/api/v1/secrets')).toMatchObject({
      code: 22,
      stderr: expect.stringContaining('secrets is forbidden') as string,
    });
  });

  it('without --fail a refusal is an answer like others', async () => {
    const run = await curl('/v3/apps/none');
    expect([run.code, JSON.parse(run.stdout)]).toEqual([
      ...[0, { errors: [{ code: 10010, title: 'CF-ResourceNotFound', detail: 'App not found' }] }],
    ]);
  });

  it('--output writes the answer to a file', async () => {
    const run = await curl('/v3/spaces?names=example-space', '--output', 'answer.json');
    expect([run.code, run.stdout]).toEqual([0, 'OK\n\n']);
    expect(JSON.parse(readFileSync(path.join(cli.home, 'answer.json'), 'utf8'))).toMatchObject({ resources: [{ guid: ns }] });
    const failed = await curl('/v3/spaces', '--output', 'no/such/folder');
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining("The answer cannot be written to 'no/such/folder'")]);
  });

  it('-d takes the body from a file, and makes the request a POST', async () => {
    await addApp('shop');
    await addProcess('shop');
    writeFileSync(path.join(cli.home, 'scale.json'), '{"memory_in_mb": 512}');
    expect(await asked('/v3/processes/shop-web/actions/scale', '-d', '@scale.json')).toMatchObject({ memory_in_mb: 512 });
    const run = await curl('/v3/processes/shop-web/actions/scale', '-d', '@none.json');
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("The file 'none.json' cannot be read")]);
  });

  it('passes paths of Kubernetes on with method, headers and body', async () => {
    cluster.server.on('PATCH /api/v1/namespaces/x/pods/y', (call) =>
      call.json({ type: call.headers['content-type'], body: call.body, query: call.query.get('a') }, 202),
    );
    const argv = ['/api/v1/namespaces/x/pods/y?a=b', '-X', 'PATCH', '-H', 'Content-Type: application/merge-patch+json', '-d', '{}'];
    expect(await asked(...argv)).toEqual({ type: 'application/merge-patch+json', body: '{}', query: 'b' });
    const refused = await curl('-i', '/apis/unknown.example.com/v1/things');
    expect([refused.code, refused.stdout]).toEqual([0, expect.stringMatching(/^HTTP\/1\.1 404 Not Found\r\n/)]);
  });

  it('--json has status, headers and the document', async () => {
    const { result } = JSON.parse((await curl('/v3/apps/none', '--json')).stdout) as { result: unknown };
    expect(result).toMatchObject({ status: 404, headers: { 'content-type': 'application/json; charset=utf-8' }, body: { errors: [{}] } });
    const failed = JSON.parse((await curl('/v3/apps/none', '--json', '-f')).stdout) as unknown;
    expect(failed).toMatchObject({ status: 22, error: { details: { status: 404, body: { errors: [{ code: 10010 }] } } } });
  });

  it.each([
    [['/v3/apps?nmaes=x'], 'CF-BadQueryParameter', "Unknown query parameter(s): 'nmaes'"],
    [['-X', 'POST', '/v3/routes', '-d', '{}'], 'CF-NotFound', 'Use instead: kf create-route DOMAIN --hostname HOST.'],
    [['/v2/apps'], 'CF-NotFound', 'Use instead: kf curl /v3'],
    [['/v3/unicorns'], 'CF-NotFound', 'docs/curl.md lists the requests'],
    [['-X', 'PATCH', '/v3/apps/x', '-d', 'name'], 'CF-MessageParseError', 'invalid request body'],
    [['-X', 'PATCH', '/v3/apps/x', '-d', '{"lifecycle":{}}'], 'CF-UnprocessableEntity', "Unknown field(s): 'lifecycle'"],
    [['/v3/processes/x/actions/scale', '-d', '{"instances":-1}'], 'CF-UnprocessableEntity', 'Instances must be a whole number'],
  ])('%j is refused as %s', async (argv, title, detail) => {
    expect(await asked(...argv)).toMatchObject({ errors: [{ title, detail: expect.stringContaining(detail) as string }] });
  });

  it.each([
    [['/v3/apps', '-H', 'nonsense'], "A header has the form 'NAME: VALUE'; this one is 'nonsense'."],
    [['https://api.example.com/v3/apps'], "'https://api.example.com/v3/apps' is not a path of the API at http"],
    [[], 'the required argument `PATH` was not provided'],
  ])('%j is an error of the command line', async (argv, message) => {
    const run = await curl(...argv);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it('says that kf is not set up, and that Kubernetes does not answer, instead of an answer', async () => {
    await cluster.memory.delete(configMapType, 'cf', places.info);
    expect(await curl('/v3/info')).toMatchObject({ code: 1, stderr: expect.stringContaining('kf is not set up') as string });
    for (const { plural } of Object.values(kinds)) cluster.missing.add(plural);
    expect(await curl('/v3/apps')).toMatchObject({ code: 1, stderr: expect.stringContaining('kf is not set up') as string });
    await cluster.server.halt();
    expect(await curl('/v3/apps')).toMatchObject({ code: 1, stderr: expect.stringContaining('does not answer') as string });
  });
});

describe('curl of a user without rights in the whole cluster', () => {
  beforeEach(async () => {
    await addSecondSpace();
    await addApp('shop');
    await addApp('secret', 'other-space');
    const refuse = (pattern: string): unknown => cluster.server.on(pattern, (call) => call.fail(403, 'Forbidden', 'is forbidden'));
    refuse(`GET ${api}/cf(apps|spaces)`);
    refuse(`GET ${api}/namespaces/other-(org|space)/.*`);
  });

  it('lists what the user may read, space by space', async () => {
    expect(await guids('/v3/apps')).toEqual(['shop-guid']);
    expect(await guids('/v3/apps?space_guids=other-space')).toEqual([]);
    expect(await guids('/v3/spaces')).toEqual([ns]);
  });

  it('finds a GUID in the spaces of the user, and no other', async () => {
    expect(await asked('/v3/apps/shop-guid')).toMatchObject({ name: 'shop' });
    expect(await asked('/v3/apps/secret-guid')).toMatchObject({ errors: [{ detail: 'App not found' }] });
    expect(await asked(`/v3/spaces/${ns}?include=organization`)).toMatchObject({ included: { organizations: [{ guid: 'org-guid' }] } });
  });

  it('answers a change without the right with 403, and says which right is missing', async () => {
    const message = `cfapps.korifi.cloudfoundry.org "shop-guid" is forbidden: User "alice" cannot delete resource "cfapps" in API group "korifi.cloudfoundry.org" in the namespace "${ns}"`;
    cluster.server.on(`DELETE ${api}/namespaces/${ns}/cfapps/shop-guid`, (call) => call.fail(403, 'Forbidden', message));
    const [error] = (await asked<{ errors: { title: string; detail: string }[] }>('-X', 'DELETE', '/v3/apps/shop-guid')).errors;
    expect(error?.title).toBe('CF-NotAuthorized');
    expect(error?.detail).toContain('may not delete "cfapps.korifi.cloudfoundry.org"');
    expect(error?.detail).toContain('A manager of the org or space, or an administrator of the cluster, must grant it.');
  });
});

describe('curl reads', () => {
  beforeEach(async () => {
    await addApp('shop', ns, { desiredState: 'STARTED', envSecretName: 'shop-env', currentDropletRef: { name: 'build-guid' } });
    await addProcess('shop');
  });

  it('processes and the statistics of their instances', async () => {
    expect(await guids('/v3/apps/shop-guid/processes')).toEqual(['shop-web']);
    expect(await guids('/v3/processes?app_guids=shop-guid&types=web')).toEqual(['shop-web']);
    const stats = ['/v3/processes/shop-web/stats', '/v3/processes/shop-guid/stats', '/v3/apps/shop-guid/processes/web/stats'];
    for (const one of stats) expect(await asked(one)).toMatchObject({ resources: [{ type: 'web', index: 0, state: 'DOWN', uptime: 0 }] });
    await cluster.add(podType, {
      metadata: {
        name: 'web-0',
        namespace: ns,
        labels: { [labels.appGuid]: 'shop-guid', [labels.guid]: 'shop-web', [labels.podIndex]: '0' },
      },
      spec: { containers: [{ name: 'application', resources: { limits: { memory: '128Mi', 'ephemeral-storage': '512Mi' } } }] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    for (const one of stats)
      expect(await asked(one)).toMatchObject({
        resources: [{ state: 'RUNNING', routable: true, host: 'web-0', mem_quota: 128 * 1024 ** 2 }],
      });
    expect(await asked('/v3/apps/shop-guid/processes/worker')).toMatchObject({ errors: [{ detail: 'Process worker not found' }] });
  });

  it('the web process by the GUID of its app, as in cf', async () => {
    expect(await asked('/v3/processes/shop-guid')).toMatchObject({ guid: 'shop-web', type: 'web' });
    expect(await guids('/v3/processes?guids=shop-guid')).toEqual(['shop-web']);
    expect(await asked('/v3/processes/absent')).toMatchObject({ errors: [{ code: 10_010, detail: 'Process not found' }] });
    await cluster.memory.delete(kinds.process, ns, 'shop-web');
    expect(await asked('/v3/processes/shop-guid')).toMatchObject({ errors: [{ code: 10_010, detail: 'Process web not found' }] });
  });

  it('the environment and the features of an app', async () => {
    await cluster.add(secretType, {
      metadata: { name: 'shop-env', namespace: ns },
      data: { COLOUR: Buffer.from('blue').toString('base64') },
    });
    expect(await asked('/v3/apps/shop-guid/env')).toMatchObject({ environment_variables: { COLOUR: 'blue' }, staging_env_json: {} });
    expect(await asked('/v3/apps/shop-guid/environment_variables')).toMatchObject({ var: { COLOUR: 'blue' } });
    expect(await asked('/v3/apps/shop-guid/features/ssh')).toMatchObject({ name: 'ssh', enabled: true });
    expect((await asked<Page>('/v3/apps/shop-guid/features')).resources.map(({ name }) => name)).toContain('revisions');
  });

  it('packages, builds, droplets and the deployment', async () => {
    const appRef = { name: 'shop-guid' };
    const lifecycle = { type: 'buildpack' as const, data: { stack: 'kf' } };
    await cluster.add(kinds.package, { metadata: { name: 'package-guid', namespace: ns }, spec: { type: 'bits', appRef } });
    for (const [name, state] of [
      ['build-guid', 'STAGED'],
      ['failed-guid', 'FAILED'],
    ] as const) {
      await cluster.add(kinds.build, {
        metadata: { name, namespace: ns },
        spec: { appRef, packageRef: { name: 'package-guid' }, lifecycle, stagingMemoryMB: 1, stagingDiskMB: 1 },
      });
      await cluster.memory.mergePatch(kinds.build, ns, name, { status: { state } }, { subresource: 'status' });
    }
    expect(await guids('/v3/packages?app_guids=shop-guid&states=AWAITING_UPLOAD')).toEqual(['package-guid']);
    expect(await guids('/v3/apps/shop-guid/packages')).toEqual(['package-guid']);
    expect(await guids('/v3/builds?states=FAILED')).toEqual(['failed-guid']);
    expect(await guids('/v3/apps/shop-guid/builds?states=FAILED')).toEqual(['failed-guid']);
    expect(await guids('/v3/apps/shop-guid/droplets')).toEqual(['build-guid']);
    expect(await asked('/v3/apps/shop-guid/droplets/current')).toMatchObject({ guid: 'build-guid', state: 'STAGED' });
    const deployment = { id: 'deploy-guid', phase: 'Starting' as const };
    await cluster.memory.mergePatch(kinds.app, ns, 'shop-guid', { status: { deployment } }, { subresource: 'status' });
    expect(await guids('/v3/deployments?app_guids=shop-guid&status_values=ACTIVE')).toEqual(['deploy-guid']);
    expect(await asked('/v3/deployments/deploy-guid')).toMatchObject({ status: { value: 'ACTIVE', reason: 'DEPLOYING' } });
  });

  it('the events of an app', async () => {
    const page = await asked<Page & { resources: object[] }>('/v3/audit_events?target_guids=shop-guid,none&types=audit.app.create');
    const target = { guid: 'shop-guid', type: 'app', name: 'shop' };
    expect(page.resources).toMatchObject([{ type: 'audit.app.create', target, space: { guid: ns }, organization: { guid: 'org-guid' } }]);
    expect(await asked('/v3/audit_events')).toMatchObject({ errors: [{ title: 'CF-BadQueryParameter' }] });
  });

  it('routes, destinations and domains', async () => {
    await addRoute();
    const page = await asked<Page>('/v3/routes?hosts=shop&domain_guids=default-domain&include=domain,space.organization');
    expect(page.resources).toMatchObject([{ guid: 'route-guid', url: 'shop.apps.localhost' }]);
    expect(page.included).toMatchObject({
      domains: [{ guid: 'default-domain' }],
      spaces: [{ guid: ns }],
      organizations: [{ guid: 'org-guid' }],
    });
    expect(await guids('/v3/apps/shop-guid/routes')).toEqual(['route-guid']);
    expect(await guids('/v3/routes?app_guids=none')).toEqual([]);
    expect(await asked('/v3/routes/route-guid/destinations')).toMatchObject({ destinations: [{ app: { guid: 'shop-guid' } }] });
    expect(await guids('/v3/domains?names=apps.localhost')).toEqual(['default-domain']);
    expect(await asked('/v3/organizations/org-guid/domains/default')).toMatchObject({ name: 'apps.localhost' });
  });

  it('orgs, spaces and roles', async () => {
    await addSecondSpace();
    expect(await guids('/v3/organizations?names=example-org,none')).toEqual(['org-guid']);
    expect(await guids('/v3/spaces?names=example-space&organization_guids=org-guid')).toEqual([ns]);
    expect(await asked('/v3/organizations/none')).toMatchObject({ errors: [{ detail: 'Organization not found' }] });
    await cluster.add(roleBindingType, {
      metadata: { name: 'cf-1', namespace: ns, labels: { [labels.roleGuid]: 'role-guid' } },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'korifi-controllers-space-developer' },
      subjects: [{ kind: 'User', name: 'alice' }],
    });
    const page = await asked<Page>(`/v3/roles?space_guids=${ns}&types=space_developer&user_guids=alice&include=user`);
    expect([page.resources[0]?.guid, page.included]).toMatchObject(['role-guid', { users: [{ username: 'alice' }] }]);
  });

  it('service instances, bindings, tasks and what the builder offers', async () => {
    await cli.run(['target', '-o', 'example-org', '-s', 'example-space']);
    await cli.run(['cups', 'db', '-p', '{"a":"b"}']);
    const [guid = ''] = await guids(`/v3/service_instances?names=db&space_guids=${ns}`);
    expect(await asked(`/v3/service_instances/${guid}`)).toMatchObject({ name: 'db', type: 'user-provided' });
    const binding = { type: 'app' as const, service: { name: guid }, appRef: { name: 'shop-guid' }, parameters: { name: '' } };
    await cluster.add(kinds.serviceBinding, { metadata: { name: 'binding-guid', namespace: ns }, spec: binding });
    const query = 'service_instance_names=db&app_names=shop&include=app,service_instance';
    const page = await asked<Page>(`/v3/service_credential_bindings?${query}`);
    expect([page.resources[0]?.guid, page.included]).toMatchObject([
      'binding-guid',
      { apps: [{ guid: 'shop-guid' }], service_instances: [{ guid }] },
    ]);
    const spec = { appRef: { name: 'shop-guid' }, command: 'ls', displayName: 'list' };
    await cluster.add(kinds.task, { metadata: { name: 'task-guid', namespace: ns }, spec });
    expect(await guids('/v3/apps/shop-guid/tasks?states=PENDING&names=list')).toEqual(['task-guid']);
    expect(await asked('-X', 'POST', '/v3/tasks/task-guid/actions/cancel')).toMatchObject({ state: 'CANCELING' });
    expect(await guids('/v3/stacks')).toEqual([]);
    expect(await asked('/v3/info')).toMatchObject({ name: 'kf', build: '0.1.0' });
    expect(await asked('/')).toMatchObject({ links: { cloud_controller_v3: { href: `${cluster.server.url}/v3` } } });
  });
});
