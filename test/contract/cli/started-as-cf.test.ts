// A user who started kf as `cf` sees `cf` in every hint, because scripts and users then type it.

import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { resource, type KubeObject } from '../../../src/lib/api/object.ts';
import { followedCf } from '../../../src/lib/version.ts';
import { commandsAs } from '../../../src/lib/output/command-name.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;
const quotas = resource<KubeObject>('', 'v1', 'ResourceQuota', 'resourcequotas');

/** An app without a droplet. */
async function addApp(name: string, deployment?: { phase: 'Failed'; message: string }): Promise<void> {
  const spec = { displayName: name, desiredState: 'STOPPED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name, namespace: ns }, spec });
  if (deployment === undefined) return;
  const status = { deployment: { ...deployment, id: '1' } };
  await cluster.memory.mergePatch(kinds.app, ns, name, { status }, { subresource: 'status' });
}

beforeAll(async () => {
  cluster = await (await ServedCluster.start()).installed();
  await addApp('unbuilt');
  const [hard, used] = [{ 'count/cfapps.korifi.cloudfoundry.org': '2' }, { 'count/cfapps.korifi.cloudfoundry.org': '2' }];
  await cluster.add(quotas, { metadata: { name: 'full', namespace: ns }, status: { hard, used } } as never);
  await addApp('fallen', {
    phase: 'Failed',
    message: "It cannot start again. Mend the app's variables and services, then 'kf restart' it.",
  });
});

beforeEach(() => {
  cli = new Cli(bundle.program);
  writeFileSync(path.join(cli.home, 'manifest.yml'), 'applications: [{name: shop}, {name: bag}]\n');
  symlinkSync(bundle.program, path.join(cli.home, 'cf'));
});

afterEach(() => cli.remove());

afterAll(async () => {
  await cluster.stop();
  bundle.remove();
});

/** Both streams of `cf` with these arguments. */
function outputOf(argv: string[], env: Record<string, string> = {}, program = 'cf'): Promise<string> {
  const own = { PATH: process.env['PATH'], HOME: cli.home, CF_HOME: cli.home, KUBECONFIG: cluster.server.kubeconfig(), ...env };
  return new Promise((resolve) => {
    execFile(process.execPath, [path.join(cli.home, program), ...argv], { env: own, cwd: cli.home }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

describe('kf that was started as cf', () => {
  const place = ['--org', 'example-org', '--space', 'example-space'];

  it('has that version in its overview too', async () => {
    const [first = ''] = (await outputOf(['help'])).split(':');
    expect(`${first}\n`).toBe(await outputOf(['version']));
  });

  it.each(['-v', '--version', 'version'])('%s: is a version of cf 8, with that of kf behind it', async (word) => {
    expect(await outputOf([word])).toMatch(/^cf version 8\.\d+\.\d+\+kf\.\d+\.\d+\.\d+\n$/);
    expect(await outputOf([word])).toContain(` ${followedCf}+`);
    const surface = readFileSync('tools/surface/cf-v8.yaml', 'utf8');
    expect(/the latest release was v([\d.]+)\)/.exec(surface)?.[1]).toBe(followedCf);
  });

  it.each([
    [['resatrt'], "See 'cf help -a'"],
    [['share-service', 'x'], 'For now: cf create-user-provided-service in the other space'],
    [['ssh-code'], 'kubectl exec'],
    [['push', 'a', '--droplet', 'x'], 'For now: cf push APP --docker-image IMAGE'],
    [['push', 'shopp', '-f', 'manifest.yml'], '   cf push shop -f manifest.yml\n'],
    [['scale'], '   cf help scale\n'],
    [['scale', '-h'], '   cf scale APP_NAME '],
    [['start', '-h'], 'CF_STARTUP_TIMEOUT=10 cf start example-app'],
    [['start', '-h', '--json'], 'CF_STARTUP_TIMEOUT=10 cf start example-app'],
    [['apps'], "use 'cf target -o ORG'"],
    [['curl', '-X', 'POST', '/v3/organizations'], 'Use instead: cf create-org ORG.'],
    [['target', '-s', 'example-space'], '   cf target -o ORG -s SPACE\n'],
    [['rotate', 'password'], '   cf rotate registry-key\n'],
    [['app', 'nothing', ...place], `   cf apps ${place.join(' ')}\n`],
    [['app', 'fallen', ...place], "then 'cf restart' it."],
    [['start', 'unbuilt', ...place], `   In the folder of the app's source: cf push unbuilt ${place.join(' ')}\n`],
    [['restage', 'unbuilt', ...place], `   In the folder of the app's source: cf push unbuilt ${place.join(' ')}\n`],
    [['push', 'new', '--no-manifest', '--docker-image', 'registry.example.com/a:1', ...place, '--json'], `"cf apps ${place.join(' ')}"`],
    [['bind-service', 'unbuilt', 'nothing', ...place], `   cf services ${place.join(' ')}\n`],
    [['set-env', 'x', 'A', 'b', '--org', 'exampel-org', '--space', 'x'], '   cf orgs\n'],
    [['create-space', 'x', '-o', 'nowhere'], '   cf orgs\n'],
    [['map-route', 'unbuilt', 'nowhere.example.com', ...place], '   cf domains --org example-org\n'],
    [['orgs', '--context', 'nowhere'], 'kubectl config get-contexts'],
  ])('%j: hints say cf', async (argv, hint) => {
    const said = await outputOf(argv);
    expect(said).toContain(hint);
    expect(commandsAs(said, 'cf')).toBe(said);
  });

  it('says cf in hints for a cluster without kf too', async () => {
    const said = await outputOf(['apps', ...place], { KF_ROOT_NAMESPACE: 'elsewhere' });
    expect(said).toContain('   cf setup --context test\n');
    expect(commandsAs(said, 'cf')).toBe(said);
  });
});

it('kf that kubectl started as its plugin says kubectl kf, and is installed under the name that kubectl looks for', async () => {
  symlinkSync(bundle.program, path.join(cli.home, 'kubectl-kf'));
  expect(await outputOf(['-v'], {}, 'kubectl-kf')).toMatch(/^kubectl kf version \d/);
  expect(await outputOf(['resatrt'], {}, 'kubectl-kf')).toContain("See 'kubectl kf help -a'");
  const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> };
  expect(bin['kubectl-kf']).toBe(bin['kf']);
});
