import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  await addSpace('other', 'org-guid');
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

async function addSpace(name: string, org: string): Promise<void> {
  await cluster.add(kinds.space, { metadata: { name: `${name}-guid`, namespace: org }, spec: { displayName: name } });
}

async function addRoute(name: string, path?: string, app?: string): Promise<void> {
  const destinations = app === undefined ? [] : [{ guid: name, appRef: { name: app }, processType: 'web' }];
  await cluster.add(kinds.route, {
    metadata: { name, namespace: 'space-guid', labels: { [labels.domainGuid]: 'default-domain' } },
    spec: {
      host: 'shop',
      ...(path === undefined ? {} : { path }),
      domainRef: { name: 'default-domain', namespace: 'cf' },
      destinations,
    },
  });
}

/** Acts as the controller: the routes of a space get one condition Claimed after the other, the last one from then on. */
function claim(...statuses: ('True' | 'False')[]): void {
  cluster.memory.intercept = (verb, seen) => {
    if (verb !== 'watch' || seen.plural !== kinds.route.plural) return;
    const status = statuses.length > 1 ? statuses.shift() : statuses[0];
    setTimeout(() => {
      for (const { metadata } of cluster.memory.all(kinds.route)) {
        const claimed = { type: 'Claimed', status, reason: status === 'True' ? 'Claimed' : 'DuplicateName', message: 'taken' };
        const conditions = [{ ...claimed, observedGeneration: 1, lastTransitionTime: '2026-08-07T10:16:20Z' }];
        const patch = { metadata: { generation: 1 }, status: { conditions } };
        void cluster.memory.mergePatch(kinds.route, metadata.namespace, metadata.name ?? '', patch, { subresource: 'status' });
      }
    }, 20);
  };
}

const routes = (): string[] =>
  cluster.memory.all(kinds.route).map(({ metadata, spec }) => `${metadata.namespace ?? ''} ${spec.host ?? ''}${spec.path ?? ''}`);
const move = (...argv: string[]): Promise<CliRun> => cli.run(['move-route', 'apps.localhost', '--hostname', 'shop', ...argv]);

it('of a route without apps makes it in the other space', async () => {
  await addRoute('r', '/cart');
  claim('True');
  const run = await move('--path', 'cart', '-s', 'other');
  expect(run.code).toBe(0);
  expect(run.stdout).toBe('Move ownership of route shop.apps.localhost/cart to space other as alice\nOK\n\n');
  expect(routes()).toEqual(['other-guid shop/cart']);
});

it('of a route whose status changes meanwhile looks at it again', async () => {
  await addRoute('r');
  claim('True');
  const { intercept } = cluster.memory;
  let isFirst = true;
  cluster.memory.intercept = async (verb, seen, name) => {
    if (verb === 'patch' && isFirst) {
      isFirst = false;
      await cluster.memory.mergePatch(kinds.route, 'space-guid', 'r', { status: { uri: 'changed' } }, { subresource: 'status' });
    }
    await intercept(verb, seen, name);
  };
  expect(await move('-s', 'other')).toMatchObject({ code: 0 });
  expect([isFirst, routes()]).toEqual([false, ['other-guid shop']]);
});

it('-o names the org of the other space', async () => {
  await cluster.add(kinds.org, { metadata: { name: 'second-guid', namespace: 'cf' }, spec: { displayName: 'second-org' } });
  await addSpace('far', 'second-guid');
  await addRoute('r');
  claim('True');
  expect((await move('-s', 'far')).stderr).toContain("Space 'far' not found.");
  const json = await move('-s', 'far', '-o', 'second-org', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ result: { url: 'shop.apps.localhost', space: 'far', moved: true } });
  expect(routes()).toEqual(['far-guid shop']);
});

it('deletes the route only when the new one has its host, so that the host is never free', async () => {
  await addRoute('r');
  claim('True');
  expect((await move('-s', 'other')).code).toBe(0);
  const writes = cluster.server
    .callsOf('(PATCH|POST|DELETE) .*cfroutes.*')
    .map(({ method, path }) => `${method} ${path.split('?')[0] ?? ''}`);
  const [given, made, deleted] = writes.filter((text) => !text.endsWith('/status'));
  expect([given, deleted].map((text) => text?.replace(/ .*namespaces/, ' '))).toEqual([
    'PATCH /space-guid/cfroutes/r',
    'DELETE /space-guid/cfroutes/r',
  ]);
  expect(made).toMatch(/^POST .*\/other-guid\/cfroutes$/);
});

it('takes its permission back when the new space does not get the host', async () => {
  await addRoute('r');
  claim('False');
  const run = await move('-s', 'other');
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('taken') as string });
  expect(routes()).toEqual(['space-guid shop']);
  expect(cluster.memory.all(kinds.route)[0]?.metadata.annotations).not.toHaveProperty('kf.cloudfoundry.org/moves-to');
});

it('only deletes the route when an interrupted move has brought the host to the new space', async () => {
  await addRoute('r');
  const present = cluster.memory.all(kinds.route)[0];
  const conditions = [
    { type: 'Claimed', status: 'True' as const, reason: 'Claimed', message: '', lastTransitionTime: '2026-08-07T10:16:20Z' },
  ];
  const metadata = { name: 'new', namespace: 'other-guid', labels: { [labels.domainGuid]: 'default-domain' } };
  await cluster.add(kinds.route, { metadata, spec: present?.spec ?? { domainRef: {} } });
  await cluster.memory.mergePatch(kinds.route, 'other-guid', 'new', { status: { conditions } }, { subresource: 'status' });
  expect((await move('-s', 'other')).code).toBe(0);
  expect(cluster.server.callsOf('POST .*cfroutes.*')).toEqual([]);
  expect(routes()).toEqual(['other-guid shop']);
});

it('keeps the route in its space when the other one may not have it', async () => {
  await addRoute('r');
  cluster.server.on('POST .*/other-guid/cfroutes', (call) => call.fail(403, 'Forbidden', 'cfroutes.korifi.cloudfoundry.org is forbidden'));
  const run = await move('-s', 'other');
  expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED\n') as string });
  expect(routes()).toEqual(['space-guid shop']);
});

it('into its own space changes nothing, with OK', async () => {
  await addRoute('r');
  const run = await move('-s', 'example-space');
  expect(run).toMatchObject({ code: 0, stderr: "Space 'example-space' has the route 'shop.apps.localhost' already.\n" });
  expect(cluster.server.callsOf('(POST|DELETE) .*cfroutes.*')).toEqual([]);
});

it('of a route with an app, or with another path of its host, is refused before anything is written', async () => {
  const spec = { displayName: 'my-app', desiredState: 'STARTED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'my-app-guid', namespace: 'space-guid' }, spec });
  await addRoute('r', '/cart', 'my-app-guid');
  const mapped = await move('--path', 'cart', '-s', 'other');
  expect(mapped.stderr).toContain(
    "Route 'shop.apps.localhost/cart' is mapped to app 'my-app': a route leads only to apps of its own space.",
  );
  expect(mapped.stderr).toContain('kf unmap-route my-app apps.localhost -n shop --path /cart');
  await addRoute('root');
  const second = await move('-s', 'other');
  expect(second.stderr).toContain("Route 'shop.apps.localhost' cannot move alone: the space also has 'shop.apps.localhost/cart'");
  expect([mapped.code, second.code, cluster.server.callsOf('(POST|DELETE) .*cfroutes.*')]).toEqual([1, 1, []]);
});

it.each([
  [['-s', 'nowhere'], "Space 'nowhere' not found."],
  [['-s', 'other', '-o', 'nowhere'], "Organization 'nowhere' not found."],
  [['-s', 'other', '--path', 'none'], "Route with host 'shop', domain 'apps.localhost', and path '/none' not found."],
  [[], "Incorrect Usage: the required flag `-s' was not specified"],
])('%j prints %s', async (argv, message) => {
  await addRoute('r');
  const run = await move(...argv);
  expect(run.code).toBe(1);
  expect(run.stderr).toContain(message);
  expect(routes()).toEqual(['space-guid shop']);
});
