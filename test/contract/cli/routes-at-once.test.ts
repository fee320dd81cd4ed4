// Two commands that create one route of a space at the same moment: the address goes to one of their routes, and both succeed.

import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { CFRoute, RouteDestination } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  const spec = { displayName: 'my-app', desiredState: 'STARTED' as const, lifecycle: { type: 'docker' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'my-app-guid', namespace: ns }, spec });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

const said = (type: string, status: 'True' | 'False', observedGeneration = 1) => ({
  ...{ type, status, observedGeneration, message: status === 'True' ? '' : 'Route already exists. This space has it already.' },
  ...{ reason: status === 'True' ? type : 'DuplicateName', lastTransitionTime: '2026-08-07T10:16:20Z' },
});
const judge = (name: string, ...conditions: ReturnType<typeof said>[]): unknown =>
  cluster.memory.mergePatch(kinds.route, ns, name, { status: { conditions } }, { subresource: 'status' });
const theirs = (): CFRoute | undefined => cluster.memory.peek(kinds.route, ns, 'theirs');

/** When the command creates its route, that of another command is there, and the controller tells that it has the address only after the refusal. */
function raceWith(destinations: RouteDestination[] = []): void {
  let isFirst = true;
  cluster.memory.intercept = async (verb, seen, name) => {
    if (seen.plural !== kinds.route.plural) return;
    if (verb === 'create' && isFirst) {
      isFirst = false;
      await cluster.add(kinds.route, {
        metadata: { name: 'theirs', namespace: ns, labels: { [labels.domainGuid]: 'default-domain' } },
        spec: { host: 'shop', domainRef: { name: 'default-domain', namespace: 'cf' }, destinations },
      });
    }
    const own = cluster.memory.all(kinds.route).find(({ metadata }) => metadata.name !== 'theirs')?.metadata.name;
    if (verb === 'watch' && own !== undefined) setTimeout(() => void judge(own, said('Claimed', 'False')), 20);
    else if (verb === 'watch' && name !== own)
      setTimeout(() => {
        const { generation = 1 } = theirs()?.metadata ?? {};
        void judge('theirs', ...['Claimed', 'Programmed', 'Ready'].map((type) => said(type, 'True', generation)));
      }, 50);
  };
}

const other: RouteDestination = { guid: 'd', appRef: { name: 'other-guid' }, processType: 'web', port: 8080 };
const routes = (): (string | undefined)[] => cluster.memory.all(kinds.route).map(({ metadata }) => metadata.name);

it('create-route says that the route exists, with OK', async () => {
  raceWith();
  const run = await cli.run(['create-route', 'apps.localhost', '-n', 'shop']);
  expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining("Route already exists with host 'shop' for domain") as string });
  expect(run.stdout).toMatch(/\.\.\.\nOK\n\n$/);
  expect(routes()).toEqual(['theirs']);
});

it('map-route maps its app to the route of the other command', async () => {
  raceWith([other]);
  const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop', '--json']);
  expect([run.code, JSON.parse(run.stdout)]).toMatchObject([0, { result: { created: false, mapped: true } }]);
  expect(routes()).toEqual(['theirs']);
  expect(theirs()?.spec.destinations?.map(({ appRef }) => appRef.name)).toEqual(['other-guid', 'my-app-guid']);
});

it('map-route is refused as before when nobody of this space has the route', async () => {
  raceWith();
  const { intercept } = cluster.memory;
  cluster.memory.intercept = async (verb, seen, name) => {
    await intercept(verb, seen, name);
    if (verb === 'create' && theirs() !== undefined) await cluster.memory.delete(kinds.route, ns, 'theirs');
  };
  const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop']);
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('This space has it already.') as string });
  expect(routes()).toEqual([]);
});
