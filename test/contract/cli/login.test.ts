import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let one: ServedCluster;
let two: ServedCluster;
let folder: string;
let cli: Cli;

beforeAll(async () => {
  [one, two] = await Promise.all([(await ServedCluster.start()).installed(), (await ServedCluster.start()).installed()]);
  folder = mkdtempSync(path.join(tmpdir(), 'kf-login-'));
  const cluster = (name: string, { server }: ServedCluster) => ({ name, cluster: { server: server.url } });
  const context = (name: string) => ({ name, context: { cluster: name, user: 'alice' } });
  const config = {
    'current-context': 'one',
    clusters: [cluster('one', one), cluster('two', two)],
    contexts: [context('one'), context('two')],
    users: [
      { name: 'alice', user: { token: 'a' } },
      { name: 'bob', user: { token: 'b' } },
    ],
  };
  writeFileSync(path.join(folder, 'config'), JSON.stringify(config));
});

afterAll(async () => {
  await Promise.all([one.stop(), two.stop()]);
  rmSync(folder, { recursive: true });
  bundle.remove();
});

beforeEach(() => {
  cli = new Cli(bundle.program, { KUBECONFIG: path.join(folder, 'config') });
});

afterEach(() => cli.remove());

describe('api', () => {
  it.each([['two'], ['url']])('pins the cluster given by %s, whatever kubectl points to afterwards', async (how) => {
    const run = await cli.run(['api', how === 'url' ? `${two.server.url}/` : how]);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toContain(`Setting API endpoint to ${two.server.url}...\nOK\n`);
    const before = two.server.calls.length;
    await cli.run(['orgs']);
    expect(two.server.calls.length).toBe(before + 1);
    const shown = (await cli.run(['api'])).stdout;
    expect(shown).toContain(`API endpoint:   ${two.server.url}\nAPI version:    3.`);
    expect(shown).toContain('kubernetes:     v1.36.0\n');
  });

  it('of an unknown name lists the contexts', async () => {
    expect((await cli.run(['api', 'three'])).stderr).toContain("neither a context nor a cluster 'three'. Contexts: 'one', 'two'.");
  });

  it('--unset forgets the cluster', async () => {
    await cli.run(['target', '-o', 'example-org', '--context', 'two']);
    expect((await cli.run(['api', '--unset'])).code).toBe(0);
    expect(cli.state()).toMatchObject({ Target: '', OrganizationFields: { Name: '' } });
  });
});

describe('flags of a login at Cloud Foundry', () => {
  it.each([
    [['api', 'two', '--skip-ssl-validation'], "'--skip-ssl-validation' has no effect: the kubeconfig says how the server is verified.\n"],
    [['login', '-u', 'bob', '-o', 'example-org', '--origin', 'ldap'], "'--origin' has no effect: the users are those of the kubeconfig.\n"],
    [
      ['login', '-a', 'two', '--skip-ssl-validation', '--origin', 'x'],
      /^'--skip-ssl-validation' has no effect: .* '--origin' has no effect: .*\n$/,
    ],
    [
      ['auth', 'bob', '--client-credentials'],
      "'--client-credentials' has no effect: the users are those of the kubeconfig, also those of programs.\n",
    ],
  ])('are accepted, with one sentence: %j', async (argv, sentence) => {
    const run = await cli.run(argv);
    expect([run.code, run.stderr]).toEqual([0, typeof sentence === 'string' ? sentence : expect.stringMatching(sentence)]);
  });
});

describe('auth and login', () => {
  it('auth takes a user of the kubeconfig, and says that no password is used', async () => {
    const run = await cli.run(['auth', 'bob', 'secret']);
    expect(run).toMatchObject({ code: 0, stderr: 'The password is not used: the kubeconfig holds the credentials.\n' });
    await cli.run(['orgs']);
    expect(one.server.calls.at(-1)?.headers.authorization).toBe('Bearer b');
    expect(readFileSync(cli.stateFile, 'utf8')).not.toContain('secret');
  });

  it('login -u takes a user of the kubeconfig', async () => {
    expect((await cli.run(['login', '-u', 'bob'])).code).toBe(0);
    await cli.run(['orgs']);
    expect(one.server.calls.at(-1)?.headers.authorization).toBe('Bearer b');
  });

  it('login says that no password is used', async () => {
    const run = await cli.run(['login', '-a', 'two', '-u', 'bob', '-p', 'secret']);
    expect(run).toMatchObject({ code: 0, stderr: 'The password is not used: the kubeconfig holds the credentials.\n' });
  });

  it.each([
    ['auth', 'nobody'],
    ['login', '-u', 'nobody'],
  ])('%s of a user that does not exist names it, and those that exist', async (...argv) => {
    const run = await cli.run(argv);
    expect(run.code).toBe(1);
    expect(run.stderr).toBe('The kubeconfig has no user "nobody". Users: "alice", "bob".\n\nTIP:\n   kubectl config get-users\n');
  });

  it('login selects the only org and the only space automatically', async () => {
    const run = await cli.run(['login', '-a', 'two']);
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/org: {12}example-org\nspace: {10}example-space\n/);
    expect(cli.state()).toMatchObject({ Target: two.server.url, SpaceFields: { Name: 'example-space' } });
  });
});

describe('several clusters', () => {
  it('cause a warning on stderr from commands that change something, not from others', async () => {
    const place = ['--context', 'two', '--org', 'example-org', '--space', 'example-space'];
    expect((await cli.run(['delete', 'x', '-f', ...place])).stderr).toContain(`Cluster: ${two.server.url} (context 'two')\n`);
    expect((await cli.run(['apps', ...place])).stderr).toBe('');
    expect((await cli.run(['curl', '-X', 'DELETE', '/v3/apps/x', ...place])).stderr).toContain(`Cluster: ${two.server.url} `);
    expect((await cli.run(['curl', '/v3/apps', ...place])).stderr).toBe('');
  });

  it('another context for one command is not combined with org and space of the target', async () => {
    await cli.run(['target', '-o', 'example-org']);
    expect((await cli.run(['apps', '--context', 'two'])).stderr).toContain('No org targeted');
    expect(cli.state()).toMatchObject({ Target: one.server.url });
  });
});
