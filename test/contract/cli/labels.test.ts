// Labels of users on apps, orgs, spaces, routes, domains and service instances, and lists that they filter.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
const inSpace = 'in org example-org / space example-space as alice';
let cluster: ServedCluster;
let cli: Cli;

const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
const domainRef = { name: 'default-domain', namespace: 'cf' };

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  for (const name of ['shop', 'blog']) {
    const metadata = { name: `${name}-guid`, namespace: ns, labels: { [labels.guid]: `${name}-guid` } };
    await cluster.add(kinds.app, { metadata, spec: { displayName: name, desiredState: 'STOPPED', lifecycle } });
  }
  await cluster.add(kinds.route, {
    metadata: { name: 'route-guid', namespace: ns, labels: { [labels.domainGuid]: 'default-domain' } },
    spec: { host: 'shop', path: '/cart', domainRef, destinations: [] },
  });
  await cluster.add(kinds.serviceInstance, {
    metadata: { name: 'db-guid', namespace: ns },
    spec: { displayName: 'db', type: 'user-provided', secretName: 'db', planGuid: '', tags: [] },
  });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => cli.run(argv);
const patches = (): number => cluster.server.callsOf('PATCH .*').length;

const resources: [resource: string, name: string, announced: string][] = [
  ['app', 'shop', `app shop ${inSpace}`],
  ['route', 'shop.apps.localhost/cart', `route shop.apps.localhost/cart ${inSpace}`],
  ['service-instance', 'db', `service-instance db ${inSpace}`],
  ['space', 'example-space', 'space example-space in org example-org as alice'],
  ['domain', 'apps.localhost', 'domain apps.localhost as alice'],
  ['org', 'example-org', 'org example-org as alice'],
];

describe('labels', () => {
  it.each(resources)('of %s %s are set, listed and removed', async (resource, name, announced) => {
    const set = await run('set-label', resource, name, 'tier=web', 'example.com/env=prod', 'empty=');
    expect(set).toMatchObject({ code: 0, stderr: '', stdout: `Setting label(s) for ${announced}...\nOK\n\n` });
    const table = 'key               value\nempty             \nexample.com/env   prod\ntier              web\n';
    expect((await run('labels', resource.toUpperCase(), name)).stdout).toBe(`Getting labels for ${announced}...\n\n${table}`);
    const unset = await run('unset-label', resource, name, 'tier', 'empty');
    expect(unset).toMatchObject({ code: 0, stdout: `Removing label(s) for ${announced}...\nOK\n\n` });
    expect(JSON.parse((await run('labels', resource, name, '--json')).stdout)).toMatchObject({
      result: { resource, name, labels: { 'example.com/env': 'prod' } },
    });
  });

  it('that are so already, or not there, need no request', async () => {
    await run('set-label', 'app', 'shop', 'tier=web');
    const before = patches();
    const again = await run('set-label', 'app', 'shop', 'tier=web', '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ result: { labels: { tier: 'web' }, changed: false } });
    expect((await run('unset-label', 'app', 'shop', 'other')).code).toBe(0);
    expect(patches()).toBe(before);
    expect((await run('labels', 'app', 'blog')).stdout).toBe(`Getting labels for app blog ${inSpace}...\n\nNo labels found.\n`);
  });

  it('of the platform are neither listed nor changed', async () => {
    for (const argv of [
      ['set-label', 'app', 'shop', 'korifi.cloudfoundry.org/guid=x'],
      ['set-label', 'app', 'shop', 'ok=1', 'kf.cloudfoundry.org/part-of=x'],
      ['set-label', 'app', 'shop', 'app.kubernetes.io/managed-by=x'],
      ['unset-label', 'app', 'shop', 'korifi.cloudfoundry.org/guid'],
    ]) {
      const refused = await run(...argv);
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringMatching(/Metadata error: Names with '.*\/' are the platform's own/),
      ]);
    }
    expect([patches(), cluster.memory.peek(kinds.app, ns, 'shop-guid')?.metadata.labels]).toEqual([0, { [labels.guid]: 'shop-guid' }]);
  });

  it('of kf that is for users sets the strategy of changes that ask for none', async () => {
    const label = 'kf.cloudfoundry.org/strategy';
    expect(await run('set-label', 'app', 'shop', `${label}=recreate`)).toMatchObject({ code: 0 });
    expect((await run('labels', 'app', 'shop')).stdout).toMatch(new RegExp(`^${label} +recreate$`, 'm'));
    expect((await run('app', 'shop')).stdout).toMatch(/^strategy: +recreate \(default of the app\)$/m);
    expect(await run('unset-label', 'app', 'shop', label)).toMatchObject({ code: 0 });
    expect((await run('app', 'shop')).stdout).not.toContain('strategy:');
    expect(await run('set-label', 'space', 'example-space', `${label}=recreate`)).toMatchObject({ code: 0 });
    // As the controller does.
    await cluster.memory.mergePatch(kinds.app, ns, 'shop-guid', { status: { spaceStrategy: 'recreate' } }, { subresource: 'status' });
    const json = await run('app', 'shop', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ result: { defaultStrategy: { strategy: 'recreate', of: 'space' } } });
  });

  it.each([
    [
      ['set-label', 'app', 'shop', 'kf.cloudfoundry.org/strategy=canary'],
      "Metadata error: 'canary' cannot be the value of 'kf.cloudfoundry.org/strategy': only rolling and recreate can be a default.",
    ],
    [
      ['set-label', 'app', 'shop', 'tier'],
      "Metadata error: no value provided for label 'tier'\n\nTIP:\n   kf set-label RESOURCE RESOURCE_NAME tier=VALUE",
    ],
    [['set-label', 'app', 'shop', 'a b=c'], "Metadata error: 'a b' cannot be a name in labels"],
    [['set-label', 'app', 'shop', 'a=b=c'], "Metadata error: 'b=c' cannot be the value of a label"],
    [['set-label', 'app', 'shop'], 'the required argument `KEY=VALUE` was not provided'],
    [['unset-label', 'app', 'shop', 'a=b'], "Metadata error: 'a=b' is not the name of a label"],
    [['labels', 'task', 'shop'], "Unsupported resource type of 'task'"],
    [['labels', 'stack', 'cflinuxfs4'], 'A stack has no labels in kf: stacks and buildpacks are those of the builder'],
    [['set-label', 'service-plan', 'small', 'a=b'], 'A service-plan has no labels in kf: kf has user-provided services only'],
    [['labels', 'buildpack', 'java', '--stack', 'cflinuxfs4'], "'--stack' of 'labels' has no effect in kf"],
    [['labels', 'service-offering', 'db', '-b', 'broker'], "'-b' of 'labels' has no effect in kf"],
    [['labels', 'app', 'shap'], "App 'shap' not found.\n\nTIP:\n   Did you mean 'shop'?"],
    [['labels', 'org', 'nowhere'], "Organization 'nowhere' not found."],
    [['labels', 'space', 'nowhere'], "Space 'nowhere' not found."],
    [['labels', 'domain', 'example.org'], "Domain 'example.org' not found."],
    [['labels', 'service-instance', 'nothing'], "Service instance 'nothing' not found"],
    [['labels', 'route', 'other.apps.localhost'], "Route with host 'other' and domain 'apps.localhost' not found."],
    [['labels', 'route', 'shop.example.org'], 'No domain exists for route shop.example.org'],
    [['labels', 'route', 'shop'], "'shop' is no route; a route looks like host.example.com"],
  ])('%j fails in cf’s words', async (argv, why) => {
    const refused = await run(...argv);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(why);
    expect(patches()).toBe(0);
  });

  it('say which right is missing, and name a missing target', async () => {
    const message = 'cforgs.korifi.cloudfoundry.org "org-guid" is forbidden: User "alice" cannot patch resource "cforgs"';
    cluster.server.on('PATCH .*cforgs.*', (call) =>
      call.json({ kind: 'Status', status: 'Failure', reason: 'Forbidden', message, code: 403 }, 403),
    );
    const forbidden = await run('set-label', 'org', 'example-org', 'a=b');
    expect([forbidden.code, forbidden.stderr]).toEqual([1, expect.stringContaining('cannot patch resource "cforgs"')]);
    const untargeted = await cli.run(['labels', 'app', 'shop'], { env: { KF_ORG: '', KF_SPACE: '' } });
    expect([untargeted.code, untargeted.stderr]).toEqual([1, expect.stringContaining('No org targeted')]);
    expect((await cli.run(['labels', 'org', 'example-org'], { env: { KF_ORG: '', KF_SPACE: '' } })).code).toBe(0);
  });
});

describe('--labels', () => {
  it.each([
    ['apps', ['app', 'shop'], 'shop', 'blog', 'No apps found'],
    ['routes', ['route', 'shop.apps.localhost/cart'], '/cart', 'nothing', 'No routes found.'],
    ['spaces', ['space', 'example-space'], 'example-space\n', 'nothing', 'No spaces found.'],
    ['domains', ['domain', 'apps.localhost'], 'apps.localhost', 'nothing', 'No domains found.'],
    ['orgs', ['org', 'example-org'], 'example-org\n', 'nothing', 'No orgs found.'],
  ] as const)('of %s lists only what has them', async (command, resource, found, other, none) => {
    await run('set-label', ...resource, 'tier=web');
    const listed = await run(command, '--labels', 'tier=web');
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(found) as string });
    expect(listed.stdout).not.toContain(other);
    expect(await run(command, '--labels', 'tier=db')).toMatchObject({ code: 0, stdout: expect.stringContaining(none) as string });
  });

  it('of routes --org-level goes through all spaces', async () => {
    await run('set-label', 'route', 'shop.apps.localhost/cart', 'tier=web');
    expect((await run('routes', '--org-level', '--labels', 'tier=web')).stdout).toContain('/cart');
    expect((await run('routes', '--org-level', '--labels', 'tier=db')).stdout).toContain('No routes found.');
  });

  it('with a wrong selector shows what the API server says', async () => {
    const message = "unable to parse requirement: found '=', expected: identifier";
    cluster.server.on('GET .*cfapps.*', (call) =>
      call.json({ kind: 'Status', status: 'Failure', reason: 'BadRequest', message, code: 400 }, 400),
    );
    const refused = await run('apps', '--labels', '==');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});
