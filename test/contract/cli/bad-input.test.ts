// What every command says to wrong input: it ends with 1, without a stack and without words of Kubernetes that users do not know, and names what to do
// next. The commands run in this process, as they do under oclif: a process for each would take minutes.

import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadCommand, runHere, type RanHere } from '../../support/in-process.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const folder = new URL('../../../src/commands/', import.meta.url);
const commands = readdirSync(folder).map((file) => path.basename(file, '.ts'));
const home = mkdtempSync(path.join(tmpdir(), 'kf-bad-input-'));
const place = { KF_ORG: 'example-org', KF_SPACE: 'example-space' };
let cluster: ServedCluster;
let forbidding: ServedCluster;

/** Everything that belongs to apps is forbidden; orgs and spaces can be read. */
async function startForbidding(): Promise<ServedCluster> {
  const served = await (await ServedCluster.start()).installed();
  const verbs: Record<string, string> = { GET: 'list', POST: 'create', PATCH: 'patch', DELETE: 'delete' };
  served.server.on(
    '(?:GET|POST|PATCH|DELETE) /(?:api|apis/korifi[^/]*)/v1(?:alpha1)?/namespaces/[^/]+/(?!cforgs|cfspaces|configmaps).*',
    (call) => {
      const [, ns = '', kind = ''] = /namespaces\/([^/]+)\/([^/]+)/.exec(call.path) ?? [];
      const group = kind.startsWith('cf') ? 'korifi.cloudfoundry.org' : '';
      const right = `User "alice" cannot ${verbs[call.method] ?? ''} resource "${kind}" in API group "${group}" in the namespace "${ns}"`;
      return call.fail(403, 'Forbidden', `${kind}${group === '' ? '' : `.${group}`} is forbidden: ${right}`);
    },
  );
  return served;
}

beforeAll(async () => {
  [cluster, forbidding] = await Promise.all([ServedCluster.start().then((served) => served.installed()), startForbidding()]);
  // The stdin of the commands is at its end. A new file gets the lowest free number.
  writeFileSync(path.join(home, 'stdin'), '');
  closeSync(0);
  expect(openSync(path.join(home, 'stdin'), 'r')).toBe(0);
});
afterAll(async () => {
  await Promise.all([cluster.stop(), forbidding.stop()]);
  rmSync(home, { recursive: true, force: true });
});

/** Each command has a home of its own: the state of one must not reach the next one. */
function run(argv: readonly string[], env: Record<string, string>): Promise<RanHere> {
  const CF_HOME = mkdtempSync(path.join(home, 'user-'));
  return runHere(argv, { HOME: CF_HOME, CF_HOME, ...env });
}

/** Words of programs, not of users. */
const jargon = /is forbidden: User|in API group|could not find the requested resource|SelfSubject|ECONNREFUSED|ENOENT|undefined|\[object /;

/** A failure that a user can act on. */
function expectHelp({ code, stdout, stderr }: RanHere): void {
  expect([code, stderr]).toEqual([1, expect.stringMatching(/TIP:|use 'kf [a-z]|: add (?:-f|--yes) |There is no terminal/)]);
  expect(stdout + stderr).not.toMatch(/^\s+at \S/m);
  expect(stdout + stderr).not.toMatch(jargon);
}

/** Command lines with names of nothing, where `none` for each argument would be another mistake. */
const lines: Record<string, string[]> = {
  'check-route': ['none.example.com', '-n', 'none'],
  completion: ['none'],
  'create-route': ['none.example.com'],
  'create-shared-domain': ['none'],
  delete: ['none'],
  'delete-route': ['none.example.com', '-n', 'none'],
  labels: ['app', 'none'],
  logs: ['none', '--recent'],
  migrate: ['check', 'none'],
  'move-route': ['apps.localhost', '-n', 'none', '-s', 'example-space'],
  'share-route': ['apps.localhost', '-n', 'none', '-s', 'example-space'],
  'unshare-route': ['apps.localhost', '-n', 'none', '-s', 'example-space'],
  push: ['none', '-p', '/none'],
  'restart-app-instance': ['none', '0'],
  route: ['none.example.com', '-n', 'none'],
  scale: ['none', '-i', '2'],
  'set-health-check': ['none', 'port'],
  'set-label': ['app', 'none', 'a=b'],
  'set-org-role': ['bob', 'none', 'OrgManager'],
  'set-space-role': ['bob', 'none', 'none', 'SpaceDeveloper'],
  target: ['-o', 'none'],
  task: ['none', '1'],
  'terminate-task': ['none', '1'],
  'unset-label': ['app', 'none', 'a'],
  'unset-org-role': ['bob', 'none', 'OrgManager'],
  'unset-space-role': ['bob', 'none', 'none', 'SpaceDeveloper'],
  'update-user-provided-service': ['none', '-t', 'a'],
};

/** They make something of that name, or need no name, or answer it as curl does. Setup and uninstall have tests of their own. */
const namesNothing = (name: string): boolean =>
  /^(?:create-(?:app|org|space|user-provided-service|quota|.*-quota)|auth|login|setup|uninstall|api|curl)$/.test(name);

const required = async (name: string): Promise<string[]> => {
  const { args } = await loadCommand(name);
  return Object.values(args as Record<string, { required?: boolean }>)
    .filter((arg) => arg.required === true)
    .map(() => 'none');
};
const lineOf = async (name: string): Promise<string[]> => [name, ...(lines[name] ?? (await required(name)))];

const named: string[] = [];
for (const name of commands) if (!namesNothing(name) && (await lineOf(name)).length > 1) named.push(name);

describe('a name of nothing', () => {
  it.each(named)('%s', async (name) => {
    const ended = await run(await lineOf(name), { KUBECONFIG: cluster.server.kubeconfig(), ...place });
    expectHelp(ended);
  });
});

describe('without a name', () => {
  it.each(named)('%s', async (name) => {
    const { args } = await loadCommand(name);
    if (Object.values(args as Record<string, { required?: boolean }>).some((arg) => arg.required === true))
      expectHelp(await run([name], { KUBECONFIG: cluster.server.kubeconfig(), ...place }));
  });
});

describe('an unknown flag', () => {
  it.each(commands)('%s', async (name) => {
    expectHelp(await run([...(await lineOf(name)), '--no-such-flag'], { KUBECONFIG: cluster.server.kubeconfig(), ...place }));
  });
});

describe('a text in place of a number', () => {
  const flagsOf = async (name: string): Promise<string[]> => {
    const { flags = {} } = await loadCommand(name);
    return Object.entries(flags as Record<string, { numeric?: boolean }>).flatMap(([flag, { numeric }]) =>
      numeric === true ? [flag] : [],
    );
  };
  it.each(commands)('%s', async (name) => {
    for (const flag of await flagsOf(name))
      expectHelp(await run([...(await lineOf(name)), `--${flag}`, 'many'], { KUBECONFIG: cluster.server.kubeconfig(), ...place }));
  });
});

describe('no cluster', () => {
  /** They work without one. */
  const local = new Set(['config', 'logout', 'plugins']);
  it.each(commands.filter((name) => !local.has(name)))('%s', async (name) => {
    expectHelp(await run(await lineOf(name), { KUBECONFIG: path.join(home, 'no-such-file'), ...place }));
  });
});

/** They wait for a controller, which is not here, or look at much more of a cluster. */
const waits = new Set(['create-org', 'create-space', 'disallow-space-ssh', 'allow-space-ssh', 'setup', 'uninstall']);

describe('no target', () => {
  /** Some need neither org nor space, or show what is there. */
  it.each(commands.filter((name) => !waits.has(name)))('%s', async (name) => {
    const ended = await run(await lineOf(name), { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: '', KF_SPACE: '' });
    if (ended.code !== 0) expectHelp(ended);
  });
});

describe('nothing of apps is allowed', () => {
  /** Without a question. */
  const forced = async (name: string): Promise<string[]> => {
    const { flags = {} } = await loadCommand(name);
    const asks = Object.values(flags as Record<string, { char?: string; type?: string }>).some(
      ({ char, type }) => char === 'f' && type === 'boolean',
    );
    return [...(await lineOf(name)), ...(asks ? ['-f'] : [])];
  };

  it.each(commands.filter((name) => !waits.has(name)))('%s', async (name) => {
    const ended = await run(await lineOf(name), { KUBECONFIG: forbidding.server.kubeconfig(), ...place });
    if (ended.code !== 0) expectHelp(ended);
  });

  it.each(named.filter((name) => !waits.has(name) && !name.endsWith('-plugin')))(
    'and %s says whose right lacks and who gives it',
    async (name) => {
      const argv = await forced(name);
      const forbidden = await run(argv, { KUBECONFIG: forbidding.server.kubeconfig(), ...place });
      const allowed = await run(argv, { KUBECONFIG: cluster.server.kubeconfig(), ...place });
      // Otherwise the mistake is found before anything of apps is read.
      if (forbidden.stderr !== allowed.stderr)
        expect(forbidden.stderr).toMatch(
          /the user "alice" may not .*\n\nTIP:\n {3}A manager of the org or space, or an administrator of the cluster, must grant it\./,
        );
    },
  );
});
