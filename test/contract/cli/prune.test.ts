// `prune`: one repository that the gate cannot read, or cannot remove, among others.

import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Call } from '../../support/apiserver.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const base = '/api/v1/namespaces/kf-system/services/http:kf-registry:5000/proxy/kf';
const room = { total: 4096, free: 1024, nearlyFull: false };
const digest = (letter: string): string => letter.repeat(64);
let cluster: ServedCluster;
let cli: Cli;
/** Requests of the gate that remove something. */
let removals: string[];

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
  removals = [];
  const data = { key: Buffer.from('k'.repeat(64)).toString('base64') };
  await cluster.add(secretType, { metadata: { name: 'kf-registry-key', namespace: 'kf-system' }, data });
  for (const name of ['bad', 'good'])
    await cluster.add(kinds.app, {
      metadata: { name, namespace: 'space-guid' },
      spec: { displayName: name, desiredState: 'STARTED', lifecycle: { type: 'buildpack', data: { stack: 'kf' } } },
    });
  const repositories = ['gone', 'bad', 'good', 'lost'].map((app) => `space-guid/${app}-droplets`);
  const now = Math.floor(Date.now() / 1000);
  cluster.server.on(`GET ${base}/status`, (call) => call.json({ now, keys: [], room }));
  cluster.server.on(`GET ${base}/repositories`, (call) => call.json({ now, repositories }));
  cluster.server.on(`GET ${base}/repositories/space-guid/.*`, (call) => call.json({ blobs: [{ digest: digest('a'), bytes: 1024 }] }));
  cluster.server.on(`DELETE ${base}/repositories/space-guid/.*`, remove);
  cluster.server.on(`POST ${base}/repositories/space-guid/.*/collection`, (call) => {
    const isDry = (JSON.parse(call.body) as { dryRun?: boolean }).dryRun === true;
    if (!isDry) return remove(call);
    return call.json({ manifests: 1, layers: 0, blobs: [{ digest: digest('b'), bytes: 1024 }] });
  });
  cluster.server.on(`POST ${base}/references`, (call) => call.json({ counts: { [digest('a')]: 1, [digest('b')]: 1 } }));
  cluster.server.on(`POST ${base}/sweep`, (call) => call.json({ blobs: 2, bytes: 2048 }));
});
afterEach(async () => {
  cli.remove();
  await cluster.stop();
});
afterAll(() => bundle.remove());

function remove(call: Call): void {
  removals.push(`${call.method} ${call.path.slice(base.length)}`);
  call.json({ manifests: 1, layers: 0 });
}

interface Pruned {
  warnings: string[];
  result: { apps: { app: string }[]; inUse: string[]; failed: { repository: string }[] };
}
async function prune(...args: string[]): Promise<{ code: number; apps: string[]; failed: string[]; warnings: string[]; inUse: string[] }> {
  const run = await cli.run(['prune', '--json', ...args]);
  const { warnings, result } = JSON.parse(run.stdout) as Pruned;
  const [apps, failed] = [result.apps.map(({ app }) => app), result.failed.map(({ repository }) => repository)];
  return { code: run.code ?? 0, apps: apps.toSorted(), failed, warnings, inUse: result.inUse };
}

const failed = ['space-guid/bad-droplets', 'space-guid/lost-droplets'];

it.each([
  {
    what: 'answers with an error',
    says: 'with status 500: the volume does not have the manifest.',
    answer: (call: Call) => call.json({ errors: [{ code: 'UNKNOWN', message: 'Error: the volume does not have the manifest' }] }, 500),
  },
  {
    what: 'ends its answer early',
    says: 'ended its answer to ',
    answer: (call: Call) => {
      call.response.writeHead(200, { 'content-length': '100' });
      call.response.write('{"manifests":1,', () => call.response.destroy());
    },
  },
  {
    what: 'answers with half of its text',
    says: 'with JSON of at most',
    answer: (call: Call) => call.text('{"manifests":1,"layers":', 200),
  },
])('removes the images of the other repositories when the gate $what for some, and names those', async ({ says, answer }) => {
  for (const name of ['bad', 'lost']) cluster.server.on(`(GET|POST|DELETE) ${base}/repositories/space-guid/${name}-droplets.*`, answer);
  const expected = { code: 1, apps: ['gone', 'good'], failed, inUse: [] };
  expect(await prune('--dry-run')).toMatchObject(expected);
  const { warnings, ...rest } = await prune();
  expect(rest).toEqual(expected);
  expect(warnings).toEqual(failed.map((name) => expect.stringContaining(`The repository '${name}' is left as it is: `) as string));
  expect(warnings).toEqual(failed.map(() => expect.stringContaining(says) as string));
  const of = (app: string): string => `/repositories/space-guid/${app}-droplets`;
  expect(removals).toEqual([`DELETE ${of('gone')}`, `POST ${of('good')}/collection`]);
  const run = await cli.run(['prune', '--dry-run']);
  expect(run.stdout).toContain('Left as it is, because the registry failed there: space-guid/bad-droplets');
  expect(run.stdout).not.toContain('OK');
});

it('goes on when a repository cannot be removed, and says OK when all can', async () => {
  expect(await prune()).toEqual({ code: 0, apps: ['bad', 'gone', 'good', 'lost'], failed: [], warnings: [], inUse: [] });
  cluster.server.on(`DELETE ${base}/repositories/space-guid/lost-droplets`, (call) => call.text('', 500));
  expect(await prune()).toMatchObject({ code: 1, apps: ['bad', 'gone', 'good'], failed: ['space-guid/lost-droplets'], inUse: [] });
});

it('removes nothing when the controller is too many releases newer, and still shows what would go', async () => {
  const map = cluster.memory.peek(configMapType, 'cf', 'kf-info');
  const text = (map?.data?.['info.json'] ?? '').replace('"version":"0.1.0"', '"version":"0.3.0"');
  await cluster.memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': text } });
  const run = await cli.run(['prune']);
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("This kf (0.1.0) is too old for the cluster's controller (0.3.0)")]);
  expect(removals).toEqual([]);
  expect((await prune('--dry-run')).apps).toEqual(['bad', 'gone', 'good', 'lost']);
});
