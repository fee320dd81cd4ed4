import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const made = mkdtempSync(path.join(tmpdir(), 'kf-plugin-'));
let tarball: string;
let cluster: ServedCluster;
let cli: Cli;

/** A package as its author would publish it. */
function pack(name: string, files: Record<string, string>, manifest: object): string {
  const folder = path.join(made, name);
  for (const [file, text] of Object.entries({
    'package.json': JSON.stringify({ name, version: '1.0.0', type: 'module', ...manifest }),
    ...files,
  })) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  }
  return folder;
}

const command = (name: string, text = `console.log('${name}');`): Record<string, string> => ({
  [`commands/${name}.js`]: `import { KfCommand } from '@kf/cli/api'; export default class extends KfCommand { async run() { ${text} } }`,
});
const oclif = { oclif: { commands: './commands' } };

beforeAll(() => {
  cpSync('test/fixtures/plugin', path.join(made, 'sample'), { recursive: true });
  execFileSync('npm', ['pack', '--pack-destination', made, '--silent'], { cwd: path.join(made, 'sample') });
  tarball = path.join(made, 'kf-plugin-app-names-1.2.3.tgz');
});
afterAll(() => {
  bundle.remove();
  rmSync(made, { recursive: true, force: true });
});

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  // A registry that does not exist: no test here may need one.
  const nowhere = { npm_config_registry: 'http://127.0.0.1:1', npm_config_cache: path.join(made, 'cache') };
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space', ...nowhere });
});
afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

async function addApp(): Promise<void> {
  const spec = { displayName: 'my-app', desiredState: 'STOPPED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'my-app-guid', namespace: 'space-guid' }, spec });
}

/** Files in the folder of plugins. */
const left = (): string[] => (existsSync(path.join(cli.home, '.cf')) ? readdirSync(path.join(cli.home, '.cf')) : []);

describe('a plugin', () => {
  it("is installed from a tarball, listed, and its command works with kf's target", async () => {
    expect(await cli.run(['install-plugin', tarball, '-f'])).toMatchObject({
      code: 0,
      stdout: `Installing plugin ${tarball}...\nOK\n\nPlugin kf-plugin-app-names 1.2.3 successfully installed.\n`,
      stderr: '',
    });
    const listed = await cli.run(['plugins']);
    expect(listed.stdout).toMatch(/^Listing installed plugins\.\.\.\n\nplugin +version +command name +command help\n/);
    expect(listed.stdout).toMatch(/^kf-plugin-app-names +1\.2\.3 +app-names, an +list the names of all apps$/m);

    await addApp();
    const text = { code: 0, stdout: 'Getting names of apps in org example-org / space example-space as alice...\nmy-app\n', stderr: '' };
    expect(await cli.run(['app-names'])).toMatchObject(text);
    expect(await cli.run(['an'])).toMatchObject(text);
    expect(JSON.parse((await cli.run(['app-names', '--upper', '--json'])).stdout)).toEqual({ status: 0, result: ['MY-APP'], warnings: [] });
  });

  it("has kf's form of help, usage errors and failures", async () => {
    await cli.run(['install-plugin', tarball, '-f']);
    for (const words of [
      ['help', 'app-names'],
      ['app-names', '--help'],
    ]) {
      const help = await cli.run(words);
      expect(help.code).toBe(0);
      expect(help.stdout).toContain('NAME:\n   app-names - list the names of all apps\n\nUSAGE:\n   kf app-names [--upper]\n');
      expect(help.stdout).toContain('EXAMPLES:\n   kf app-names\n   kf app-names --upper\n\nALIAS:\n   an\n');
    }
    const wrong = await cli.run(['app-names', '--lower']);
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining("Incorrect Usage: unknown flag `lower'") as string });
    const none = await cli.run(['app-names']);
    expect(none).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED') as string });
    expect(none.stderr).toBe("There are no apps in space 'example-space'.\n\nTIP:\n   kf push\n");
  });

  it('that uses only oclif runs too, and ends with its own exit code', async () => {
    const text = `import { createRequire } from 'node:module'; const { Command } = createRequire('${path.resolve('package.json')}')('@oclif/core');
      export default class extends Command { async run() { this.log('plain'); if (this.argv[0] === 'bad') this.error('It broke.', { exit: 7 }); this.exit(3); } }`;
    expect((await cli.run(['install-plugin', pack('plain', { 'commands/plain.js': text }, oclif), '-f'])).stderr).toBe('');
    expect(await cli.run(['plain'])).toMatchObject({ code: 3, stdout: 'plain\n', stderr: '' });
    expect(await cli.run(['plain', 'bad'])).toMatchObject({ code: 7, stdout: 'plain\nFAILED\n', stderr: 'It broke.\n' });
  });

  it.each([[['help']], [['help', '-a']], [['--help']]])('is listed with its commands by %j', async (words) => {
    const heading = 'INSTALLED PLUGIN COMMANDS:';
    expect((await cli.run(words)).stdout).not.toContain(heading);
    const install = (plugin: string): Promise<CliRun> => cli.run(['install-plugin', plugin, '-f']);
    expect(await install(tarball)).toMatchObject({ code: 0, stderr: '' });
    expect(await install(pack('second', command('second'), oclif))).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await cli.run(words);
    expect(stdout).toMatch(/^INSTALLED PLUGIN COMMANDS:\n {3}app-names, an +list the names of all apps\n {3}second *$/m);
    expect(await cli.run(['uninstall-plugin', 'kf-plugin-app-names'])).toMatchObject({ code: 0, stderr: '' });
    const left = (await cli.run(words)).stdout;
    expect(left).toMatch(/^INSTALLED PLUGIN COMMANDS:\n {3}second *$/m);
    expect(left).not.toContain('app-names');
  });

  it('is in the list of kf help --json, also if its commands were not recorded when it was installed', async () => {
    await cli.run(['install-plugin', tarball, '-f']);
    const row = {
      group: 'INSTALLED PLUGIN COMMANDS',
      name: 'app-names',
      alias: 'an',
      summary: 'list the names of all apps',
      available: true,
    };
    const listed = async (): Promise<unknown> => (JSON.parse((await cli.run(['help', '--json'])).stdout) as { result: unknown }).result;
    expect(await listed()).toMatchObject({ commands: expect.arrayContaining([row]) as unknown });
    const file = path.join(cli.home, '.cf', 'kf-plugins', 'package.json');
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), kf: undefined }));
    expect(await listed()).toMatchObject({ commands: expect.arrayContaining([row]) as unknown });
  });

  it('is removed together with its command', async () => {
    await cli.run(['install-plugin', tarball, '-f']);
    await cli.run(['install-plugin', pack('second', command('second'), oclif), '-f']);
    expect(await cli.run(['uninstall-plugin', 'kf-plugin-app-names'])).toMatchObject({
      code: 0,
      stdout: 'Uninstalling plugin kf-plugin-app-names...\nOK\n\nPlugin kf-plugin-app-names 1.2.3 successfully uninstalled.\n',
    });
    expect((await cli.run(['app-names'])).stderr).toContain("'app-names' is not a registered command.");
    expect(await cli.run(['second'])).toMatchObject({ code: 0, stdout: 'second\n' });
    await cli.run(['uninstall-plugin', 'second']);
    expect(left()).toEqual([]);
    expect(await cli.run(['uninstall-plugin', 'second'])).toMatchObject({
      code: 1,
      stderr: 'Plugin second does not exist.\n\nTIP:\n   kf plugins\n',
    });
  });

  it('is installed from a path without a dot in front, too', async () => {
    cpSync(path.join(made, 'sample'), path.join(cli.home, 'plugins', 'sample'), { recursive: true });
    expect(await cli.run(['install-plugin', 'plugins/sample', '-f'])).toMatchObject({ code: 0, stderr: '' });
  });

  it('does not make other commands load further files', async () => {
    const recorder = fileURLToPath(new URL('../../support/loaded-files.mjs', import.meta.url));
    const loaded = async (...argv: string[]): Promise<string[]> => {
      const { stderr } = await cli.run(argv, { env: { NODE_OPTIONS: `--import ${recorder}` } });
      const [, list = '[]'] = /^LOADED (.*)$/m.exec(stderr) ?? [];
      return (JSON.parse(list) as string[]).map((file) => path.basename(file));
    };
    const lines = [['--version'], ['--help'], ['apps'], ['help', 'apps'], ['a', '--no-such-flag']];
    const before = await Promise.all(lines.map((argv) => loaded(...argv)));
    expect(before.every((files) => files.includes('main.js'))).toBe(true);
    await cli.run(['install-plugin', tarball, '-f']);
    expect(await Promise.all(lines.map((argv) => loaded(...argv)))).toEqual(before);
    expect(await loaded('app-names')).toContain('app-names.js');
  });

  it('is installed after a question, and without a terminal kf names the flag to use', async () => {
    const asked = await cli.run(['install-plugin', tarball]);
    expect(asked.code).toBe(1);
    expect(asked.stdout).toContain('Attention: Plugins are programs written by potentially untrusted authors.\n');
    expect(asked.stderr).toContain('There is no terminal to ask on: add -f to say yes.');
    expect(left()).toEqual([]);
  });
});

describe('an installation that fails shows the cause and changes nothing', () => {
  it.each([
    ['without a network', 'some-plugin', 'The npm registry does not answer (ECONNREFUSED), so plugin'],
    ['of a file that there is not', './nowhere.tgz', "There is no file './nowhere.tgz' to install a plugin from."],
    ['of a package that is no plugin', () => pack('library', {}, {}), "Package 'library' is no plugin: its package.json has no 'oclif'."],
    [
      'without commands',
      () => pack('empty', { 'commands/readme.txt': '' }, oclif),
      'Plugin empty 1.0.0 could not be installed as it contains no commands.',
    ],
    ['with a command of kf', () => pack('greedy', command('push'), oclif), 'commands with names and aliases that are already used: push.'],
    [
      'of what is installed',
      () => tarball,
      'Plugin kf-plugin-app-names could not be installed. A plugin with that name is already installed.',
    ],
  ])('%s', async (_, given, message) => {
    await cli.run(['install-plugin', tarball, '-f']);
    const before = left();
    const name = typeof given === 'string' ? given : given();
    // Without -f a terminal would ask: `script` gives one.
    const failed = message.includes('already installed')
      ? await onTerminal(['install-plugin', name])
      : await cli.run(['install-plugin', name, '-f']);
    expect(failed.code).toBe(1);
    expect(failed.stdout + failed.stderr).toContain(message);
    expect(left()).toEqual(before);
    expect((await cli.run(['plugins', '--json'])).stdout).toContain('"kf-plugin-app-names"');
  });

  it('also if it is the first installation', async () => {
    expect((await cli.run(['install-plugin', 'some-plugin', '-f'])).code).toBe(1);
    expect(left()).toEqual([]);
  });

  it('if npm is missing', async () => {
    const run = await cli.run(['install-plugin', tarball, '-f'], { env: { PATH: '/nowhere' } });
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no npm on the path') as string });
  });
});

/** The command on a terminal of its own, where the question is answered with yes. */
async function onTerminal(args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env['PATH'], HOME: cli.home, CF_HOME: cli.home, TERM: 'dumb', ...cli.env };
  const line = [process.execPath, bundle.program, ...args].map((word) => `'${word}'`).join(' ');
  try {
    const stdout = execFileSync('script', ['-qec', line, '/dev/null'], { env, input: 'y\n', encoding: 'utf8' });
    return { code: 0, stdout, stderr: '' };
  } catch (error) {
    const { status, stdout } = error as { status: number; stdout: string };
    return { code: status, stdout, stderr: '' };
  }
}

describe('without plugins', () => {
  it('an unknown command is answered as before', async () => {
    expect((await cli.run(['app-names'])).stderr).toContain("'app-names' is not a registered command. See 'kf help -a'");
    expect(await cli.run(['plugins', '--json'])).toMatchObject({
      code: 0,
      stdout: `${JSON.stringify({ status: 0, result: [], warnings: [] }, null, 2)}\n`,
    });
  });
});
