import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let env: Record<string, string>;
const clis: Cli[] = [];

function user(extra: Record<string, string> = {}): Cli {
  const cli = new Cli(bundle.program, { ...env, ...extra });
  clis.push(cli);
  return cli;
}

beforeAll(async () => {
  cluster = await (await ServedCluster.start()).installed();
  env = { KUBECONFIG: cluster.server.kubeconfig() };
});

afterAll(async () => {
  await cluster.stop();
  for (const cli of clis) cli.remove();
  bundle.remove();
});

describe('version and help', () => {
  it.each([['--version'], ['-v'], ['version']])('%s prints the version', async (word) => {
    const run = await user().run([word]);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(/^kf version \d+\.\d+\.\d+\n$/);
  });

  it.each([
    [['scale', '--help']],
    [['scale', '-h']],
    [['help', 'scale']],
    [['-h', 'scale']],
    [['--help', 'scale']],
    [['--h', 'scale']],
    [['-v', 'scale', '-h']],
  ])('%j prints the sections of cf on stdout', async (argv) => {
    const run = await user().run(argv);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout.match(/^[A-Z ]+(?=:$)/gm)).toEqual(['NAME', 'USAGE', 'EXAMPLES', 'OPTIONS', 'ENVIRONMENT', 'SEE ALSO']);
    expect(run.stdout).toContain('   kf scale APP_NAME [-i INSTANCES] [-k DISK] [-m MEMORY] [--process PROCESS]\n   [-f]\n');
  });

  it.each([[['help', 'help']], [['help', 'version']], [['--json']], [['--context', 'x']], [['--verbose']], [[]]])(
    '%j is the overview',
    async (argv) => {
      const run = await user().run(argv);
      expect(run).toMatchObject({ code: 0, stderr: '' });
      expect(run.stdout).toMatch(argv[0] === '--json' ? /"commands": \[/ : /^Usage: kf COMMAND /m);
    },
  );

  it('lists the commands that exist, and with -a also planned ones', async () => {
    const [short, all] = await Promise.all([user().run(['help']), user().run(['help', '-a'])]);
    expect(short.stdout).toMatch(/^ {3}apps, a /m);
    expect(short.stdout).not.toContain('(not yet)');
    expect(all.stdout).toMatch(/^ {3}ssh-code .*\(not yet\)$/m);
  });
});

describe('help for machines', () => {
  it('is one JSON document, for all commands or for one', async () => {
    const [all, one] = await Promise.all([user().run(['help', '-a', '--json']), user().run(['scale', '--help', '--json'])]);
    const { commands } = (JSON.parse(all.stdout) as { result: { commands: { name: string; available: boolean }[] } }).result;
    expect(commands).toContainEqual({
      group: 'APPS',
      name: 'apps',
      alias: 'a',
      summary: 'list all apps in the targeted space',
      available: true,
    });
    expect(commands.find(({ name }) => name === 'ssh-code')).toMatchObject({ available: false });
    expect((JSON.parse(one.stdout) as { result: unknown }).result).toMatchObject({
      name: 'scale',
      arguments: [{ name: 'APP_NAME', required: true }],
      flags: expect.arrayContaining([expect.objectContaining({ name: 'instances', char: 'i', type: 'option' })]) as unknown,
    });
  });
});

describe('a remembered target that the kubeconfig lacks', () => {
  it('is named as such, with the next commands', async () => {
    const cli = user();
    await cli.run(['target', '-o', 'example-org', '-s', 'example-space']);
    const run = await cli.run(['apps'], { env: { KUBECONFIG: '/nowhere/config' } });
    expect(run.stderr).toMatch(
      /^The target is context '.+'\. The kubeconfig has no context ".+"\. The kubeconfig \/nowhere\/config is not there\.\n/,
    );
    expect(run.stderr).toContain('   kf api --unset\n');
  });
});

describe('a wrong command line', () => {
  it('is refused on stderr, after the line of its usage on stdout', async () => {
    const run = await user().run(['scale', 'app', '--nope']);
    expect(run.code).toBe(1);
    expect(run.stderr).toBe("Incorrect Usage: unknown flag `nope'\n\nTIP:\n   kf help scale\n");
    expect(run.stdout).toBe('USAGE:\n   kf scale APP_NAME [-i INSTANCES] [-k DISK] [-m MEMORY] [--process PROCESS]\n   [-f]\n\n');
  });

  it.each([
    [['push', 'app', '--task'], "kf does not support '--task' of 'push' yet."],
    [['push', 'app', '-l', '1M'], "kf does not support '-l' of 'push' yet."],
    [['run-task', 'app', '-l', '1M'], "kf does not support '-l' of 'run-task' yet."],
    [['bs', 'app', 'db', '-c', '{}'], "kf does not support '-c' of 'bind-service' yet."],
    [['map-route', 'app', 'd', '--port', '80'], "kf does not support '--port' of 'map-route' yet."],
    [['scale', 'app', '-l', '1M'], "kf does not support '-l' of 'scale' yet."],
  ])('with a flag of cf that kf does not support names an alternative: %j', async (argv, message) => {
    const run = await user().run(argv);
    expect(run).toMatchObject({ code: 1, stdout: 'FAILED\n' });
    expect(run.stderr).toMatch(/^.+\n\nTIP:\n {3}For now: .+\n$/);
    expect(run.stderr.startsWith(`${message}\n`)).toBe(true);
    const json = await user().run([...argv, '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ status: 1, error: { code: 'usage', message } });
  });

  it.each([
    [['login', '--sso'], /^'--sso' of 'login' has no effect in kf: the kubeconfig /],
    [['login', '--sso'], /^'--sso' of 'login' has no effect in kf: the kubeconfig says where credentials come from/],
  ])('with a flag of cf that the kubeconfig replaces names the key there: %j', async (argv, message) => {
    const run = await user().run(argv);
    expect(run).toMatchObject({ code: 1, stdout: 'FAILED\n' });
    expect(run.stderr).toMatch(message);
    expect(run.stderr).toMatch(/\n\nTIP:\n {3}kubectl config set-.+\n$/);
  });

  it.each([
    [['push', 'app', '-n', 'host'], "'-n' of 'push'"],
    [['push', 'app', '--hostname', 'host'], "'--hostname' of 'push'"],
    [['push', 'app', '-d', 'example.com'], "'-d' of 'push'"],
  ])('with a flag of cf v6 names its replacement: %j', async (argv, subject) => {
    expect((await user().run(argv)).stderr).toBe(
      `${subject} has no effect in kf: routes are named in the manifest, or mapped by 'map-route'.\n\nTIP:\n   kf push APP --no-route, then kf map-route APP DOMAIN -n HOST\n`,
    );
  });

  it.each([
    [['scale'], 'Incorrect Usage: the required argument `APP_NAME` was not provided'],
    [['push', 'a', '-t', '86401'], "Incorrect Usage: invalid argument for flag '-t': 86401 is too much, at most 86400 is possible"],
    [['push', 'a', '-t', '0'], "Incorrect Usage: invalid argument for flag '-t' (expected int >= 1)"],
    [['apps', 'extra'], 'Incorrect Usage: unexpected argument "extra"'],
    [['scale', 'a', '-m', '10'], 'Incorrect Usage: Byte quantity must be an integer with a unit of measurement like M, MB, G, or GB'],
    [
      ['setup', '--gateway-port', '65536'],
      "Incorrect Usage: invalid argument for flag '--gateway-port': 65536 is too much, at most 65535 is possible",
    ],
    [['setup', '--gateway-port', '0'], "Incorrect Usage: invalid argument for flag '--gateway-port' (expected int >= 1)"],
    [
      ['map-route', 'a', 'd', '--app-port', '70000'],
      "Incorrect Usage: invalid argument for flag '--app-port': 70000 is too much, at most 65535 is possible",
    ],
  ])('%j prints %s', async (argv, message) => {
    expect((await user().run(argv)).stderr).toBe(`${message}\n\nTIP:\n   kf help ${argv[0] ?? ''}\n`);
  });

  it.each([
    [['run-task', 'shop', 'rake db:migrate'], 'kf run-task APP_NAME --command COMMAND'],
    [['ssh', 'shop', 'ls'], 'kf ssh APP_NAME -c COMMAND'],
    [['create-route', 'dev', 'example.com', '-n', 'shop'], 'kf create-route DOMAIN -n HOST'],
    [['check-route', 'shop', 'example.com'], 'kf check-route DOMAIN -n HOST'],
  ])('of an argument that older versions of cf took names the present form: %j', async (argv, hint) => {
    const run = await user().run(argv);
    expect(run).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Incorrect Usage: unexpected argument "/) as string });
    expect(run.stderr).toContain(`TIP:\n   ${hint}`);
  });

  it('is one document with --json', async () => {
    const run = await user().run(['scale', '--json']);
    expect(run).toMatchObject({ code: 1, stderr: '' });
    expect(JSON.parse(run.stdout)).toMatchObject({ status: 1, error: { code: 'usage', hints: ['kf help scale'] }, warnings: [] });
  });

  it('of an unknown command names the nearest ones', async () => {
    const run = await user().run(['resatrt', 'x']);
    expect(run).toMatchObject({ code: 1, stdout: '' });
    expect(run.stderr).toBe("'resatrt' is not a registered command. See 'kf help -a'\n\nDid you mean?\n      restart\n");
  });

  it('of the beginning of a command names the commands that begin with it', async () => {
    const { stderr } = await user().run(['ap']);
    expect(stderr).toBe("'ap' is not a registered command. See 'kf help -a'\n\nDid you mean?\n      api\n      app\n      apps\n");
  });

  it('of a cf command that kf does not have yet names an alternative', async () => {
    const run = await user().run(['ssh-code']);
    expect(run).toMatchObject({ code: 1, stdout: 'FAILED\n' });
    expect(run.stderr).toContain("kf does not support 'ssh-code' (one-time SSH passcode) yet.");
    expect(run.stderr).toContain('For now: kubectl exec');
  });

  it('with a strategy that does not exist starts no rollout', async () => {
    const run = await user().run(['push', 'app', '--strategy', 'blue']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('--strategy must be "rolling" or "canary" or "recreate"');
  });

  it('ends with the exit code of its class if these are enabled', async () => {
    const cli = user({ KF_EXIT_CODES: 'class' });
    expect((await cli.run(['scale'])).code).toBe(2);
    expect((await cli.run(['app', 'x', '--org', 'example-org', '--space', 'example-space'])).code).toBe(3);
  });
});

describe('the target', () => {
  it("is required, with cf's message", async () => {
    const cli = user();
    expect((await cli.run(['apps'])).stderr).toBe("No org targeted, use 'kf target -o ORG' to target an org.\n");
    expect((await cli.run(['apps', '--org', 'example-org'])).stderr).toBe(
      "No space targeted, use 'kf target -s SPACE' to target a space.\n",
    );
  });

  it("is saved in cf's fields, readable only by its owner, and saves lookups", async () => {
    const cli = user();
    const run = await cli.run(['target', '-o', 'example-org']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(
      /^API endpoint: {3}http:.*\nAPI version: {4}3\.\d+\.\d+\nuser: .*\norg: {12}example-org\nspace: {10}example-space\ncontext: .*\nkubernetes: {5}v1\.36\.0\n/,
    );
    expect(statSync(cli.stateFile).mode & 0o777).toBe(0o600);
    expect(cli.state()).toMatchObject({
      Target: cluster.server.url,
      OrganizationFields: { Name: 'example-org', GUID: 'org-guid' },
      SpaceFields: { Name: 'example-space', GUID: 'space-guid' },
    });
    const before = cluster.server.calls.length;
    expect((await cli.run(['apps'])).stdout).toContain(
      'Getting apps in org example-org / space example-space as alice...\n\nNo apps found\n',
    );
    expect(
      cluster.server.calls
        .slice(before)
        .map((call) => call.path.split('/').pop())
        .toSorted(),
    ).toEqual(['cfapps', 'cfprocesses', 'cfroutes', 'space-guid']);
  });

  it('can be overridden per command without being changed', async () => {
    const cli = user();
    await cli.run(['target', '-o', 'example-org', '-s', 'example-space']);
    const before = readFileSync(cli.stateFile, 'utf8');
    expect((await cli.run(['apps', '--space', 'example-spice'])).stderr).toContain(
      "Space 'example-spice' not found.\n\nTIP:\n   Did you mean 'example-space'?",
    );
    expect((await cli.run(['apps'], { env: { KF_ORG: 'nowhere' } })).stderr).toContain("Organization 'nowhere' not found.");
    expect(readFileSync(cli.stateFile, 'utf8')).toBe(before);
  });

  it('is cleared if kf target fails', async () => {
    const cli = user();
    await cli.run(['target', '-o', 'example-org']);
    expect((await cli.run(['target', '-s', 'nowhere'])).code).toBe(1);
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: 'example-org' }, SpaceFields: { Name: '' } });
    expect((await cli.run(['target', '-o', 'nowhere'])).code).toBe(1);
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: '' } });
  });

  it('is not used if its context leads to another cluster', async () => {
    const other = await (await ServedCluster.start()).installed();
    const cli = user();
    await cli.run(['target', '-o', 'example-org']);
    const run = await cli.run(['apps'], { env: { KUBECONFIG: other.server.kubeconfig() } });
    expect(run).toMatchObject({ code: 1, stdout: 'FAILED\n' });
    expect(run.stderr).toContain(
      `The target is the cluster at ${cluster.server.url}, but context 'test' now leads to ${other.server.url}.`,
    );
    expect(other.server.calls).toHaveLength(0);
    await other.stop();
  });

  it('that was deleted is distinguished from one without apps', async () => {
    const cli = user();
    await cluster.add(kinds.space, { metadata: { name: 'gone-guid', namespace: 'org-guid' }, spec: { displayName: 'gone' } });
    await cli.run(['target', '-o', 'example-org', '-s', 'gone']);
    await cluster.memory.delete(kinds.space, 'org-guid', 'gone-guid');
    expect((await cli.run(['apps'])).stderr).toContain("The targeted space 'gone' of org 'example-org' does not exist any more.");
  });
});

describe('a cluster', () => {
  it('that needs a newer kf is not changed', async () => {
    const newer = await (await ServedCluster.start()).installed();
    const map = newer.memory.peek(configMapType, 'cf', 'kf-info');
    const info = { ...(JSON.parse(map?.data?.['info.json'] ?? '{}') as object), oldestCli: '99.0.0' };
    await newer.memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': JSON.stringify(info) } });
    const run = await user({ KUBECONFIG: newer.server.kubeconfig() }).run(['create-org', 'x']);
    expect(run).toMatchObject({ code: 1 });
    expect(run.stderr).toContain('is too old for the cluster');
    expect(newer.memory.writes.filter(({ kind, name }) => kind === 'CFOrg' && name !== 'org-guid')).toEqual([]);
    await newer.stop();
  });

  it('that does not answer is named with its context', async () => {
    const gone = await ServedCluster.start();
    const kubeconfig = gone.server.kubeconfig();
    const config = readFileSync(kubeconfig, 'utf8');
    await gone.server.halt();
    const run = await user().run(['apps', '--org', 'o', '--space', 's'], { env: { KUBECONFIG: kubeconfig } });
    expect(config).toContain(gone.server.url);
    expect(run).toMatchObject({ code: 1, stdout: 'FAILED\n' });
    expect(run.stderr).toContain(`Kubernetes does not answer at ${gone.server.url} (context "test")`);
    await gone.stop();
  });

  it('without kf says so and names setup', async () => {
    const bare = await ServedCluster.start();
    for (const plural of ['cforgs', 'cfspaces', 'cfapps']) bare.missing.add(plural);
    const kubeconfig = bare.server.kubeconfig();
    for (const argv of [['apps'], ['apps', '--org', 'o', '--space', 's'], ['orgs']]) {
      const run = await user().run(argv, { env: { KUBECONFIG: kubeconfig } });
      expect(run.code).toBe(1);
      expect(run.stderr).toContain(`kf is not set up in the cluster at ${bare.server.url} (context 'test').`);
      expect(run.stderr).toContain('kf setup --context test');
    }
    await bare.stop();
  });

  it('that refuses names the right and the user', async () => {
    cluster.server.on('GET /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/cf/cforgs', (call) =>
      call.fail(
        403,
        'Forbidden',
        'cforgs.korifi.cloudfoundry.org is forbidden: User "alice" cannot list resource "cforgs" in API group "korifi.cloudfoundry.org" in the namespace "cf"',
      ),
    );
    const run = await user().run(['orgs', '--json']);
    cluster.server.on('GET /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/cf/cforgs', (call) => call.json({ metadata: {}, items: [] }));
    const document = JSON.parse(run.stdout) as { error: { code: string; details: { missingRight: object } } };
    expect(document.error.code).toBe('forbidden');
    expect(document.error.details.missingRight).toMatchObject({ user: 'alice', verb: 'list', resource: 'cforgs' });
  });
});

describe('an output that cannot be written', () => {
  /** Runs kf in a shell; returns the shell's exit status and kf's output. */
  function inShell(command: string): Promise<{ status: string; stdout: string; stderr: string }> {
    const cli = user();
    const script = `kf() { "${process.execPath}" "${bundle.program}" "$@"; }; cd "$HOME"; ${command}`;
    return new Promise((resolve) => {
      const own = { PATH: process.env['PATH'], HOME: cli.home, CF_HOME: cli.home, ...env };
      execFile('bash', ['-c', script], { env: own }, (error, stdout, stderr) =>
        resolve({ status: String(error?.code ?? 0), stdout, stderr }),
      );
    });
  }

  it('because the reader closed the pipe ends silently', async () => {
    // The reader has ended before kf prints: `true` reads nothing.
    const gone = await inShell('{ sleep 0.3; kf help -a; echo "ended with $?" >&2; } | true');
    expect(gone.stderr).toBe('ended with 141\n');
    const both = await inShell('{ { sleep 0.3; kf apps; } 2>&1; echo "ended with $?" > code; } | true; cat code');
    expect(both.stdout).toBe('ended with 141\n');
  });

  it('because its disk is full is a failure', async () => {
    const full = await inShell('kf help -a > /dev/full; echo "ended with $?" >&2');
    expect(full.stderr).toMatch(/^The output cannot be written: ENOSPC.*\nended with 1\n$/);
  });

  it.each(['kf orgs', 'kf orgs --json', 'kf api'])('causes one sentence from a command that asks the cluster: %s', async (command) => {
    const full = await inShell(`${command} > /dev/full; echo "ended with $?" >&2`);
    expect(full.stderr).toMatch(/^The output cannot be written: ENOSPC[^\n]*\.\nended with 1\n$/);
  });

  it('is a failure without a message if stderr cannot be written either', async () => {
    const full = await inShell('kf apps > /dev/full 2>&1; echo "ended with $?" >&2');
    expect(full.stderr).toBe('ended with 1\n');
  });
});
