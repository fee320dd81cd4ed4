import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { objectsOfParts } from '../../../src/lib/ops/install/installation.ts';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { sumRequests } from '../../../src/lib/ops/install/requests.ts';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { layOut } from '../../../src/lib/output/layout.ts';
import { planBlocks, setupBlocks } from '../../../src/lib/views/setup.ts';

const root = new URL('../../../', import.meta.url);
const readme = readFileSync(new URL('README.md', root), 'utf8');

test('each folder that the tour pushes is in the repository', () => {
  const folders = [...readme.matchAll(/^\$ kf push \S+ -p (\S+)/gm)].map(([, folder = '']) => folder);
  expect(folders).not.toEqual([]);
  expect(folders.filter((folder) => !existsSync(fileURLToPath(new URL(folder, root))))).toEqual([]);
});

const network = {
  nodes: { addresses: ['192.0.2.1'], podRanges: ['10.0.0.0/16'] },
  ipv6: false,
  dns: ['10.1.0.10'],
  apiServer: ['192.0.2.1'],
};

/** The objects of a first setup on the demo's cluster, which has the Gateway API. */
async function objectsOfSetup() {
  const plan = { ...resolvePlan({}, '1.0.0', 'hostport', network), internalDomain: true };
  const served = { hasGatewayApi: true, hasMutatingPolicies: true };
  return (await objectsOfParts({ plan, programs: { 'controller.mjs': '' }, served })).flatMap(({ objects }) => objects);
}

test('the tour shows what setup prints now: kinds and numbers of its objects, what they request, and how apps are reached', async () => {
  const [, shown = ''] = /\n\$ kf setup\n([^]*?)\nNext:/.exec(readme) ?? [];
  const objects = await objectsOfSetup();
  const requests = sumRequests(objects);
  const urls = [...shown.matchAll(/https?:\/\/kf-setup-check-\w+\.apps\.localhost/g)].map(([url]) => ({ url, reachable: true }));
  const [http = { url: '', reachable: false }, https = http] = urls;
  const changes = objects.map((object) => ({ action: 'create' as const, object }));
  const done = setupBlocks({
    version: (JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string }).version,
    kubernetes: /^kubernetes: +(v\S+)$/m.exec(shown)?.[1] ?? '',
    created: objects.length,
    changed: 0,
    unchanged: 0,
    removed: [],
    requests,
    reach: { ...http, https },
    network: { policies: 'on', enforced: true },
    domain: 'apps.localhost',
    org: { name: 'default' },
    space: { name: 'default' },
    target: { org: { name: 'default' }, space: { name: 'default' } },
  });
  const printed = layOut([...planBlocks({ changes, removals: [], requests }), ...done], { ink: plainInk });
  // The README cuts the row of the kinds.
  const cut = shown.split('\n').find((row) => row.endsWith(', ...'));
  const kept = (row: string): string => (cut !== undefined && row.startsWith(cut.slice(0, -'...'.length)) ? cut : row);
  expect(cut).toContain(' CustomResourceDefinition, ');
  expect(https.url).toMatch(/^https:/);
  expect(shown.split('\n').slice(1, -1)).toEqual([...printed.map(kept), 'OK']);
});

test('the upgrade in the docs has the objects of setup', async () => {
  const text = readFileSync(new URL('docs/upgrade.md', root), 'utf8');
  const counts = /changes: +(\d+) of (\d+) objects created, (\d+) changed, (\d+) as they should be/.exec(text)?.slice(1).map(Number);
  const [created = 0, all = 0, changed = 0, kept = 0] = counts ?? [];
  expect([all, created + changed + kept]).toEqual([(await objectsOfSetup()).length, all]);
});
