// The commands about single routes, as a user types them.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { leaseType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { nameClaims } from '../../../src/lib/api/names.ts';
import type { RouteDestination } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

const address = ['apps.localhost', '-n', 'shop'];
const docker = { type: 'docker', data: { stack: '' } } as const;

interface RouteSpec {
  name?: string;
  host?: string;
  path?: string;
  space?: string;
  apps?: string[];
}

async function addRoute({ name = 'r', host = 'shop', path, space = ns, apps = [] }: RouteSpec = {}): Promise<void> {
  const destinations = apps.map((app): RouteDestination => ({
    guid: `${name}-${app}`,
    appRef: { name: app },
    processType: 'web',
    port: 8080,
  }));
  const domainRef = { name: 'default-domain', namespace: 'cf' };
  await cluster.add(kinds.route, {
    metadata: { name, namespace: space, labels: { [labels.domainGuid]: 'default-domain' } },
    spec: { host, ...(path === undefined ? {} : { path }), domainRef, destinations },
  });
}

/** The Leases with which the controller keeps an address for a route. */
async function addLeases(namespace: string, name: string, host = 'shop', path = ''): Promise<void> {
  const domainRef = { name: 'default-domain', namespace: 'cf' };
  const claims = [nameClaims.routeHost(`${host}.apps.localhost`), nameClaims.route({ metadata: {}, spec: { host, path, domainRef } })];
  for (const { leaseName } of claims) {
    const owner = { [annotations.leaseOwnerNamespace]: namespace, [annotations.leaseOwnerName]: name };
    await cluster.add(leaseType, { metadata: { name: leaseName, namespace: 'cf', annotations: owner }, spec: {} });
  }
}

async function addApp(): Promise<void> {
  const spec = { displayName: 'my-app', desiredState: 'STARTED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'my-app-guid', namespace: ns }, spec });
}

async function addSpace(name: string): Promise<void> {
  await cluster.add(kinds.space, { metadata: { name: `${name}-guid`, namespace: 'org-guid' }, spec: { displayName: name } });
}

type Said = [type: string, status: 'True' | 'False', message?: string];

/** Acts as the controller: each route that a command waits for gets these conditions for its generation. */
function answerRoutes(...said: Said[]): void {
  cluster.memory.intercept = (verb, seen) => {
    if (verb !== 'watch' || seen.plural !== kinds.route.plural) return;
    setTimeout(() => {
      for (const { metadata } of cluster.memory.all(kinds.route)) {
        const observedGeneration = metadata.generation ?? 1;
        const conditions = said.map(([type, status, message = '']) => ({
          ...{ type, status, message, observedGeneration },
          reason: status === 'True' ? type : 'DuplicateName',
          lastTransitionTime: '2026-08-07T10:16:20Z',
        }));
        const patch = { metadata: { generation: observedGeneration }, status: { conditions } };
        void cluster.memory.mergePatch(kinds.route, metadata.namespace, metadata.name ?? '', patch, { subresource: 'status' });
      }
    }, 20);
  };
}

const routes = (): (string | undefined)[] => cluster.memory.all(kinds.route).map(({ metadata }) => metadata.name);
const forbid = (call: string, resource: string): unknown =>
  cluster.server.on(call, (answer) =>
    answer.fail(403, 'Forbidden', `${resource}.korifi.cloudfoundry.org is forbidden: User "alice" cannot do that`),
  );

describe('create-route', () => {
  it('makes a route without an app, and says so', async () => {
    answerRoutes(['Claimed', 'True']);
    const run = await cli.run(['create-route', 'apps.localhost', '--hostname', 'Shop', '--path', 'cart']);
    expect(run.code).toBe(0);
    expect(run.stdout).toBe(
      [
        'Creating route shop.apps.localhost/cart for org example-org / space example-space as alice...',
        'Route shop.apps.localhost/cart has been created.',
        'OK',
        '',
        '',
      ].join('\n'),
    );
    const [route] = cluster.memory.all(kinds.route);
    expect(route?.spec).toMatchObject({ host: 'shop', path: '/cart', destinations: [], domainRef: { name: 'default-domain' } });
  });

  it('says what is there already, with OK, and changes nothing', async () => {
    await addRoute();
    await addRoute({ name: 'cart', path: '/cart' });
    const run = await cli.run(['create-route', ...address]);
    expect(run).toMatchObject({ code: 0, stderr: "Route already exists with host 'shop' for domain 'apps.localhost'.\n" });
    expect(run.stdout).toMatch(/\.\.\.\nOK\n\n$/);
    const json = await cli.run(['create-route', ...address, '--path', 'cart', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      result: { url: 'shop.apps.localhost/cart', created: false },
      warnings: ["Route already exists with host 'shop' and path '/cart' for domain 'apps.localhost'."],
    });
    expect(cluster.server.callsOf('(POST|PATCH|DELETE) .*cfroutes.*')).toEqual([]);
  });

  it('fails when another space has the host, names it, and leaves nothing behind', async () => {
    await addSpace('other');
    await addRoute({ name: 'theirs', space: 'other-guid' });
    await addLeases('other-guid', 'theirs');
    cluster.memory.intercept = (verb, seen) => {
      if (verb !== 'watch' || seen.plural !== kinds.route.plural) return;
      setTimeout(() => {
        const own = cluster.memory.all(kinds.route).find(({ metadata }) => metadata.namespace === ns)?.metadata.name ?? '';
        const time = { observedGeneration: 1, lastTransitionTime: '2026-08-07T10:16:20Z' };
        const conditions = [{ type: 'Claimed', status: 'False', reason: 'DuplicateName', message: 'taken', ...time }];
        const patch = { metadata: { generation: 1 }, status: { conditions } };
        void cluster.memory.mergePatch(kinds.route, ns, own, patch, { subresource: 'status' });
      }, 20);
    };
    const run = await cli.run(['create-route', ...address]);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(
      "Route already exists with host 'shop' for domain 'apps.localhost'. Org 'example-org' / space 'other' has this host, with all its paths.",
    );
    expect(routes()).toEqual(['theirs']);
  });

  it('names the right that is missing', async () => {
    forbid('POST .*cfroutes', 'cfroutes');
    const run = await cli.run(['create-route', ...address]);
    expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED\n') as string });
    expect(run.stderr).toContain('cfroutes');
  });

  it('ends at Ctrl-C while it waits for the controller', async () => {
    const run = await cli.run(['create-route', ...address], { kill: { after: 'Waiting for the controller', signal: 'SIGINT' } });
    expect(run.code).toBe(130);
  });
});

describe('check-route', () => {
  it.each([
    ['cart', 'does exist'],
    ['', 'does not exist'],
  ])('with path %j says that the route %s', async (path, answer) => {
    await addSpace('other');
    await addRoute({ name: 'theirs', path: '/cart', space: 'other-guid' });
    await addLeases('other-guid', 'theirs', 'shop', '/cart');
    const url = `shop.apps.localhost${path === '' ? '' : `/${path}`}`;
    const run = await cli.run(['check-route', ...address, '--path', path]);
    expect(run).toMatchObject({ code: 0, stderr: '', stdout: `Checking for route...\nRoute '${url}' ${answer}.\nOK\n\n` });
  });

  it('knows a route of a space that the caller may not read', async () => {
    await addLeases('secret-guid', 'theirs');
    forbid('GET .*/secret-guid/cfroutes/theirs', 'cfroutes');
    expect(JSON.parse((await cli.run(['check-route', ...address, '--json'])).stdout)).toMatchObject({
      result: { url: 'shop.apps.localhost', exists: true },
    });
  });

  it('does not take the Lease of a deleted route for the route', async () => {
    await addLeases(ns, 'gone');
    expect((await cli.run(['check-route', ...address])).stdout).toContain("Route 'shop.apps.localhost' does not exist.\nOK\n");
  });
});

describe('route', () => {
  it("shows the route as cf does, with its apps' processes and ports", async () => {
    await addApp();
    await addRoute({ path: '/cart', apps: ['my-app-guid'] });
    const run = await cli.run(['route', ...address, '--path', 'cart']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toBe(
      [
        'Showing route shop.apps.localhost/cart in org example-org / space example-space as alice...',
        '',
        'domain:     apps.localhost',
        'host:       shop',
        'port:       ',
        'path:       /cart',
        'protocol:   http',
        'options:    ',
        '',
        'Destinations:',
        '\tapp      process   port   app-protocol',
        '\tmy-app   web       8080   http1',
        '',
      ].join('\n'),
    );
    const json = await cli.run(['ro', ...address, '--path', 'cart', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      result: { url: 'shop.apps.localhost/cart', destinations: [{ app: 'my-app', process: 'web', port: 8080, protocol: 'http1' }] },
    });
  });

  it('without a path is not the route of a path, and names the space that has the host', async () => {
    await addSpace('other');
    await addRoute({ name: 'theirs', space: 'other-guid' });
    await addLeases('other-guid', 'theirs');
    const run = await cli.run(['route', ...address, '--path', 'cart']);
    expect(run.code).toBe(1);
    expect(run.stderr).toBe(
      [
        "Route with host 'shop', domain 'apps.localhost', and path '/cart' not found.",
        '',
        'TIP:',
        "   Org 'example-org' / space 'other' has this host, with all its paths.",
        '   kf routes',
        '',
      ].join('\n'),
    );
  });
});

describe('delete-route', () => {
  it('takes the apps from the route first, waits for the gateway, then deletes it', async () => {
    await addApp();
    await addRoute({ apps: ['my-app-guid'] });
    await addRoute({ name: 'cart', path: '/cart' });
    answerRoutes(['Claimed', 'True'], ['Programmed', 'True']);
    const run = await cli.run(['delete-route', ...address, '-f']);
    expect(run.code).toBe(0);
    expect(run.stdout).toBe(
      [
        'This action impacts all apps using this route.',
        'Deleting this route will make apps unreachable via this route.',
        'Deleting route shop.apps.localhost...',
        'OK',
        '',
        '',
      ].join('\n'),
    );
    expect(cluster.server.callsOf('(PATCH|DELETE) .*cfroutes.*').map(({ method }) => method)).toEqual(['PATCH', 'DELETE']);
    expect(routes()).toEqual(['cart']);
    expect((await cli.run(['delete-route', ...address, '--path', 'cart', '-f'])).code).toBe(0);
    expect(routes()).toEqual([]);
  });

  it('says that there is no such route, with OK, and who has the host', async () => {
    await addSpace('other');
    await addRoute({ name: 'theirs', space: 'other-guid' });
    await addLeases('other-guid', 'theirs');
    const run = await cli.run(['delete-route', ...address, '-f']);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain("Unable to delete. Route with host 'shop' and domain 'apps.localhost' not found.\nOK\n");
    expect(run.stderr).toContain("Org 'example-org' / space 'other' has the host of 'shop.apps.localhost', with all its paths.\n");
    expect(routes()).toEqual(['theirs']);
  });

  it('deletes a refused route without waiting for the gateway', async () => {
    await addRoute({ apps: ['my-app-guid'] });
    const refused = { type: 'Claimed', status: 'False', reason: 'DuplicateName', message: '', lastTransitionTime: '2026-08-07T10:16:20Z' };
    await cluster.memory.mergePatch(kinds.route, ns, 'r', { status: { conditions: [refused] } }, { subresource: 'status' });
    expect(await cli.run(['delete-route', ...address, '-f'])).toMatchObject({ code: 0, stderr: '' });
    expect(routes()).toEqual([]);
  });

  it('asks only on a terminal, and deletes nothing otherwise', async () => {
    await addRoute();
    const run = await cli.run(['delete-route', ...address], { stdin: '' });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('-f');
    expect(routes()).toEqual(['r']);
  });

  it('names the right that is missing', async () => {
    await addRoute();
    forbid('DELETE .*cfroutes.*', 'cfroutes');
    const run = await cli.run(['delete-route', ...address, '-f']);
    expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED\n') as string });
    expect(routes()).toEqual(['r']);
  });
});

describe('delete-orphaned-routes', () => {
  it('deletes the routes of the space that lead to no app, and no others', async () => {
    await addApp();
    await addSpace('other');
    await addRoute({ name: 'mapped', apps: ['my-app-guid'] });
    await addRoute({ name: 'a', host: 'a' });
    await addRoute({ name: 'b', host: 'b', path: '/b' });
    await addRoute({ name: 'theirs', host: 'theirs', space: 'other-guid' });
    const run = await cli.run(['delete-orphaned-routes', '-f']);
    expect(run).toMatchObject({ code: 0, stderr: '', stdout: 'Deleting orphaned routes as alice...\nOK\n\n' });
    expect(routes().toSorted()).toEqual(['mapped', 'theirs']);
    expect(JSON.parse((await cli.run(['delete-orphaned-routes', '-f', '--json'])).stdout)).toMatchObject({ result: { deleted: [] } });
  });

  it('leaves a route that was mapped after it was read', async () => {
    await addRoute();
    let isMapped = false;
    cluster.memory.intercept = async (verb, seen) => {
      if (verb !== 'delete' || seen.plural !== kinds.route.plural || isMapped) return;
      isMapped = true;
      const destinations = [{ guid: 'd', appRef: { name: 'my-app-guid' }, processType: 'web' }];
      await cluster.memory.mergePatch(kinds.route, ns, 'r', { spec: { destinations } });
    };
    expect((await cli.run(['delete-orphaned-routes', '-f'])).code).toBe(0);
    expect([isMapped, routes()]).toEqual([true, ['r']]);
  });

  it('asks only on a terminal, and deletes nothing otherwise', async () => {
    await addRoute();
    expect((await cli.run(['delete-orphaned-routes'], { stdin: '' })).code).toBe(1);
    expect(routes()).toEqual(['r']);
  });
});

describe('routes --org-level', () => {
  it('lists the routes of all spaces of the org', async () => {
    await addSpace('other');
    await addRoute();
    await addRoute({ name: 'theirs', host: 'blog', space: 'other-guid' });
    const run = await cli.run(['routes', '--org-level']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(
      /^Getting routes for org example-org as alice\.\.\.\n\nspace +host +domain .*\nexample-space +shop .*\nother +blog /,
    );
    expect((await cli.run(['routes'])).stdout).not.toContain('blog');
  });

  it('names the spaces whose routes the caller may not read', async () => {
    await addSpace('other');
    await addRoute();
    forbid('GET .*/other-guid/cfroutes', 'cfroutes');
    const run = await cli.run(['routes', '--org-level', '--json']);
    expect(run.code).toBe(0);
    expect(JSON.parse(run.stdout)).toMatchObject({
      result: [{ space: 'example-space', url: 'shop.apps.localhost' }],
      warnings: ["The routes of space 'other' are not in the list: you may not read them."],
    });
  });
});

describe('a route command', () => {
  it.each([
    [['create-route', 'apps.localhorst', '-n', 'x'], "Domain 'apps.localhorst' not found."],
    [['create-route', 'apps.localhost'], "Missing host. Routes on domain 'apps.localhost' must have a host."],
    [['create-route', 'apps.localhost', '-n', 'a_b'], "The host 'a_b' is not a valid name"],
    [['create-route', 'apps.localhost', '-n', 'x', '--path', 'a b'], "The path '/a b' of a route contains characters"],
    [['create-route'], 'Incorrect Usage: the required argument `DOMAIN'],
    [['create-route', 'apps.localhost', '--port', '80'], "kf does not support '--port' of 'create-route' yet."],
    [['check-route', 'apps.localhorst', '-n', 'x'], "Domain 'apps.localhorst' not found."],
    [['check-route', 'apps.localhost', '--port', '80'], "kf does not support '--port' of 'check-route' yet."],
    [['route', 'apps.localhorst', '-n', 'x'], "Domain 'apps.localhorst' not found."],
    [['route', 'apps.localhost', '--port', '80'], "kf does not support '--port' of 'route' yet."],
    [['delete-route', 'apps.localhorst', '-n', 'x', '-f'], "Domain 'apps.localhorst' not found."],
    [['delete-route', 'apps.localhost', '--port', '80'], "kf does not support '--port' of 'delete-route' yet."],
    [['delete-orphaned-routes', 'x', '-f'], 'Incorrect Usage'],
  ])('%j is refused: %s', async (argv, message) => {
    const run = await cli.run(argv);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect(cluster.server.callsOf('(POST|PATCH|DELETE) .*cfroutes.*')).toEqual([]);
  });

  it.each(['create-route', 'check-route', 'route', 'delete-route', 'delete-orphaned-routes'])('%s needs a target', async (command) => {
    const run = await cli.run([command, ...(command === 'delete-orphaned-routes' ? [] : address)], { env: { KF_ORG: '', KF_SPACE: '' } });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("No org targeted, use 'kf target -o ORG' to target an org.");
  });
});

describe('options', () => {
  it('update-route takes what gateways do anyway, and says so as cf does', async () => {
    await addRoute({ path: '/cart' });
    const text = 'Updating route shop.apps.localhost/cart for org example-org / space example-space as alice...\n';
    for (const flags of [
      ['-o', 'loadbalancing=round-robin'],
      ['-r', 'loadbalancing'],
    ]) {
      const updated = await cli.run(['update-route', ...address, '--path', 'cart', ...flags]);
      expect(updated).toMatchObject({ code: 0, stderr: '' });
      expect(updated.stdout).toBe(`${text}Route shop.apps.localhost/cart has been updated\nOK\n\n`);
    }
    const missing = await cli.run(['update-route', 'apps.localhost', '-n', 'none', '-o', 'loadbalancing=round-robin']);
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("Route with host 'none'") as string });
  });

  it.each([
    [[], 'No options were specified'],
    [['-o', 'loadbalancing=least-connection'], 'requests go to the instances in turn'],
    [['-o', 'loadbalancing=hash', '-o', 'hash_header=X-User'], 'the Gateway API has no setting for it'],
    [['-o', 'loadbalancing'], "the option 'loadbalancing' needs a value"],
    [['-o', 'colour=red'], "there is no option 'colour' of a route"],
    [['-r', 'colour'], "there is no option 'colour' of a route"],
  ])('update-route %j is refused: %s', async (flags, text) => {
    await addRoute();
    expect(await cli.run(['update-route', ...address, ...flags])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(text) as string,
    });
  });
});

describe('unmap-route', () => {
  beforeEach(async () => {
    const spec = { displayName: 'shop', desiredState: 'STARTED' as const, lifecycle: docker };
    await cluster.add(kinds.app, { metadata: { name: 'app', namespace: ns }, spec });
  });

  /** Somebody deletes the route as soon as it does not lead to the app any more. */
  async function unmap(): Promise<[number | null, string]> {
    await addRoute({ apps: ['app'] });
    cluster.memory.intercept = (verb) => void (verb === 'patch' && setTimeout(() => void cluster.memory.delete(kinds.route, ns, 'r'), 200));
    const { code, stdout } = await cli.run(['unmap-route', 'shop', ...address]);
    return [code, stdout];
  }

  it('is done when somebody deletes the route before the gateway has let go of it', async () => {
    expect(await unmap()).toEqual([0, expect.stringMatching(/OK\n/)]);
  });

  it('takes the route that has the address, not one that was refused it', async () => {
    await addRoute({ name: 'a' });
    const claimed = { type: 'Claimed', status: 'False', reason: 'DuplicateRoute', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
    await cluster.memory.mergePatch(kinds.route, ns, 'a', { status: { conditions: [claimed] } }, { subresource: 'status' });
    expect(await unmap()).toEqual([0, expect.not.stringContaining('not currently mapped')]);
  });
});
