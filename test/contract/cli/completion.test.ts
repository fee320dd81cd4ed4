// `kf completion`: what a shell gets when its user presses the key, from the built CLI and a served cluster.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const folder = mkdtempSync(path.join(tmpdir(), 'kf-completion-'));
/** What a shell would run. */
const command = '1; $(touch ran) `touch ran` "\'';
let cluster: ServedCluster;
let cli: Cli;

beforeAll(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
  symlinkSync(bundle.program, path.join(folder, 'kf'));
  const metadata = (name: string) => ({ name, namespace: 'space-guid' });
  const lifecycle = { type: 'buildpack', data: { stack: '' } } as const;
  for (const name of ['shop', 'shop-blue', 'worker'])
    await cluster.add(kinds.app, { metadata: metadata(name), spec: { displayName: name, desiredState: 'STOPPED', lifecycle } });
  await cluster.add(kinds.serviceInstance, {
    metadata: metadata('db'),
    spec: { displayName: 'orders-db', type: 'user-provided', secretName: 'db', planGuid: '' },
  });
  await cluster.add(kinds.route, {
    metadata: metadata('route'),
    spec: { host: 'www', domainRef: { name: 'default-domain', namespace: 'cf' } },
  });
  await cluster.add(kinds.org, { metadata: { name: 'other-guid', namespace: 'cf' }, spec: { displayName: 'other-org' } });
  // Names that another member of the org or space chose.
  for (const [index, name] of [command, '*', 'two\nlines', 'title\x1b]0;x\x07'].entries())
    await cluster.add(kinds.serviceInstance, {
      metadata: metadata(`hostile-${String(index)}`),
      spec: { displayName: `hostile-${name}`, type: 'user-provided', secretName: 'db', planGuid: '' },
    });
  await cluster.add(kinds.org, { metadata: { name: 'hostile-guid', namespace: 'cf' }, spec: { displayName: `hostile-${command}` } });
  await cluster.add(kinds.space, { metadata: { name: 'stage-guid', namespace: 'other-guid' }, spec: { displayName: 'stage' } });
  await cli.run(['target', '-o', 'example-org', '-s', 'example-space']);
});

afterAll(async () => {
  await cluster.stop();
  cli.remove();
  bundle.remove();
  rmSync(folder, { recursive: true });
});

const words = async (...line: string[]): Promise<string[]> => {
  const { code, stdout, stderr } = await cli.run(['__complete', ...line]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => text.split('\t')[0] ?? '');
};

describe('candidates', () => {
  it('are commands and their aliases at the first word, with summaries', async () => {
    expect(await words('unset-e')).toEqual(['unset-env']);
    expect((await cli.run(['__complete', 'bs'])).stdout).toBe('bs\tgive an app the credentials of a service\n');
    expect(await words('help', 'restag')).toEqual(['restage']);
    expect(await words('--org', 'example-org', 'stac')).toEqual(['stack', 'stacks']);
  });

  it.each([
    ['apps', ['restart', 'sh'], ['shop', 'shop-blue']],
    ['apps by an alias of the command', ['rs', ''], ['shop', 'shop-blue', 'worker']],
    ['service instances at the second argument', ['bind-service', 'shop', 'o'], ['orders-db']],
    ['no names with control characters', ['service', 'hostile'], ['hostile-*', `hostile-${command}`]],
    ['domains', ['map-route', 'shop', ''], ['apps.localhost']],
    ['hosts of routes', ['unmap-route', 'shop', 'apps.localhost', '--hostname', ''], ['www']],
    ['orgs as a value of a flag', ['target', '-o', ''], ['example-org', `hostile-${command}`, 'other-org']],
    ['orgs as a value behind an equals sign', ['target', '--org=o'], ['--org=other-org']],
    ['spaces of the targeted org', ['target', '-s', ''], ['example-space']],
    ['spaces of an org on the line', ['--org', 'other-org', 'delete-space', ''], ['stage']],
    ['contexts', ['apps', '--context', ''], ['test']],
    ['values that a command knows', ['set-health-check', 'shop', 'p'], ['port', 'process']],
    ['flags', ['delete', 'shop', '--f'], ['--force']],
    ['nothing for a name that is to be new', ['create-app', ''], []],
    ['nothing behind the last argument', ['delete', 'shop', ''], []],
  ])('are %s', async (_, line, expected) => {
    expect(await words(...line)).toEqual(expected);
  });

  it('are not asked again within seconds, so an unreachable cluster does not make the user wait', async () => {
    expect(await words('start', 'w')).toEqual(['worker']);
    const before = cluster.server.calls.length;
    expect(await words('stop', 'shop-')).toEqual(['shop-blue']);
    expect(cluster.server.calls.length - before).toBe(0);
  });

  it('are none, without an error, where the cluster cannot be asked', async () => {
    const lost = new Cli(bundle.program, { KUBECONFIG: '/nowhere/config' });
    expect(await lost.run(['__complete', 'start', ''])).toMatchObject({ code: 0, stdout: '', stderr: '' });
    lost.remove();
  });
});

describe('completion bash', () => {
  const press = async (line: string): Promise<string[]> => {
    const script = `source <(kf completion bash); COMP_LINE=$1; COMP_POINT=\${#1}; _kf_complete; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const env = { ...process.env, ...cli.env, CF_HOME: cli.home, PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script, 'bash', line], { env });
    return stdout.split('\n').filter((text) => text !== '');
  };

  it('completes commands, names, and values behind an equals sign', async () => {
    expect(await press('kf restag')).toEqual(['restage']);
    expect(await press('kf restart shop')).toEqual(['shop', 'shop-blue']);
    expect(await press('kf restart ')).toEqual(['shop', 'shop-blue', 'worker']);
    expect(await press('kf target --org=ot')).toEqual(['other-org']);
  });

  it('gives names to the line in quotes, so that the shell runs nothing of them', async () => {
    const quoted = 'hostile-1\\;\\ \\$\\(touch\\ ran\\)\\ \\`touch\\ ran\\`\\ \\"\\\'';
    expect(await press('kf service hostile')).toEqual([String.raw`hostile-\*`, quoted]);
    expect(await press('kf target --org=hostile')).toEqual([quoted]);
  });

  it('refuses another shell, and names those that it knows', async () => {
    const run = await cli.run(['completion', 'tcsh']);
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/bash.*zsh.*fish/);
  });
});
