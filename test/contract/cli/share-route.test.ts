import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
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

async function addRoute(name: string, spec: Partial<CFRoute['spec']> = {}, namespace = 'space-guid'): Promise<void> {
  await cluster.add(kinds.route, {
    metadata: { name, namespace, uid: `${name}-uid`, labels: { [labels.domainGuid]: 'default-domain' } },
    spec: { host: 'shop', domainRef: { name: 'default-domain', namespace: 'cf' }, destinations: [], ...spec },
  });
}

/** Acts as the controller: routes get the condition Claimed, and the gateway has loaded them. */
function judge(status: 'True' | 'False'): void {
  cluster.memory.intercept = (verb, seen) => {
    if (verb !== 'watch' || seen.plural !== kinds.route.plural) return;
    setTimeout(() => {
      for (const { metadata } of cluster.memory.all(kinds.route)) {
        const conditions = ['Claimed', 'Programmed', 'Ready'].map((type) => ({
          ...{ type, status, reason: status === 'True' ? 'Fine' : 'NotShared', message: 'not shared' },
          ...{ observedGeneration: metadata.generation ?? 1, lastTransitionTime: '2026-08-07T10:16:20Z' },
        }));
        const patch = { status: { conditions } };
        void cluster.memory.mergePatch(kinds.route, metadata.namespace, metadata.name ?? '', patch, { subresource: 'status' });
      }
    }, 20);
  };
}

const routesIn = (namespace: string): CFRoute[] =>
  cluster.memory.all(kinds.route).filter(({ metadata }) => metadata.namespace === namespace);
const share = (...argv: string[]): Promise<CliRun> => cli.run(['share-route', 'apps.localhost', '--hostname', 'shop', ...argv]);
const unshare = (...argv: string[]): Promise<CliRun> => cli.run(['unshare-route', 'apps.localhost', '--hostname', 'shop', ...argv]);

it('names the other space in the route, and makes the other half there', async () => {
  await addRoute('root');
  await addRoute('r', { path: '/cart' });
  const { uid } = routesIn('space-guid').find(({ metadata }) => metadata.name === 'r')?.metadata ?? {};
  judge('True');
  const run = await share('--path', 'cart', '-s', 'other');
  expect(run).toMatchObject({ code: 0, stdout: 'Sharing route shop.apps.localhost/cart to space other as alice\nOK\n\n' });
  expect(routesIn('space-guid').map(({ metadata, spec }) => [metadata.name, spec.sharedWith])).toEqual([
    ['root', undefined],
    ['r', ['other-guid']],
  ]);
  expect(routesIn('other-guid').map(({ spec }) => spec)).toMatchObject([
    { host: 'shop', path: '/cart', destinations: [], sharedFrom: { space: 'space-guid', route: 'r', uid } },
  ]);
  const again = await share('--path', 'cart', '-s', 'other', '--json');
  expect(JSON.parse(again.stdout)).toMatchObject({ result: { url: 'shop.apps.localhost/cart', space: 'other', shared: false } });
  expect(routesIn('other-guid')).toHaveLength(1);
});

it('-o names the org of the other space', async () => {
  await cluster.add(kinds.org, { metadata: { name: 'second-guid', namespace: 'cf' }, spec: { displayName: 'second-org' } });
  await addSpace('far', 'second-guid');
  await addRoute('r');
  judge('True');
  expect((await share('-s', 'far')).stderr).toContain("Space 'far' not found.");
  expect(await share('-s', 'far', '-o', 'second-org')).toMatchObject({ code: 0 });
  expect(routesIn('far-guid')).toHaveLength(1);
});

it('takes its half back when the other one is refused', async () => {
  await addRoute('r');
  judge('False');
  expect(await share('-s', 'other')).toMatchObject({ code: 1 });
  expect([routesIn('other-guid'), routesIn('space-guid')[0]?.spec.sharedWith ?? []]).toEqual([[], []]);
});

it('leaves the route shared when another command has made the other half at the same moment', async () => {
  await addRoute('r');
  const owner = routesIn('space-guid')[0]?.metadata;
  judge('True');
  const accept = cluster.memory.intercept;
  cluster.memory.intercept = async (verb, seen, name) => {
    if (verb !== 'create' || seen.plural !== kinds.route.plural) return accept(verb, seen, name);
    cluster.memory.intercept = () => undefined;
    await addRoute('theirs', { sharedFrom: { space: 'space-guid', route: 'r', uid: owner?.uid ?? '' } }, 'other-guid');
    cluster.memory.intercept = (next, what) => {
      if (next !== 'watch' || what.plural !== kinds.route.plural) return;
      setTimeout(() => {
        for (const { metadata } of cluster.memory.all(kinds.route).filter(({ spec }) => spec.sharedFrom !== undefined)) {
          const isTheirs = metadata.name === 'theirs';
          const said = {
            type: 'Claimed',
            status: isTheirs ? 'True' : 'False',
            reason: isTheirs ? 'Claimed' : 'DuplicateName',
            message: 'm',
          };
          const conditions = [{ ...said, observedGeneration: 1, lastTransitionTime: '2026-08-07T10:16:20Z' }];
          void cluster.memory.mergePatch(kinds.route, 'other-guid', metadata.name, { status: { conditions } }, { subresource: 'status' });
        }
      }, 20);
    };
  };
  const run = await share('-s', 'other', '--json');
  expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { result: { space: 'other', shared: true } }]);
  expect(routesIn('other-guid').map(({ metadata }) => metadata.name)).toEqual(['theirs']);
  expect(routesIn('space-guid')[0]?.spec.sharedWith).toEqual(['other-guid']);
});

it('is refused for the own space, for a route of another space, and without -s', async () => {
  await addRoute('r');
  judge('True');
  expect((await share('-s', 'example-space')).stderr).toContain('Routes cannot be shared into the space where they were created.');
  expect((await share()).stderr).toContain("the required flag `-s' was not specified");
  await cluster.memory.delete(kinds.route, 'space-guid', 'r');
  await addRoute('half', { sharedFrom: { space: 'third-guid', route: 'theirs', uid: 'u' } });
  for (const run of [
    await share('-s', 'other'),
    await unshare('-s', 'other'),
    await cli.run(['delete-route', 'apps.localhost', '-n', 'shop', '-f']),
  ])
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('belongs to another space') as string });
  expect((await cli.run(['delete-orphaned-routes', '-f'])).code).toBe(0);
  expect(routesIn('space-guid')).toHaveLength(1);
});

it('unshare-route takes the space away, and deletes the half there', async () => {
  await cluster.add(kinds.org, { metadata: { name: 'second-guid', namespace: 'cf' }, spec: { displayName: 'second-org' } });
  await addSpace('far', 'second-guid');
  await addRoute('root');
  await addRoute('r', { path: '/cart' });
  judge('True');
  await share('--path', 'cart', '-s', 'other');
  await share('--path', 'cart', '-s', 'far', '-o', 'second-org');
  const run = await unshare('--path', 'cart', '-s', 'far', '-o', 'second-org');
  expect(run).toMatchObject({ code: 0, stdout: 'Unsharing route shop.apps.localhost/cart from space far as alice\nOK\n\n' });
  expect([routesIn('far-guid').length, routesIn('other-guid').length]).toEqual([0, 1]);
  expect(routesIn('space-guid').map(({ spec }) => spec.sharedWith)).toEqual([undefined, ['other-guid']]);
  const json = await unshare('--path', 'cart', '-s', 'far', '-o', 'second-org', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ result: { url: 'shop.apps.localhost/cart', space: 'far', unshared: false } });
});

it('delete-route deletes the halves in other spaces too', async () => {
  await addRoute('r');
  judge('True');
  await share('-s', 'other');
  expect(await cli.run(['delete-route', 'apps.localhost', '-n', 'shop', '-f'])).toMatchObject({ code: 0 });
  expect([...routesIn('space-guid'), ...routesIn('other-guid')]).toEqual([]);
});

describe('the spaces of a route in kf curl', () => {
  const path = '/v3/routes/r/relationships/shared_spaces';
  const body = (...guids: string[]): string => JSON.stringify({ data: guids.map((guid) => ({ guid })) });
  const post = (data: string): Promise<CliRun> => cli.run(['curl', '-X', 'POST', path, '-d', data]);
  const spaces = async (route: string): Promise<unknown> => {
    const { stdout } = await cli.run(['curl', `/v3/routes/${route}/relationships/shared_spaces`, '--fail']);
    return (JSON.parse(stdout) as { data: unknown }).data;
  };
  const detail = ({ stdout }: CliRun): string => (JSON.parse(stdout) as { errors: { detail: string }[] }).errors[0]?.detail ?? '';

  it('are those of share-route, on both sides', async () => {
    await addRoute('r');
    judge('True');
    expect(await spaces('r')).toEqual([]);
    await addSpace('third', 'org-guid');
    const run = await post(body('other-guid', 'third-guid'));
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { data: [{ guid: 'other-guid' }, { guid: 'third-guid' }] }]);
    expect(routesIn('space-guid')[0]?.spec.sharedWith).toEqual(['other-guid', 'third-guid']);
    const half = routesIn('other-guid')[0]?.metadata.name ?? '';
    expect(await spaces(half)).toEqual([{ guid: 'other-guid' }, { guid: 'third-guid' }]);
    const removed = await cli.run(['curl', '-X', 'DELETE', `${path}/other-guid`, '-i']);
    expect(removed.stdout).toMatch(/^HTTP\/1\.1 204 No Content/);
    expect([await spaces('r'), routesIn('other-guid')]).toEqual([[{ guid: 'third-guid' }], []]);
  });

  it('are refused as a whole, in the words of the API', async () => {
    await addRoute('r');
    judge('True');
    expect(detail(await post(body('other-guid', 'nowhere')))).toBe(
      "Unable to share route shop.apps.localhost with spaces ['nowhere']. Ensure the spaces exist and that you have access to them.",
    );
    expect(detail(await post(body('other-guid', 'space-guid')))).toContain('cannot be shared into the space where they were created');
    expect(detail(await post('{"data":{"guid":"other-guid"}}'))).toBe('Data must be an array');
    expect(routesIn('space-guid')[0]?.spec.sharedWith).toBeUndefined();
    const remove = async (space: string): Promise<string> => detail(await cli.run(['curl', '-X', 'DELETE', `${path}/${space}`]));
    expect(await remove('nowhere')).toContain(
      "Unable to unshare route 'shop.apps.localhost' from space 'nowhere'. Ensure the space exists",
    );
    expect(await remove('space-guid')).toContain('Routes cannot be removed from the space that owns them.');
  });

  it('are changed only where the route belongs', async () => {
    await addRoute('r', { sharedFrom: { space: 'third-guid', route: 'theirs', uid: 'u' } });
    expect(detail(await post(body('other-guid')))).toContain('belongs to another space');
    expect(await spaces('r')).toEqual([{ guid: 'space-guid' }]);
  });
});
