// config: settings that the next commands use.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const settingsFile = (): string => path.join(cli.home, '.cf', 'settings.json');
const bold = '\u001B[1m';

it('--color is the colour of the next commands, and CF_COLOR wins', async () => {
  expect(await cli.run(['config', '--color', 'true'])).toMatchObject({
    code: 0,
    stdout: 'Setting values in config...\nOK\n\n',
    stderr: '',
  });
  expect((await cli.run(['orgs'])).stdout).toContain(bold);
  expect((await cli.run(['orgs'], { env: { CF_COLOR: 'false' } })).stdout).not.toContain(bold);
  await cli.run(['config', '--color', 'false']);
  expect((await cli.run(['orgs'])).stdout).not.toContain(bold);
});

it('--trace writes the requests of the next commands into a file', async () => {
  const log = path.join(cli.home, 'trace.log');
  expect((await cli.run(['config', '--trace', 'trace.log'])).code).toBe(0);
  await cli.run(['orgs']);
  expect(readFileSync(log, 'utf8')).toContain('list korifi.cloudfoundry.org/v1alpha1 cforgs cf');
  await cli.run(['config', '--trace', 'true']);
  expect((await cli.run(['orgs'])).stdout).toContain('list korifi.cloudfoundry.org/v1alpha1 cforgs cf');
});

it('--async-timeout limits how long a deletion is waited for', async () => {
  const run = await cli.run(['config', '--async-timeout', '30', '--json']);
  expect(JSON.parse(run.stdout)).toMatchObject({ result: { asyncTimeoutMinutes: 30 } });
  // A minute is too long for a test.
  writeFileSync(settingsFile(), JSON.stringify({ AsyncTimeout: 0.01 }));
  await cluster.memory.mergePatch(kinds.space, 'org-guid', 'space-guid', { metadata: { finalizers: ['kf.test/slow'] } });
  const ready = { type: 'Ready', status: 'False', reason: 'Deleting', message: 'It waits for a volume.', lastTransitionTime: '' };
  await cluster.memory.mergePatch(kinds.space, 'org-guid', 'space-guid', { status: { conditions: [ready] } }, { subresource: 'status' });
  const late = await cli.run(['delete-space', 'example-space', '-o', 'example-org', '-f']);
  expect([late.code, late.stderr]).toEqual([
    1,
    expect.stringContaining("Space 'example-space' is still being deleted: It waits for a volume.\n\nTIP:\n   kf spaces --org example-org"),
  ]);
});

it('--locale has no effect and says so', async () => {
  expect(await cli.run(['config', '--locale', 'de-DE'])).toMatchObject({ code: 0, stderr: '--locale has no effect: kf speaks English.\n' });
});

it('is no target: the next command is still one of a user who never chose one', async () => {
  await cli.run(['config', '--color', 'false']);
  expect((await cli.run(['apps'])).stderr).toBe("No org targeted, use 'kf target -o ORG' to target an org.\n");
  expect(cluster.memory.all(kinds.org)).toHaveLength(1);
});

it.each([
  [['config'], 'Incorrect Usage: at least one flag must be provided'],
  [['config', '--color', 'blue'], 'COLOR must be "true" or "false"'],
  [['config', '--async-timeout', '0'], "invalid argument for flag '--async-timeout' (expected int >= 1)"],
])('%j prints %s', async (argv, message) => {
  const run = await cli.run(argv);
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(message)]);
});

it('a file that is not JSON counts for nothing, and one that cannot be written is an error', async () => {
  mkdirSync(path.dirname(settingsFile()), { recursive: true });
  writeFileSync(settingsFile(), '{');
  expect((await cli.run(['orgs'])).code).toBe(0);
  const run = await cli.run(['config', '--color', 'true'], { env: { CF_HOME: settingsFile() } });
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('The settings were not saved')]);
});
