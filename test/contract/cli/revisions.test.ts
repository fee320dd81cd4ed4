// `revisions`, `revision` and `rollback`. What the controller records is in contract/controller/run-revisions.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { printRecord, printSettings, type RevisionRecord } from '../../../src/lib/api/revisions.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const place = 'in org example-org / space example-space as alice...';
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const encoded = (text: string): string => Buffer.from(text).toString('base64');
const sidecar = { name: 'proxy', command: 'proxy --port 9000' };
const push = ['push', 'shop', '-p', 'app'];
const variables = (): Record<string, string> => {
  const data = scene.cluster.memory.peek(secretType, ns, scene.app().spec.envSecretName ?? '')?.data ?? {};
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
};
const commands = () => scene.cluster.memory.all(kinds.process).map(({ spec }) => spec.command);

/** Writes a revision as the controller does. */
async function recorded(version: number, droplet: string, env: Record<string, string>, command = ''): Promise<void> {
  const guid = nameOf(scene.app());
  const record: RevisionRecord = {
    version,
    guid: `guid-${String(version)}`,
    description: version === 1 ? 'Initial revision.' : 'New droplet deployed.',
    droplet,
    created: '2026-08-07T10:16:20Z',
    by: 'alice',
    settings: version,
  };
  const settings = {
    env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, encoded(value)])),
    commands: { web: command },
    sidecars: version === 1 ? { web: JSON.stringify([sidecar]) } : {},
  };
  const metadata = { name: `${guid}-revisions`, namespace: ns };
  const { memory } = scene.cluster;
  if (version === 1) {
    await scene.cluster.add(configMapType, { metadata });
    await scene.cluster.add(secretType, { metadata });
  }
  await memory.mergePatch(configMapType, ns, metadata.name, { data: { [String(version)]: printRecord(record) } });
  await memory.mergePatch(secretType, ns, metadata.name, { data: { [String(version)]: printSettings(settings) } });
  scene.setStatus(kinds.app, guid, { revision: { change: 'x', version, deployed: version, droplets: [droplet] } });
}

/** Two revisions: the first with COLOUR and a command, the second with other source and SIZE. */
async function twoRevisions(): Promise<[string, string]> {
  await scene.ok(...push, '-c', 'serve first', '-m', '32M');
  await scene.ok('set-env', 'shop', 'COLOUR', 'red');
  const first = nameOf(scene.builds()[0]);
  await recorded(1, first, { COLOUR: 'red' }, 'serve first');
  await scene.ok('unset-env', 'shop', 'COLOUR');
  await scene.ok('set-env', 'shop', 'SIZE', '1');
  scene.source('b');
  await scene.ok(...push, '-c', 'null');
  const second = nameOf(scene.builds()[1]);
  await recorded(2, second, { SIZE: '1' });
  return [first, second];
}

describe('revisions', () => {
  it('are listed in the layout of cf, newest first, with the deployed one', async () => {
    await twoRevisions();
    const listed = await run('revisions', 'shop');
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toBe(
      `Getting revisions for app shop ${place}\n\n` +
        'revision      description             deployable   revision guid   created at\n' +
        '2(deployed)   New droplet deployed.   true         guid-2          2026-08-07T10:16:20Z\n' +
        '1             Initial revision.       true         guid-1          2026-08-07T10:16:20Z\n',
    );
    const { result } = JSON.parse((await run('revisions', 'shop', '--json')).stdout) as { result: object[] };
    expect(result).toMatchObject([{ version: 2, deployed: true, by: 'alice' }, { version: 1, deployed: false }]); // prettier-ignore
    await scene.ok('stop', 'shop');
    const stopped = await run('revisions', 'shop');
    expect(stopped.stdout).toContain('\nInfo: this app is in a stopped state. It is not possible to determine which revision');
    expect(stopped.stdout).not.toContain('(deployed)');
  });

  it('of an app that was never started are none', async () => {
    await scene.ok('create-app', 'shop');
    expect((await run('revisions', 'shop')).stdout).toMatch(/\n\nNo revisions found\n$/);
    expect(await run('revision', 'shop')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("No revision of app 'shop' is deployed."),
    });
    expect(await run('rollback', 'shop', '--version', '1', '-f')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No revisions for app shop'),
    });
  });

  it('whose droplet is gone are not deployable', async () => {
    const [first] = await twoRevisions();
    await scene.cluster.memory.delete(kinds.build, ns, first);
    expect((await run('revisions', 'shop')).stdout).toMatch(/^1 +Initial revision\. +false/m);
    const refused = await run('rollback', 'shop', '--version', '1', '-f');
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("Revision '1' is not deployable") });
  });
});

describe('revision', () => {
  it('shows one with its variables', async () => {
    const [first] = await twoRevisions();
    const shown = await run('revision', 'shop', '--version', '1');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toBe(
      `Showing revision 1 for app shop ${place}\n\n` +
        'revision:        1\ndeployed:        false\ndescription:     Initial revision.\ndeployable:      true\n' +
        `revision GUID:   guid-1\ndroplet GUID:    ${first}\ncreated on:      2026-08-07T10:16:20Z\n\n` +
        'labels:\n\nannotations:\n\napplication environment variables:\nCOLOUR:   red\n\n',
    );
    expect((await run('revision', 'shop')).stdout).toMatch(/^revision: +2$/m);
    expect((await run('revision', 'shop', '--version', '9')).stderr).toContain("Revision '9' not found");
    expect((await run('revision', 'shop', '--version', '0')).code).toBe(1);
  });

  it('leaves the variables out for a user who may not read them', async () => {
    await twoRevisions();
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/secrets/.*-revisions`, (call) =>
      call.fail(
        403,
        'Forbidden',
        'secrets "x" is forbidden: User "alice" cannot get resource "secrets" in API group "" in the namespace "space-guid"',
      ),
    );
    const shown = await run('revision', 'shop', '--version', '1');
    expect(shown).toMatchObject({ code: 0, stderr: expect.stringContaining('The variables of the revision are not shown') });
    expect(shown.stdout).not.toContain('COLOUR');
  });
});

describe('releases and diff', () => {
  const digest = (letter: string): string => `registry.example.com/space-guid/app@sha256:${letter.repeat(64)}`;

  /** Adds facts to the record of a revision, as the controller does. */
  async function told(version: number, facts: Partial<RevisionRecord>): Promise<void> {
    const map = `${nameOf(scene.app())}-revisions`;
    const text = scene.cluster.memory.peek(configMapType, ns, map)?.data?.[String(version)] ?? '{}';
    const data = { [String(version)]: JSON.stringify({ ...(JSON.parse(text) as object), ...facts }) };
    await scene.cluster.memory.mergePatch(configMapType, ns, map, { data });
  }

  async function twoReleases(): Promise<void> {
    await twoRevisions();
    const hash = (letter: string): string => `sha256:${letter.repeat(64)}`;
    await told(1, { image: digest('a'), contentHash: hash('1'), commit: 'c'.repeat(40) });
    await told(2, { image: digest('b'), contentHash: hash('2'), commit: `${'d'.repeat(40)}-dirty`, ciRun: 'https://ci.example.com/7' });
  }

  it('list who pushed what from where', async () => {
    await twoReleases();
    const listed = await run('releases', 'shop');
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toBe(
      `Getting releases of app shop ${place}\n\n` +
        'revision      created at             by      commit            droplet               description             CI run\n' +
        '2(deployed)   2026-08-07T10:16:20Z   alice   ddddddddd-dirty   sha256:bbbbbbbbbbbb   New droplet deployed.   https://ci.example.com/7\n' +
        '1             2026-08-07T10:16:20Z   alice   ccccccccc         sha256:aaaaaaaaaaaa   Initial revision.       \n',
    );
    const { result } = JSON.parse((await run('releases', 'shop', '--json')).stdout) as { result: object[] };
    expect(result[0]).toMatchObject({ commit: `${'d'.repeat(40)}-dirty`, ciRun: 'https://ci.example.com/7', image: digest('b') });
  });

  it('leave out columns of which nothing is known', async () => {
    await twoRevisions();
    expect((await run('releases', 'shop')).stdout).toMatch(/^revision +created at +by +droplet +description$/m);
  });

  it('compare two revisions without a secret value', async () => {
    await twoReleases();
    const compared = await run('diff', 'shop');
    expect(compared).toMatchObject({ code: 0, stderr: '' });
    expect(compared.stdout).toBe(
      `Comparing revisions of app shop ${place}\n\n` +
        'Revision 1 -> 2 of app shop\n\n' +
        'what       name     change    values\n' +
        'droplet             changed   sha256:aaaaaaaaaaaa -> sha256:bbbbbbbbbbbb\n' +
        'source              changed   sha256:111111111111 -> sha256:222222222222\n' +
        'commit              changed   ccccccccc -> ddddddddd-dirty\n' +
        'variable   COLOUR   removed   \n' +
        'variable   SIZE     added     \n' +
        'command    web      removed   \n' +
        'sidecars   web      removed   \n',
    );
    const { result } = JSON.parse((await run('diff', 'shop', '2', '1', '--json')).stdout) as { result: { changes: object[] } };
    expect(result).toMatchObject({ from: 2, to: 1, complete: true });
    expect(result.changes).toContainEqual({ what: 'command', name: 'web', change: 'added' });
    expect(JSON.stringify(result)).not.toMatch(/red|serve first|proxy --port/);
    expect((await run('diff', 'shop', '2', '2')).stdout).toMatch(/\n\nNo differences\.\n$/);
  });

  it('say what is missing or wrong', async () => {
    await scene.ok('create-app', 'shop');
    expect((await run('releases', 'shop')).stdout).toMatch(/\n\nNo revisions found\n$/);
    expect(await run('diff', 'shop')).toMatchObject({ code: 1, stderr: expect.stringContaining('No revisions for app shop') });
    await scene.ok(...push);
    await recorded(1, nameOf(scene.builds()[0]), {});
    expect(await run('diff', 'shop')).toMatchObject({ code: 1, stderr: expect.stringContaining("App 'shop' has one revision only.") });
    expect(await run('diff', 'shop', '1', '9')).toMatchObject({ code: 1, stderr: expect.stringContaining("Revision '9' not found") });
    expect(await run('diff', 'shop', 'x')).toMatchObject({ code: 1, stderr: expect.stringContaining('Incorrect Usage') });
  });

  it('compare what they may read', async () => {
    await twoReleases();
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/secrets/.*-revisions`, (call) => call.fail(403, 'Forbidden', 'no'));
    const compared = await run('diff', 'shop');
    expect(compared).toMatchObject({ code: 0, stderr: expect.stringContaining('The variables of the revision are not shown') });
    expect(compared.stdout).toMatch(/^commit /m);
    expect(compared.stdout).not.toMatch(/^variable /m);
  });
});

describe('rollback', () => {
  it('restores droplet, variables and commands, and nothing else, with one change of the app', async () => {
    const [first] = await twoRevisions();
    const before = scene.app().metadata.annotations ?? {};
    scene.cluster.memory.writes.length = 0;
    const rolled = await run('rollback', 'shop', '--version', '1', '-f');
    expect(rolled.code).toBe(0);
    expect(rolled.stdout).toMatch(
      /^Rolling back to revision 1 for app shop in org [^\n]*\n\nStarting deployment for app shop\.\.\.\n\nWaiting for app to deploy\.\.\.\n\nname: +shop\n[^]*\nOK\n\n$/,
    );
    expect(scene.app().spec).toMatchObject({ desiredState: 'STARTED', currentDropletRef: { name: first } });
    expect([variables(), commands()]).toEqual([{ COLOUR: 'red' }, ['serve first']]);
    expect(scene.builds()).toHaveLength(2);
    const after = scene.app().metadata.annotations ?? {};
    const id = after[annotations.deployId] ?? '';
    expect(after[annotations.rolledBack]).toBe(`1/${id}`);
    expect(Number(after[annotations.appRev])).toBe(Number(before[annotations.appRev]) + 1);
    expect(id).not.toBe(before[annotations.deployId]);
    expect(after).not.toHaveProperty(annotations.applying);
    // The command must wait for the change of the app: otherwise it would roll alone.
    const [process] = scene.cluster.memory.all(kinds.process);
    expect(process?.metadata.annotations?.[annotations.held]).toBe(
      `${before[annotations.appRev] ?? ''}/${before[annotations.deployId] ?? ''}`,
    );
    expect(process?.spec).toMatchObject({ memoryMB: 32, sidecars: [sidecar] });
  });

  it('asks first, and does nothing without a yes', async () => {
    await twoRevisions();
    const before = scene.app();
    const asked = await run('rollback', 'shop', '--version', '1');
    expect(asked.code).toBe(1);
    expect(asked.stdout).toContain(
      "Rolling 'shop' back to revision '1' will create a new revision. The new revision will use the settings from revision '1'.\n",
    );
    const declined = await scene.cli.run(['rollback', 'shop', '--version', '1'], { stdin: 'n\n' });
    expect(declined).toMatchObject({ code: 0, stdout: expect.stringContaining("App 'shop' has not been rolled back to revision '1'.") });
    expect(scene.app().metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  it('is refused for the deployed content, an unknown version, and no version', async () => {
    await twoRevisions();
    const texts: [string[], string][] = [
      [['--version', '2'], 'Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision.'],
      [['--version', '7'], "Revision '7' not found"],
      [[], "the required flag `--version' was not specified"],
      [['--version', 'x'], 'Incorrect Usage'],
    ];
    for (const [flags, text] of texts) {
      const refused = await run('rollback', 'shop', '-f', ...flags);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(text);
    }
  });

  it('of a version that fails says why, and --no-wait ends earlier', async () => {
    await twoRevisions();
    scene.failure = { reason: 'Crashed', message: 'It ends with exit code 3.' };
    const failed = await run('rollback', 'shop', '--version', '1', '-f');
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('Start unsuccessful: It ends with exit code 3.') });
    scene.failure = undefined;
    const again = await run(
      'rollback',
      'shop',
      '--version',
      '1',
      '-f',
      '--no-wait',
      '--strategy',
      'rolling',
      '--max-in-flight',
      '2',
      '--json',
    );
    expect(JSON.parse(again.stdout)).toMatchObject({ status: 0, result: { version: 1, rolledBack: true } });
    expect(scene.app().spec.rollout).toMatchObject({ strategy: 'rolling', maxInFlight: 2 });
    const steps = ['--strategy', 'canary', '--instance-steps', '10,50'];
    expect((await scene.ok('rollback', 'shop', '--version', '1', '-f', ...steps)).stdout).toMatch(/canary-steps: +1\/2\n/);
  });

  it('that ended between its writes is finished by the same command', async () => {
    const [first] = await twoRevisions();
    const env = scene.app().spec.envSecretName ?? '';
    const secret = scene.cluster.memory.peek(secretType, ns, env);
    await scene.cluster.memory.delete(secretType, ns, env);
    // The commands are written, and the variables cannot be.
    expect(await run('rollback', 'shop', '--version', '1', '-f')).toMatchObject({ code: 1, stderr: expect.stringContaining(`'${env}'`) });
    expect([commands(), scene.app().spec.currentDropletRef?.name === first]).toEqual([['serve first'], false]);
    expect(scene.app().metadata.annotations).not.toHaveProperty(annotations.applying);
    await scene.cluster.add(secretType, { metadata: { name: env, namespace: ns }, data: secret?.data ?? {} });
    await scene.ok('rollback', 'shop', '--version', '1', '-f');
    expect([scene.app().spec.currentDropletRef?.name, variables()]).toEqual([first, { COLOUR: 'red' }]);
  });
});
