import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { kinds, places } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

/** An installation with the default org and space of setup, and an app of the same name there and in the space of a team. */
beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
  const org = { name: 'default', guid: 'default-org-guid' };
  const space = { name: 'default', guid: 'default-space-guid' };
  const map = await cluster.memory.get(configMapType, 'cf', places.info);
  const info = { ...(JSON.parse(map?.data?.[places.infoKey] ?? '{}') as object), defaults: { org, space } };
  await cluster.memory.mergePatch(configMapType, 'cf', places.info, { data: { [places.infoKey]: JSON.stringify(info) } });
  await cluster.add(kinds.org, { metadata: { name: org.guid, namespace: 'cf' }, spec: { displayName: org.name } });
  for (const [guid, name] of [
    [space.guid, space.name],
    ['second-guid', 'second'],
  ] as const) {
    await cluster.add(kinds.space, { metadata: { name: guid, namespace: org.guid }, spec: { displayName: name } });
  }
  for (const ns of [space.guid, 'space-guid']) await addShop(ns);
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

async function addShop(ns: string): Promise<void> {
  const spec = { displayName: 'shop', desiredState: 'STARTED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: `shop-${ns}`, namespace: ns }, spec });
}

const deleted = (): string[] => cluster.server.callsOf('DELETE .*').map(({ path: asked }) => asked);
const noOrg = "No org targeted, use 'kf target -o ORG' to target an org.\n";
const noSpace = "No space targeted, use 'kf target -s SPACE' to target a space.\n";

describe('the default org and space', () => {
  it('are used and shown if the user never chose a target', async () => {
    expect((await cli.run(['target'])).stdout).toMatch(/^org: +default\nspace: +default$/m);
    expect((await cli.run(['apps'])).stdout).toContain('in org default / space default as alice...');
  });

  it('are the org in which a space is chosen by its name alone', async () => {
    const run = await cli.run(['target', '-s', 'second']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(/^org: +default\nspace: +second$/m);
    expect((await cli.run(['apps'])).stdout).toContain('in org default / space second');
  });

  it('give way to the org that KF_ORG names, for target -s as for target', async () => {
    const env = { KF_ORG: 'example-org' };
    expect((await cli.run(['target'], { env })).stdout).toMatch(/^org: +example-org$/m);
    expect((await cli.run(['target', '-s', 'example-space'], { env })).stdout).toMatch(/^org: +example-org\nspace: +example-space$/m);
  });
});

describe('kf target that fails', () => {
  it.each([
    ['the first one', [], ['-o', 'exampel-org'], noOrg],
    ['of another org', ['-o', 'example-org'], ['-o', 'exampel-org'], noOrg],
    ['of another space', ['-o', 'example-org'], ['-s', 'exampel-space'], noSpace],
    ['of both', ['-o', 'example-org'], ['-o', 'example-org', '-s', 'exampel-space'], noSpace],
    ['in a context that is not there', ['-o', 'example-org'], ['-o', 'example-org', '--context', 'tset'], noOrg],
  ])('leaves nothing targeted for the next command: %s', async (_, before, typo, message) => {
    if (before.length > 0) expect((await cli.run(['target', ...before])).code).toBe(0);
    expect((await cli.run(['target', ...typo])).code).toBe(1);
    const run = await cli.run(['delete', '-f', 'shop']);
    expect(run).toMatchObject({ code: 1, stdout: 'FAILED\n', stderr: message });
    expect(deleted()).toEqual([]);
  });

  it('because the server refuses to list the spaces leaves only the org targeted', async () => {
    await cli.run(['target', '-o', 'default', '-s', 'second']);
    const pattern = 'GET /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/org-guid/cfspaces';
    cluster.server.on(pattern, (call) => call.fail(403, 'Forbidden', 'cfspaces is forbidden'));
    expect((await cli.run(['target', '-o', 'example-org'])).code).toBe(1);
    expect((await cli.run(['delete', '-f', 'shop'])).stderr).toBe(noSpace);
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: 'example-org' }, SpaceFields: { Name: '' } });
  });

  it('login and api without a place leave nothing targeted either', async () => {
    expect((await cli.run(['target', '-o', 'default', '-s', 'second'])).code).toBe(0);
    expect((await cli.run(['login'])).stdout).toContain("No org or space targeted, use 'kf target -o ORG -s SPACE'");
    expect((await cli.run(['delete', '-f', 'shop'])).stderr).toBe(noOrg);
    await cli.run(['api', '--unset']);
    expect((await cli.run(['delete', '-f', 'shop'])).stderr).toBe(noOrg);
    expect(deleted()).toEqual([]);
  });

  it.each([
    [['login'], "No org or space targeted, use 'kf target -o ORG -s SPACE'"],
    [['login', '-u', 'tester'], "No org or space targeted, use 'kf target -o ORG -s SPACE'"],
    [['auth', 'tester'], "Use 'kf target' to view or set your target org and space.\n"],
    [['api', 'test'], "Use 'kf target' to view or set your target org and space.\n"],
  ])('%j without a place clears the one of before, also in the same cluster, and says so', async (argv, hint) => {
    expect((await cli.run(['target', '-o', 'default', '-s', 'second'])).code).toBe(0);
    expect(await cli.run(argv)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(hint) as string });
    expect((await cli.run(['delete', '-f', 'shop'])).stderr).toBe(noOrg);
    expect(deleted()).toEqual([]);
  });

  it('api that only shows the cluster leaves org and space targeted', async () => {
    await cli.run(['target', '-o', 'default', '-s', 'second']);
    expect((await cli.run(['api'])).stdout).not.toContain('Use ');
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: 'default' }, SpaceFields: { Name: 'second' } });
  });

  it('login -s without an org to choose it in fails, and says what lacks', async () => {
    await cli.run(['target', '-o', 'default', '-s', 'second']);
    expect(await cli.run(['login', '-s', 'default'])).toMatchObject({
      code: 1,
      stderr: 'An org must be targeted before targeting a space.\n\nTIP:\n   kf target -o ORG -s SPACE\n',
    });
    expect((await cli.run(['delete', '-f', 'shop'])).stderr).toBe(noOrg);
    expect(deleted()).toEqual([]);
  });
});

describe('a target that cannot be saved', () => {
  /** A file in the place of the folder: nobody, not even root, can create anything below it. */
  function unwritable(how: 'HOME' | 'CF_HOME'): Record<string, string> {
    const file = path.join(cli.home, 'file');
    writeFileSync(file, '');
    return how === 'CF_HOME' ? { CF_HOME: file } : { CF_HOME: '', HOME: file };
  }

  it.each([['HOME'], ['CF_HOME']] as const)('ends with 1 if %s cannot be written, and the next command has no target', async (how) => {
    const env = unwritable(how);
    for (const argv of [
      ['target', '-o', 'example-org'],
      ['target', '-s', 'second', '--org', 'default'],
      ['api', 'test'],
      ['api', '--unset'],
      ['logout'],
    ]) {
      const run = await cli.run(argv, { env });
      expect(run.code, argv.join(' ')).toBe(1);
      expect(run.stderr).toContain('The target was not saved');
      expect(run.stderr).toContain('Set CF_HOME to a folder that kf can write');
    }
    const run = await cli.run(['delete', '-f', 'shop'], { env });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(noOrg);
    expect(run.stderr).toContain("Org 'default', space 'default' do not serve: no target can be remembered");
    expect(deleted()).toEqual([]);
    expect((await cli.run(['apps'], { env: { ...env, KF_ORG: 'example-org', KF_SPACE: 'example-space' } })).code).toBe(0);
  });

  it('ends if the system cannot make the folder, instead of trying for ever', async () => {
    // procfs reports that an existing parent does not exist, and Node's own recursive mkdir never ends there.
    const run = await cli.run(['target', '-s', 'second'], { env: { CF_HOME: '', HOME: '/proc/1/nope' } });
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('can')]);
  });

  it('because a folder has its name leaves no target either', async () => {
    mkdirSync(path.join(cli.stateFile, 'x'), { recursive: true });
    expect((await cli.run(['target', '-o', 'example-org'])).stderr).toContain('The target was not saved');
    expect((await cli.run(['delete', '-f', 'shop'])).stderr).toContain('The saved target cannot be used: ');
    expect(deleted()).toEqual([]);
  });
});

describe('a state file without a target', () => {
  it.each([
    ['broken JSON', '{', 'The saved target cannot be used: '],
    ['one of another version of kf', JSON.stringify({ ConfigVersion: 99, Kf: { Context: 'c' } }), 'was written by another version of kf.'],
    ["cf's own", JSON.stringify({ ConfigVersion: 4, Target: 'https://api', OrganizationFields: { Name: 'o', GUID: 'g' } }), noOrg],
    ['null', 'null', noOrg],
  ])('%s: no command uses the default org and space', async (_, text, message) => {
    mkdirSync(path.dirname(cli.stateFile), { recursive: true });
    writeFileSync(cli.stateFile, text);
    const run = await cli.run(['delete', '-f', 'shop']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect(deleted()).toEqual([]);
    expect((await cli.run(['target', '-o', 'example-org'])).code).toBe(0);
    expect((await cli.run(['apps'])).stdout).toContain('in org example-org / space example-space');
  });
});

describe("cf's own login in the same folder", () => {
  it('is not changed by any command that sets a target, with one message', async () => {
    const text = JSON.stringify({ ConfigVersion: 4, AccessToken: 'bearer x', RefreshToken: 'r', Target: 'https://api.example.com' });
    mkdirSync(path.dirname(cli.stateFile), { recursive: true });
    writeFileSync(cli.stateFile, text);
    const own = path.join(path.dirname(cli.stateFile), 'kf.json');
    const first = await cli.run(['target', '-o', 'example-org']);
    expect([first.code, first.stderr]).toEqual([
      0,
      `${cli.stateFile} is not of kf and stays as it is; kf remembers its target in ${own}.\n`,
    ]);
    expect((await cli.run(['apps'])).stdout).toContain('in org example-org / space example-space');
    for (const argv of [
      ['target', '-o', 'default', '-s', 'second'],
      ['api', 'test'],
      ['target', '-o', 'typo'],
      ['logout'],
      ['api', '--unset'],
    ])
      expect((await cli.run(argv)).stderr).not.toContain('stays as it is');
    expect(readFileSync(cli.stateFile, 'utf8')).toBe(text);
  });
});

describe("the user's name", () => {
  it('is the API server’s in every command and in what is written, and is asked for once', async () => {
    const lines = [];
    for (const argv of [['target', '-o', 'example-org'], ['apps'], ['create-org', 'example-org'], ['delete', '-f', 'shop'], ['orgs']]) {
      const run = await cli.run(argv);
      lines.push(...run.stdout.split('\n').filter((line) => / as |^user:/.test(line)));
    }
    expect(lines).toHaveLength(5);
    for (const line of lines) expect(line).toMatch(/( as alice\.\.\.| alice)$/);
    expect(cluster.server.callsOf('POST .*/selfsubjectreviews')).toHaveLength(1);
  });

  it('that belongs to other credentials now is shown in the refusal, and the next command has the right name', async () => {
    await cli.run(['target', '-o', 'example-org']);
    cluster.user = 'bob';
    const pattern = 'GET /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/space-guid/cfapps';
    cluster.server.on(pattern, (call) => call.fail(403, 'Forbidden', 'cfapps is forbidden'));
    const run = await cli.run(['apps']);
    expect(run.stdout).toContain('as alice...');
    expect(run.stderr).toContain("The API server calls you 'bob' now");
    expect((await cli.run(['apps'])).stdout).toContain('as bob...');
  });
});
