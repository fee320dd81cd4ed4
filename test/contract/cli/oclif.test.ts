import { closeSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Config } from '@oclif/core';
import { runCommand } from '@oclif/test';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { KfCommand } from '../../../src/base-command.ts';
import type { Frame, Program } from '../../../src/frame.ts';
import { openTerminal } from '../../../src/lib/output/terminal.ts';
import { bundleForTests } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const root = path.dirname(path.dirname(bundle.program));
const commands = (await Config.load({ root })).commands.filter(({ id, aliases }) => !aliases.includes(id));
afterAll(() => bundle.remove());

interface CommandModule {
  default: (new (argv: string[], program: Program) => KfCommand<unknown>) & { id: string };
}

interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

/** kf as users run it: a child process with its own frame. */
async function underFrame(scene: PushScene, argv: string[]): Promise<Run> {
  const { code, stdout, stderr } = await scene.cli.run(argv);
  return { code: code ?? -1, stdout, stderr };
}

/** The same command found, loaded and run by oclif, in this process. */
async function underOclif(scene: PushScene, argv: string[]): Promise<Run> {
  const there = process.cwd();
  vi.stubEnv('HOME', scene.cli.home);
  for (const [name, value] of Object.entries({ ...scene.cli.env, CF_HOME: scene.cli.home, TZ: 'UTC' })) vi.stubEnv(name, value);
  process.chdir(scene.cli.home);
  try {
    const quoted = argv.map((word) => (/\s/.test(word) ? `"${word}"` : word));
    const { stdout, stderr, error } = await runCommand(quoted, { root }, { testNodeEnv: 'production' });
    return { code: exitCodeOf(error), stdout, stderr };
  } finally {
    process.chdir(there);
    vi.unstubAllEnvs();
  }
}

/** The exit code with which oclif's `execute` would end the process; every error that is not an exit is a bug of the command. */
function exitCodeOf(error: (Error & { oclif?: { exit?: number | undefined } }) | undefined): number {
  if (error === undefined) return 0;
  if (error.oclif?.exit === undefined) throw error;
  return error.oclif.exit;
}

/** Replaces what differs between two clusters and two runs: addresses, times and generated names. */
function withoutChance({ code, stdout, stderr }: Run, scene: PushScene): Run {
  const plain = (text: string): string =>
    text
      .replaceAll(scene.cluster.server.url, 'SERVER')
      .replaceAll(scene.cli.home, 'HOME')
      .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'GUID')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?/g, 'TIME')
      .replaceAll(/\w{3} \d\d \w{3} \d\d:\d\d:\d\d UTC \d{4}/g, 'TIME')
      .replaceAll(/\b\d+ *s( ago)?\b/g, 'N s');
  return { code, stdout: plain(stdout), stderr: plain(stderr) };
}

let fast: PushScene;
let slow: PushScene;
beforeAll(async () => {
  [fast, slow] = await Promise.all([PushScene.start(bundle.program), PushScene.start(bundle.program)]);
  // The stdin of this process is at its end too, as that of the child process. A new file gets the lowest free number.
  writeFileSync(path.join(slow.cli.home, 'stdin'), '');
  closeSync(0);
  expect(openSync(path.join(slow.cli.home, 'stdin'), 'r')).toBe(0);
});
afterAll(async () => {
  await Promise.all([fast.stop(), slow.stop()]);
});

async function compared(...argv: string[]): Promise<Run> {
  const ours = withoutChance(await underFrame(fast, argv), fast);
  const theirs = withoutChance(await underOclif(slow, argv), slow);
  expect(theirs, `kf ${argv.join(' ')}`).toEqual(ours);
  return ours;
}

/** One day with kf: each command succeeds, in a possible order. */
const day: string[][] = [
  ['api'],
  ['auth', 'tester'],
  ['login', '-o', 'example-org', '-s', 'example-space'],
  ['target', '-o', 'example-org', '-s', 'example-space'],
  ['create-org', 'example-org'],
  ['create-space', 'example-space'],
  ['orgs'],
  ['spaces'],
  ['org', 'example-org'],
  ['space', 'example-space'],
  ['rename-org', 'example-org', 'example-org'],
  ['rename-space', 'example-space', 'example-space'],
  ['domains'],
  ['network-policies'],
  ['create-app', 'shop'],
  ['get-health-check', 'shop'],
  ['get-readiness-health-check', 'shop'],
  ['set-health-check', 'shop', 'port'],
  ['rename', 'shop', 'shop'],
  ['set-label', 'app', 'shop', 'env=prod', 'tier=web'],
  ['labels', 'app', 'shop'],
  ['unset-label', 'app', 'shop', 'env', 'tier'],
  ['create-app-manifest', 'shop'],
  ['apply-manifest', '-f', 'shop_manifest.yml'],
  ['completion', 'bash'],
  ['stacks'],
  ['feature-flags'],
  ['buildpacks'],
  ['push', 'shop', '-p', 'app'],
  ['app', 'shop'],
  ['apps'],
  ['set-env', 'shop', 'COLOUR', 'light blue'],
  ['env', 'shop'],
  ['unset-env', 'shop', 'COLOUR'],
  ['create-user-provided-service', 'db', '-p', '{"uri":"postgres://db"}'],
  ['bind-service', 'shop', 'db'],
  ['services'],
  ['service', 'db'],
  ['update-user-provided-service', 'db'],
  ['rename-service', 'db', 'db'],
  ['unbind-service', 'shop', 'db'],
  ['delete-service', 'db', '-f'],
  ['map-route', 'shop', 'apps.localhost', '--hostname', 'other'],
  ['routes'],
  ['update-destination', 'shop', 'apps.localhost', '--hostname', 'other', '--app-protocol', 'http1'],
  ['unmap-route', 'shop', 'apps.localhost', '--hostname', 'other'],
  ['create-route', 'apps.localhost', '--hostname', 'spare'],
  ['check-route', 'apps.localhost', '--hostname', 'spare'],
  ['update-route', 'apps.localhost', '--hostname', 'spare', '-o', 'loadbalancing=round-robin'],
  ['route', 'apps.localhost', '--hostname', 'spare'],
  ['delete-route', 'apps.localhost', '--hostname', 'spare', '-f'],
  ['delete-orphaned-routes', '-f'],
  ['scale', 'shop'],
  ['autoscale', 'shop'],
  ['tasks', 'shop'],
  ['packages', 'shop'],
  ['droplets', 'shop'],
  ['revisions', 'shop'],
  ['releases', 'shop'],
  ['curl', '/v3/apps?names=shop'],
  ['events', 'shop'],
  ['why', 'shop'],
  ['logs', 'shop', '--recent'],
  ['restage', 'shop'],
  ['restart', 'shop'],
  ['stop', 'shop'],
  ['start', 'shop'],
  ['delete', 'shop', '-f', '-r'],
  ['plugins'],
  ['set-org-role', 'bob', 'example-org', 'OrgManager'],
  ['set-space-role', 'bob', 'example-org', 'example-space', 'SpaceDeveloper'],
  ['create-org-quota', 'team', '-m', '2G'],
  ['org-quotas'],
  ['org-quota', 'team'],
  ['update-org-quota', 'team', '-r', '5'],
  ['set-org-quota', 'example-org', 'team'],
  ['create-org-quota', 'other'],
  ['delete-org-quota', 'other', '-f'],
  ['create-space-quota', 'small', '-m', '1G'],
  ['space-quotas'],
  ['space-quota', 'small'],
  ['update-space-quota', 'small', '-s', '2'],
  ['set-space-quota', 'example-space', 'small'],
  ['unset-space-quota', 'example-space', 'small'],
  ['delete-space-quota', 'small', '-f'],
  ['org-users', 'example-org', '-a'],
  ['space-users', 'example-org', 'example-space'],
  ['unset-space-role', 'bob', 'example-org', 'example-space', 'SpaceDeveloper'],
  ['unset-org-role', 'bob', 'example-org', 'OrgManager'],
  ['config', '--async-timeout', '30'],
  ['delete-space', 'none', '-f'],
  ['delete-org', 'none', '-f'],
  ['logout'],
  ['rebuild', '--dry-run'],
];

/** Commands that a cluster in memory cannot finish: the failure is the same. */
const failing: string[][] = [
  ['move-route', 'apps.localhost', '-n', 'none', '-s', 'example-space'],
  ['share-route', 'apps.localhost', '-n', 'none', '-s', 'example-space'],
  ['unshare-route', 'apps.localhost', '-n', 'none', '-s', 'example-space'],
  ['create-shared-domain', 'apps.localhost'],
  ['delete-shared-domain', 'apps.localhost', '-f'],
  ['create-private-domain', 'example-org', 'apps.localhost'],
  ['delete-private-domain', 'apps.localhost', '-f'],
  ['share-private-domain', 'example-org', 'apps.localhost'],
  ['unshare-private-domain', 'example-org', 'apps.localhost', '-f'],
  ['install-plugin', 'x'],
  ['uninstall-plugin', 'x'],
  ['add-network-policy', 'no-such-app', 'shop'],
  ['remove-network-policy', 'no-such-app', 'shop', '--protocol', 'tcp', '--port', '8080'],
  ['open', 'no-such-app'],
  ['run-task', 'no-such-app'],
  ['create-package', 'no-such-app'],
  ['stage-package', 'no-such-app'],
  ['set-droplet', 'no-such-app', 'no-such-droplet'],
  ['download-droplet', 'no-such-app'],
  ['copy-source', 'no-such-app', 'other'],
  ['revision', 'no-such-app'],
  ['diff', 'no-such-app'],
  ['cancel-deployment', 'shop'],
  ['continue-deployment', 'shop'],
  ['rollback', 'no-such-app', '--version', '1'],
  ['restart-app-instance', 'no-such-app', '0'],
  ['task', 'no-such-app', '1'],
  ['terminate-task', 'no-such-app', '1'],
  ['ssh', 'no-such-app', '-c', 'date'],
  ['enable-ssh', 'no-such-app'],
  ['feature-flag', 'no-such-flag'],
  ['enable-feature-flag', 'no-such-flag'],
  ['disable-feature-flag', 'no-such-flag'],
  ['disable-ssh', 'no-such-app'],
  ['ssh-enabled', 'no-such-app'],
  ['allow-space-ssh', 'no-such-space'],
  ['disallow-space-ssh', 'no-such-space'],
  ['space-ssh-allowed', 'no-such-space'],
  ['stack', 'no-such-stack'],
  ['migrate', 'check', 'no-such-script'],
  ['rotate', 'registry-key'],
  ['prune', '--dry-run'],
  ['ca-certificate'],
  ['setup', '--dry-run'],
  ['uninstall'],
];

describe('every command under the loader of oclif', () => {
  it('is run by this test', () => {
    const run = new Set([...day, ...failing].map(([name]) => name));
    expect(commands.map(({ id }) => id).filter((id) => !run.has(id))).toEqual([]);
  });

  it("reads only the name of the program from oclif's configuration", async () => {
    const read = new Set<string | symbol>();
    const program = new Proxy({ bin: 'kf' }, { get: (target, name) => (read.add(name), Reflect.get(target, name)) });
    const streams = { env: {}, stdout: { write: () => true }, stderr: () => ({ write: () => true }), canAsk: () => false, json: false };
    const frame: Frame = { terminal: await openTerminal(streams), signal: new AbortController().signal, env: {}, bin: 'kf' };
    for (const { id } of commands) {
      const { default: Command } = (await import(path.join(root, 'dist', 'commands', `${id}.js`))) as CommandModule;
      Command.id = id;
      expect(await new Command(['--no-such-flag'], program).execute(frame), id).toBe(1);
    }
    expect([...read]).toEqual(['bin']);
  });

  it('prints the same and ends with the same exit code where it succeeds', async () => {
    for (const argv of day) expect((await compared(...argv)).code, argv.join(' ')).toBe(0);
  });

  it('prints the same and ends with the same exit code where it fails', async () => {
    for (const argv of failing) expect((await compared(...argv)).code, argv.join(' ')).not.toBe(0);
  });

  it.each(commands.map(({ id }) => id))('gives the same for %s with an unknown flag, with --json and without', async (id) => {
    expect((await compared(id, '--no-such-flag')).code).toBe(1);
    expect((await compared(id, '--no-such-flag', '--json')).code).toBe(1);
  });

  const withArguments = commands.filter(({ args }) => Object.values(args).some(({ required }) => required === true));
  it.each(withArguments.map(({ id }) => id))('gives the same for %s without its arguments', async (id) => {
    expect((await compared(id)).code).toBe(1);
  });
});
