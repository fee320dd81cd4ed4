import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { cfCommands, kfCommands } from '../../../src/lib/cf/cf-commands.ts';
import { cfFlags } from '../../../src/lib/cf/cf-flags.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';

const bundle = bundleForTests();
afterAll(() => bundle.remove());

interface Meta {
  outputs: Record<string, { bytes: number; inputs: Record<string, { bytesInOutput: number }> }>;
}
const meta = JSON.parse(readFileSync(bundle.meta, 'utf8')) as Meta;
const recorder = fileURLToPath(new URL('../../support/loaded-files.mjs', import.meta.url));

/** The files of the bundle that one command line loads. */
function loadedBy(...argv: string[]): string[] {
  const env = { PATH: process.env['PATH'], HOME: '/nowhere', KUBECONFIG: '/nowhere' };
  const args = ['--import', recorder, bundle.program, ...argv];
  const options = { env, encoding: 'utf8' as const, stdio: ['ignore', 'ignore', 'pipe'] as ['ignore', 'ignore', 'pipe'] };
  let stderr: string;
  try {
    execFileSync(process.execPath, args, options);
    stderr = '';
  } catch (error) {
    stderr = (error as { stderr: string }).stderr;
  }
  const listed = /^LOADED (.*)$/m.exec(stderr)?.[1];
  if (listed === undefined) throw new Error(`No list of loaded files in:\n${stderr}`);
  return (JSON.parse(listed) as string[]).filter((file) => file.includes('/dist/'));
}

/** The remaining size of a package that was removed from the bundle is at most this. */
const stubBytes = 200;

/** Packages whose code is in those files. */
function packagesIn(files: string[]): string[] {
  const names = files.flatMap((file) => {
    const output = Object.entries(meta.outputs).find(([name]) => file.endsWith(path.join('dist', name.split('/dist/')[1] ?? '-')));
    const inputs = Object.entries(output?.[1].inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > stubBytes);
    return inputs.flatMap(([input]) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? []);
  });
  return [...new Set(names)].toSorted();
}

/** oclif and the packages that it needs itself. */
const oclif = [
  ...['@oclif/core', 'ansi-regex', 'ansi-styles', 'ansis', 'clean-stack', 'color-convert', 'color-name'],
  ...['debug', 'ejs', 'emoji-regex', 'indent-string', 'is-fullwidth-code-point', 'ms', 'string-width', 'supports-color', 'wrap-ansi'],
];

describe('modules that a start loads', () => {
  it("--version: only kf's own start module, without any package", () => {
    const files = loadedBy('--version');
    expect(files.length).toBeLessThanOrEqual(6);
    expect(packagesIn(files)).toEqual([]);
    expect(files.reduce((sum, file) => sum + statSync(file.replace(/^file:/, '')).size, 0)).toBeLessThan(20 * 1024);
  });

  it('--help: no package', () => {
    const files = loadedBy('--help');
    expect(files.length).toBeLessThanOrEqual(12);
    expect(packagesIn(files)).toEqual([]);
  });

  it('help of a command: nothing but oclif', () => {
    expect(packagesIn(loadedBy('scale', '--help'))).toEqual(oclif);
  });

  it.each([['apps'], ['app', 'x'], ['routes'], ['services']])('%s: oclif and no other package', (...argv) => {
    const files = loadedBy(...argv, '--org', 'o', '--space', 's');
    expect(packagesIn(files)).toEqual(oclif);
    expect(files.length).toBeLessThanOrEqual(40);
  });
});

describe('the bundle', () => {
  it("has one entry per command, and each alias has cf's meaning", async () => {
    const commands = Object.keys(meta.outputs).flatMap((name) => /dist\/commands\/(.*)\.js$/.exec(name)?.[1] ?? []);
    const table = new Map([...Object.values(cfCommands), kfCommands].flat().map(([name, alias, , instead]) => [name, { alias, instead }]));
    expect(commands.length).toBeGreaterThan(25);
    for (const name of commands) {
      const { default: command } = (await import(`../../../src/commands/${name}.ts`)) as {
        default: { aliases: string[]; examples: string[]; summary: string };
      };
      expect([name, ...command.aliases]).toEqual([name, ...[table.get(name)?.alias].filter(Boolean)]);
      expect(table.get(name)?.instead, `${name} is there, so nothing stands in for it`).toBe('');
      expect(command.examples.length, `${name} has an example`).toBeGreaterThan(0);
    }
  });

  it('has none of the flags that it reports as missing', async () => {
    for (const [name, flags] of Object.entries(cfFlags)) {
      const { default: command } = (await import(`../../../src/commands/${name}.ts`)) as {
        default: { flags?: Record<string, { char?: string }> };
      };
      const own = Object.entries(command.flags ?? {}).flatMap(([flag, { char }]) => [flag, char]);
      expect([name, Object.keys(flags).filter((flag) => own.includes(flag))]).toEqual([name, []]);
    }
  });

  it('names an alternative for every cf command that kf does not have', () => {
    const commands = new Set(Object.keys(meta.outputs).flatMap((name) => /dist\/commands\/(.*)\.js$/.exec(name)?.[1] ?? []));
    const builtIn = ['help', 'version'];
    const lacking = Object.values(cfCommands)
      .flat()
      .filter(([name, , , instead]) => !commands.has(name) && !builtIn.includes(name) && instead === '');
    expect(lacking).toEqual([]);
  });

  it('takes the token of an oidc provider of an old kubeconfig, with the part of client-node that is kept', async () => {
    const cli = new Cli(bundle.program);
    const part = (object: object): string => Buffer.from(JSON.stringify(object)).toString('base64url');
    const idToken = `${part({ alg: 'none' })}.${part({ exp: 4_102_444_800 })}.c2ln`;
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(401).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const kubeconfig = path.join(cli.home, 'kubeconfig');
    const config = { 'client-id': 'kf', 'idp-issuer-url': 'https://127.0.0.1:1', 'id-token': idToken, 'refresh-token': 'r' };
    const user = { name: 'u', user: { 'auth-provider': { name: 'oidc', config } } };
    const clusters = [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }];
    const contexts = [{ name: 'c', context: { cluster: 'c', user: 'u' } }];
    writeFileSync(kubeconfig, JSON.stringify({ clusters, contexts, users: [user], 'current-context': 'c' }));
    const ran = await cli.run(['orgs'], { env: { KUBECONFIG: kubeconfig } });
    server.close();
    cli.remove();
    expect([ran.code, new Set(seen)]).toEqual([1, new Set([`Bearer ${idToken}`])]);
  });

  it('reads a kubeconfig that needs the YAML library', async () => {
    const cli = new Cli(bundle.program);
    const kubeconfig = path.join(cli.home, 'kubeconfig');
    const server = 'https://127.0.0.1:1';
    writeFileSync(
      kubeconfig,
      `clusters: [{name: c, cluster: {server: '${server}'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\ncurrent-context: c\n`,
    );
    const ran = await cli.run(['orgs'], { env: { KUBECONFIG: kubeconfig } });
    cli.remove();
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain(`Kubernetes does not answer at ${server}`);
  });

  it('stays small in the part that every command loads', () => {
    const bytes = (name: string): number =>
      Object.entries(meta.outputs).find(([file]) => file.endsWith(name))?.[1].bytes ?? Number.POSITIVE_INFINITY;
    expect(bytes('dist/main.js')).toBeLessThan(12 * 1024);
    const total = Object.values(meta.outputs).reduce((sum, output) => sum + output.bytes, 0);
    expect(total).toBeLessThan(2 * 1024 * 1024);
  });
});
