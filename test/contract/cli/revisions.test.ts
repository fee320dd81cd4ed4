// `revisions`, `revision` and `rollback`. What the controller records is in contract/controller/run-revisions.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, type ConfigMap, secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { revisionsName, type RevisionRecord } from '../../../src/lib/api/revisions.ts';
import { printVerdict, type Verdict } from '../../../src/lib/api/verdicts.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import { changeOf } from '../../../src/lib/api/held.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';
import { push, RevisionScene, sidecar } from '../../support/revision-scene.ts';

const bundle = bundleForTests();
const place = 'in org example-org / space example-space as alice...';
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const variables = (): Record<string, string> => new RevisionScene(scene).variables();
const commands = () => scene.cluster.memory.all(kinds.process).map(({ spec }) => spec.command);

const recorded = (...revision: Parameters<RevisionScene['recorded']>): Promise<void> => new RevisionScene(scene).recorded(...revision);
const twoRevisions = (): Promise<[string, string]> => new RevisionScene(scene).twoRevisions();

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
    expect((await run('help', 'diff')).stdout).toContain('by default the two newest\n');
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
    expect(await run('diff', 'shop')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/No revisions for app shop\n[^]*\n {3}kf restart shop\n/),
    });
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

/** The record of a version with other content. */
const recordWith = (map: ConfigMap | undefined, version: number, more: object): object => ({
  ...(JSON.parse(map?.data?.[String(version)] ?? '{}') as object),
  ...more,
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

  it('is refused for the deployed content and an unknown version', async () => {
    await twoRevisions();
    const texts: [string[], string][] = [
      [['--version', '2'], 'Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision.'],
      [['--version', '7'], "Revision '7' not found"],
      [['--version', 'x'], 'Incorrect Usage'],
    ];
    for (const [flags, text] of texts) {
      const refused = await run('rollback', 'shop', '-f', ...flags);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(text);
    }
  });

  it('without a version returns to the one that served before, past one that failed, and forth again', async () => {
    const [first, second] = await twoRevisions();
    const guid = nameOf(scene.app());
    const deployed = (version: number) =>
      scene.setStatus(kinds.app, guid, { revision: { change: changeOf(scene.app()), version, deployed: version, droplets: [] } });
    deployed(2);
    const asked = await scene.cli.run(['rollback', 'shop'], { stdin: 'n\n' });
    expect(asked.stdout).toContain("Rolling 'shop' back to revision '1' will create a new revision.");
    await scene.ok('rollback', 'shop', '-f');
    expect(scene.app().spec.currentDropletRef).toEqual({ name: first });
    const map = scene.cluster.memory.peek(configMapType, ns, revisionsName(guid));
    const again = { ...(JSON.parse(map?.data?.['1'] ?? '{}') as object), guid: 'g3' };
    await scene.cluster.memory.mergePatch(configMapType, ns, revisionsName(guid), { data: { 3: JSON.stringify(again) } });
    deployed(3);
    await scene.ok('rollback', 'shop', '-f');
    expect(scene.app().spec.currentDropletRef).toEqual({ name: second });
  });

  it('without a version leaves out one that the app never served by, as after a cancellation', async () => {
    const [first] = await twoRevisions();
    const guid = nameOf(scene.app());
    const map = scene.cluster.memory.peek(configMapType, ns, revisionsName(guid));
    const data = {
      2: JSON.stringify(recordWith(map, 2, { neverServed: true })),
      3: JSON.stringify(recordWith(map, 1, { guid: 'g3', droplet: 'other' })),
    };
    await scene.cluster.memory.mergePatch(configMapType, ns, revisionsName(guid), { data });
    scene.setStatus(kinds.app, guid, { revision: { change: changeOf(scene.app()), version: 3, deployed: 3, droplets: [] } });
    await scene.ok('rollback', 'shop', '-f');
    expect(scene.app().spec.currentDropletRef).toEqual({ name: first });
  });

  it('without a version returns to one that served after it had failed at first', async () => {
    const [, second] = await twoRevisions();
    const guid = nameOf(scene.app());
    const map = scene.cluster.memory.peek(configMapType, ns, revisionsName(guid));
    const lines = { head: [], omitted: 0, tail: [] };
    const failed: Verdict = { ...lines, version: 2, change: 'x', cause: 'exit-code', message: 'No.', at: '2026-08-07T10:16:20Z' };
    const data = {
      2: JSON.stringify(recordWith(map, 2, { neverServed: false })),
      3: JSON.stringify(recordWith(map, 1, { guid: 'g3' })),
      'verdict-2': printVerdict(failed),
    };
    await scene.cluster.memory.mergePatch(configMapType, ns, revisionsName(guid), { data });
    scene.setStatus(kinds.app, guid, { revision: { change: changeOf(scene.app()), version: 3, deployed: 3, droplets: [] } });
    await scene.ok('rollback', 'shop', '-f');
    expect(scene.app().spec.currentDropletRef).toEqual({ name: second });
  });

  it('without a version reads the records and the settings once each before it asks', async () => {
    await twoRevisions();
    const read = (plural: string): number =>
      scene.cluster.server.callsOf(`^GET .*/${plural}/${revisionsName(nameOf(scene.app()))}$`).length;
    const before = [read('configmaps'), read('secrets')];
    await scene.cli.run(['rollback', 'shop'], { stdin: 'n\n' });
    expect([read('configmaps'), read('secrets')]).toEqual(before.map((count) => count + 1));
  });

  it('without a version returns to the one that serves after a failed push, and says when there is none', async () => {
    const [first, second] = await twoRevisions();
    const guid = nameOf(scene.app());
    scene.setStatus(kinds.app, guid, { revision: { change: changeOf(scene.app()), version: 2, deployed: 1, droplets: [second, first] } });
    expect(JSON.parse((await scene.ok('rollback', 'shop', '-f', '--json')).stdout)).toMatchObject({ result: { version: 1 } });
    expect(scene.app().spec.currentDropletRef).toEqual({ name: first });
    const lines = { head: [], omitted: 0, tail: [] };
    const failed: Verdict = { ...lines, version: 1, change: 'x', cause: 'exit-code', message: 'No.', at: '2026-08-07T10:16:20Z' };
    await scene.cluster.memory.mergePatch(configMapType, ns, revisionsName(guid), { data: { 'verdict-1': printVerdict(failed) } });
    scene.setStatus(kinds.app, guid, { revision: { change: changeOf(scene.app()), version: 2, deployed: 2, droplets: [] } });
    expect(await run('rollback', 'shop', '-f')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/App 'shop' has no earlier revision that it can return to\.[^]*kf revisions shop/),
    });
  });

  it('without a version returns to the one that serves, however many pushes have failed since', async () => {
    const [first, second] = await twoRevisions();
    for (let version = 3; version <= 14; version += 1) await recorded(version, second, { SIZE: String(version) });
    const failed = { change: changeOf(scene.app()), version: 14, deployed: 1, droplets: [second, first] };
    scene.setStatus(kinds.app, nameOf(scene.app()), { revision: failed });
    const { result } = JSON.parse((await run('revisions', 'shop', '--json')).stdout) as {
      result: { version: number; deployable: boolean }[];
    };
    expect(result.filter(({ deployable }) => deployable).map(({ version }) => version)).toEqual([14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 1]);
    expect(JSON.parse((await scene.ok('rollback', 'shop', '-f', '--json')).stdout)).toMatchObject({ result: { version: 1 } });
    expect([scene.app().spec.currentDropletRef?.name, variables()]).toEqual([first, { COLOUR: 'red' }]);
  });

  it('after a failed push returns to the version that serves, or tries the failed one again', async () => {
    const [first, second] = await twoRevisions();
    const guid = nameOf(scene.app());
    scene.setStatus(kinds.app, guid, { revision: { change: changeOf(scene.app()), version: 2, deployed: 1, droplets: [second, first] } });
    await scene.ok('rollback', 'shop', '--version', '2', '-f');
    expect(scene.app().spec.currentDropletRef).toEqual({ name: second });
    await scene.ok('rollback', 'shop', '--version', '1', '-f');
    expect(scene.app().spec.currentDropletRef).toEqual({ name: first });
    expect([variables(), commands()]).toEqual([{ COLOUR: 'red' }, ['serve first']]);
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
    const { memory } = scene.cluster;
    const { intercept } = memory;
    memory.intercept = (verb, type, name) => {
      if (verb === 'patch' && name === env) throw new KubeError('failed', `refused: '${env}'`, { status: 422, reason: 'Invalid' });
      return intercept(verb, type, name);
    };
    // The commands are written, and the variables cannot be.
    expect(await run('rollback', 'shop', '--version', '1', '-f')).toMatchObject({ code: 1, stderr: expect.stringContaining(`'${env}'`) });
    expect([commands(), scene.app().spec.currentDropletRef?.name === first]).toEqual([['serve first'], false]);
    expect(scene.app().metadata.annotations).not.toHaveProperty(annotations.applying);
    memory.intercept = intercept;
    await scene.ok('rollback', 'shop', '--version', '1', '-f');
    expect([scene.app().spec.currentDropletRef?.name, variables()]).toEqual([first, { COLOUR: 'red' }]);
  });

  it.each([[['--version', '2']], [[]]])(
    'of an app whose variables are lost brings back those of the revision that serves: %j',
    async (flags) => {
      const [, second] = await twoRevisions();
      scene.setStatus(kinds.app, nameOf(scene.app()), {
        revision: { change: changeOf(scene.app()), version: 2, deployed: 2, droplets: [] },
      });
      await scene.cluster.memory.delete(secretType, ns, scene.app().spec.envSecretName ?? '');
      expect(JSON.parse((await scene.ok('rollback', 'shop', ...flags, '-f', '--json')).stdout)).toMatchObject({ result: { version: 2 } });
      expect([scene.app().spec.currentDropletRef?.name, variables()]).toEqual([second, { SIZE: '1' }]);
      new RevisionScene(scene).serves(2);
      const again = await run('rollback', 'shop', '--version', '2', '-f');
      expect(again.stderr).toContain('is the same as the deployed revision.');
    },
  );

  it('of an app whose variables were set again after they were lost brings back those of the revision that serves', async () => {
    const [, second] = await twoRevisions();
    scene.setStatus(kinds.app, nameOf(scene.app()), { revision: { change: changeOf(scene.app()), version: 2, deployed: 2, droplets: [] } });
    await scene.cluster.memory.delete(secretType, ns, scene.app().spec.envSecretName ?? '');
    expect((await scene.ok('set-env', 'shop', 'NEW', 'x')).stderr).toContain(
      "'kf rollback shop' brings back those of the version that serves",
    );
    expect(JSON.parse((await scene.ok('rollback', 'shop', '-f', '--json')).stdout)).toMatchObject({ result: { version: 2 } });
    expect([scene.app().spec.currentDropletRef?.name, variables()]).toEqual([second, { SIZE: '1' }]);
    new RevisionScene(scene).serves(2);
    expect((await run('rollback', 'shop', '--version', '2', '-f')).stderr).toContain('is the same as the deployed revision.');
  });
});
