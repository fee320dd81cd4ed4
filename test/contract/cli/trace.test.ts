import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const commands = [
  ['target'],
  ['apps'],
  ['routes'],
  ['create-user-provided-service', 'db', '-p', '{"password":"hush"}'],
  ['services'],
  ['orgs'],
];
const request = /^list korifi\.cloudfoundry\.org\/v1alpha1 cforgs cf: done, \d+ ms$/m;

describe('requests are logged', () => {
  it.each([
    ['-v', ['-v'], {}],
    ['--verbose', ['--verbose'], {}],
    ['CF_TRACE=true', [], { CF_TRACE: 'true' }],
  ])('by %s, on stdout, and the exit code stays the same', async (_, flags, env) => {
    for (const argv of commands) {
      const run = await cli.run([...argv, ...flags], { env });
      expect(run, argv.join(' ')).toMatchObject({ code: 0, stderr: '' });
      expect(run.stdout, argv.join(' ')).toMatch(request);
      expect(run.stdout).not.toContain('hush');
    }
  });

  it('with their bodies as indented JSON, in which secrets are hidden', async () => {
    const run = await cli.run(['create-user-provided-service', 'db', '-p', '{"password":"hush"}', '-v']);
    expect(run.stdout).toMatch(/^create korifi\.cloudfoundry\.org\/v1alpha1 cfserviceinstances .*: done, \d+ ms\nREQUEST:\n\{\n  "/m);
    expect(run.stdout).toContain('    "displayName": "db",\n');
    expect(run.stdout).toMatch(/^create v1 secrets [^]*"\w+": "\[PRIVATE DATA HIDDEN\]"/m);
    expect(run.stdout).not.toMatch(/hush|aHVza/);
  });

  it('to the file that CF_TRACE names, and stdout is unchanged', async () => {
    const file = path.join(cli.home, 'trace.log');
    for (const argv of commands.filter(([name]) => name !== 'create-user-provided-service')) {
      const without = await cli.run(argv);
      const run = await cli.run(argv, { env: { CF_TRACE: file } });
      expect(run, argv.join(' ')).toMatchObject({ code: 0, stderr: without.stderr, stdout: without.stdout });
    }
    expect(readFileSync(file, 'utf8')).toMatch(request);
  });

  it('also if the flag comes before the command’s name', async () => {
    const run = await cli.run(['-v', 'apps']);
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(request);
  });

  it('and the exit code of a failure stays the same', async () => {
    const run = await cli.run(['app', 'nothing', '-v'], { env: { KF_EXIT_CODES: 'class' } });
    expect(run.code).toBe(3);
    expect(run.stderr).toContain("App 'nothing' not found.\n");
  });

  it('also if the command abandons them at its end, and nothing is logged afterwards', async () => {
    cluster.server.on('POST .*/selfsubjectreviews', () => new Promise<void>(() => undefined));
    const run = await cli.run(['apps', '-v', '--org', 'nowhere']);
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/^whoAmI: abandoned, \d+ ms$/m);
    expect(run.stdout).not.toContain('has ended');
    expect(run.stdout.endsWith('\nFAILED\n')).toBe(true);
  });

  it('and --json still prints one document', async () => {
    const run = await cli.run(['apps', '-v', '--json']);
    expect(run.code).toBe(0);
    expect(JSON.parse(run.stdout)).toMatchObject({ status: 0 });
    expect(run.stderr).toMatch(request);
  });

  it('to a file that cannot be written: with a warning, and the command continues', async () => {
    const run = await cli.run(['apps'], { env: { CF_TRACE: path.join(cli.home, 'nowhere', 'trace.log') } });
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(/^CF_TRACE: .*nowhere\/trace\.log cannot be written \(ENOENT.*\)\. Requests are not traced\.\n$/);
  });
});
