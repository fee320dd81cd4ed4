// Images of registries that ask for a user and a password.

import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const image = 'registry.example.com/shop:1';
const user = ['--docker-username', 'bob'];
const env = { CF_DOCKER_PASSWORD: 's3cret' };
const secretName = (): string => `${nameOf(scene.app())}-image-pull`;
const secret = () => scene.cluster.memory.peek(secretType, ns, secretName());
const auths = (): unknown =>
  (JSON.parse(Buffer.from(secret()?.data?.['.dockerconfigjson'] ?? '', 'base64').toString()) as { auths: unknown }).auths;
const credential = (username: string, password: string) => ({
  username,
  password,
  auth: Buffer.from(`${username}:${password}`).toString('base64'),
});

/** The controller takes over the package's pull secrets. The app may not exist yet. */
function stageImages(): void {
  scene.droplet = {
    get registry() {
      return { image: 'registry.example.com/shop@sha256:1', imagePullSecrets: [{ name: secretName() }] };
    },
  };
}

/** A push whose image is not found, and that gets the signal meanwhile. */
async function endedWhileBuilding(password: string, signal: NodeJS.Signals): Promise<CliRun> {
  scene.droplet = undefined;
  const before = scene.builds().length;
  const started = async (child: ChildProcess): Promise<void> => {
    await expect.poll(() => scene.builds().length).toBe(before + 1);
    child.kill(signal);
  };
  return scene.cli.run(['push', 'shop', '-o', image, ...user], {
    env: { CF_DOCKER_PASSWORD: password },
    started: (child) => void started(child),
  });
}

describe('push --docker-username', () => {
  it('keeps user and password in a Secret of the app, which the package names, and prints the password nowhere', async () => {
    const run = await scene.cli.run(['push', 'shop', '-o', image, ...user, '-v'], { env });
    expect(run.code, run.stderr).toBe(0);
    expect(secret()).toMatchObject({
      type: 'kubernetes.io/dockerconfigjson',
      metadata: {
        labels: { 'korifi.cloudfoundry.org/app-guid': nameOf(scene.app()) },
        ownerReferences: [{ kind: 'CFApp', uid: scene.app().metadata.uid }],
      },
    });
    expect(auths()).toEqual({ 'registry.example.com': credential('bob', 's3cret') });
    expect(scene.packages()[0]?.spec.source?.registry).toEqual({ image, imagePullSecrets: [{ name: secretName() }] });
    for (const hidden of ['s3cret', Buffer.from('bob:s3cret').toString('base64')]) expect(run.stdout + run.stderr).not.toContain(hidden);
  });

  it('is unchanged with the same image, also with a new password, which replaces the old one beside other registries', async () => {
    await scene.ok('push', 'shop', '-o', image);
    stageImages();
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    const droplet = scene.app().spec.currentDropletRef?.name;
    const again = await scene.cli.run(['push', 'shop', '-o', image, ...user], { env: { CF_DOCKER_PASSWORD: 'new' } });
    expect(again.stdout).toContain('App shop is unchanged');
    expect([scene.app().spec.currentDropletRef?.name, scene.packages().length]).toEqual([droplet, 2]);
    await scene.cli.run(['push', 'shop', '-o', 'team/shop:2', '--docker-username', 'eve'], { env });
    expect(auths()).toEqual({
      'registry.example.com': credential('bob', 'new'),
      'https://index.docker.io/v1/': credential('eve', 's3cret'),
    });
  });

  it('that fails gives the version that serves its password back', async () => {
    stageImages();
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    scene.droplet = 'fails';
    const failed = await scene.cli.run(['push', 'shop', '-o', image, '--docker-username', 'eve'], {
      env: { CF_DOCKER_PASSWORD: 'expired' },
    });
    expect(failed.code).toBe(1);
    expect(auths()).toEqual({ 'registry.example.com': credential('bob', 's3cret') });
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('that is ended by %s gives the version that serves its password back', async (signal) => {
    stageImages();
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    const ended = await endedWhileBuilding('wrong', signal);
    expect(ended.stderr).toContain('Interrupted.');
    expect(ended.stderr).not.toContain('could not be put back');
    expect(auths()).toEqual({ 'registry.example.com': credential('bob', 's3cret') });
  });

  it('that is interrupted with the password of now does not say that it could not be put back', async () => {
    stageImages();
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    const ended = await endedWhileBuilding('s3cret', 'SIGINT');
    expect(ended.stderr).toContain('Interrupted.');
    expect(ended.stderr).not.toContain('could not be put back');
  });

  it('that fails leaves the password alone with which a later push serves', async () => {
    stageImages();
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    const rotated = { env: { CF_DOCKER_PASSWORD: 'rotated' } };
    scene.droplet = undefined;
    const failing = scene.cli.run(['push', 'shop', '-o', image, ...user], rotated);
    await expect.poll(() => scene.builds().length).toBe(2);
    const failed = nameOf(scene.builds()[1]);
    stageImages();
    expect(await scene.cli.run(['push', 'shop', '-o', image, ...user], rotated)).toMatchObject({ code: 0 });
    scene.endBuild(failed, 'fails');
    const { code, stderr } = await failing;
    expect([code, stderr.includes('could not be put back')]).toEqual([1, false]);
    expect(auths()).toEqual({ 'registry.example.com': credential('bob', 'rotated') });
  });

  it('that fails leaves a password alone that somebody else has written since', async () => {
    stageImages();
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    scene.droplet = undefined;
    const failing = scene.cli.run(['push', 'shop', '-o', image, ...user], { env: { CF_DOCKER_PASSWORD: 'expired' } });
    await expect.poll(() => scene.builds().length).toBe(2);
    const theirs = JSON.stringify({ auths: { 'registry.example.com': credential('bob', 'theirs') } });
    const data = { '.dockerconfigjson': Buffer.from(theirs).toString('base64') };
    await scene.cluster.memory.mergePatch(secretType, ns, secretName(), { data });
    scene.endBuild(nameOf(scene.builds()[1]), 'fails');
    expect((await failing).code).toBe(1);
    expect(auths()).toEqual({ 'registry.example.com': credential('bob', 'theirs') });
  });

  it('keeps what a push for another registry writes at the same time', async () => {
    stageImages();
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    const { memory } = scene.cluster;
    const { intercept } = memory;
    memory.intercept = async (verb, type, name) => {
      if (verb === 'patch' && type.plural === secretType.plural) {
        memory.intercept = intercept;
        const both = { ...(auths() as object), 'other.example.com': credential('al', 'other') };
        const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths: both })).toString('base64') };
        await memory.mergePatch(secretType, ns, name, { data });
      }
      await intercept(verb, type, name);
    };
    await scene.cli.run(['push', 'shop', '-o', image, ...user], { env: { CF_DOCKER_PASSWORD: 'new' } });
    expect(auths()).toEqual({ 'registry.example.com': credential('bob', 'new'), 'other.example.com': credential('al', 'other') });
  });

  it('of an image that was pushed without a user makes a new droplet', async () => {
    scene.droplet = { registry: { image: 'registry.example.com/shop@sha256:1' } };
    await scene.ok('push', 'shop', '-o', image);
    stageImages();
    const run = await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
    expect(run.stdout).not.toContain('unchanged');
    expect(scene.packageThatRuns()).toBe(nameOf(scene.packages()[1]));
  });

  it('with --no-start makes a package, and another one when the user is added', async () => {
    for (const flags of [[], user, user]) await scene.cli.run(['push', 'shop', '-o', image, '--no-start', ...flags], { env });
    expect(scene.packages().map(({ spec }) => spec.source?.registry.imagePullSecrets)).toEqual([undefined, [{ name: secretName() }]]);
  });

  it('is the user of a manifest too, and of the manifest that create-app-manifest writes', async () => {
    writeFileSync(path.join(scene.cli.home, 'manifest.yml'), `applications:\n- name: shop\n  docker: {image: ${image}, username: alice}\n`);
    stageImages();
    const run = await scene.cli.run(['push'], { env });
    expect(run.code, run.stderr).toBe(0);
    expect(auths()).toEqual({ 'registry.example.com': credential('alice', 's3cret') });
    await scene.ok('create-app-manifest', 'shop', '-p', path.join(scene.cli.home, 'written.yml'));
    const written = readFileSync(path.join(scene.cli.home, 'written.yml'), 'utf8');
    expect(written).toContain(`  docker:\n      image: ${image}\n      username: alice\n`);
    expect(written).not.toContain('s3cret');
  });

  it('may be in the manifest while -o has the image', async () => {
    writeFileSync(path.join(scene.cli.home, 'manifest.yml'), `applications:\n- name: shop\n  docker: {image: ${image}, username: alice}\n`);
    const run = await scene.cli.run(['push', '-o', 'registry.example.com/shop:2'], { env });
    expect(run.code, run.stderr).toBe(0);
    expect(auths()).toEqual({ 'registry.example.com': credential('alice', 's3cret') });
    const imagePullSecrets = [{ name: secretName() }];
    expect(scene.packages()[0]?.spec.source?.registry).toEqual({ image: 'registry.example.com/shop:2', imagePullSecrets });
  });
});

it('a push of a tag that the controller could not read is not unchanged: the tag may have moved', async () => {
  scene.droplet = { registry: { image } };
  await scene.ok('push', 'shop', '-o', image);
  expect((await scene.ok('push', 'shop', '-o', image)).stdout).not.toContain('unchanged');
  expect(scene.packageThatRuns()).toBe(nameOf(scene.packages()[1]));
});

describe('without CF_DOCKER_PASSWORD', () => {
  const asked = 'Environment variable CF_DOCKER_PASSWORD not set.\nDocker password> \n';

  it('takes a line of stdin, and shows it nowhere', async () => {
    const run = await scene.cli.run(['push', 'shop', '-o', image, ...user], { stdin: 's3cret\n' });
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout.startsWith(asked)).toBe(true);
    expect(auths()).toEqual({ 'registry.example.com': credential('bob', 's3cret') });
    expect(run.stdout + run.stderr).not.toContain('s3cret');
  });

  it('fails with a closed stdin before anything is written, and names the variable', async () => {
    const run = await scene.cli.run(['push', 'shop', '-o', image, ...user], { stdin: '' });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("'Docker password' is asked for, but there is no terminal to ask on: give it with CF_DOCKER_PASSWORD.");
    expect(scene.packages()).toEqual([]);
  });

  it('is not asked for an image without a user', async () => {
    const run = await scene.cli.run(['push', 'shop', '-o', image, '--docker-username', ''], { stdin: '' });
    expect(run.code, run.stderr).toBe(0);
    expect(secret()).toBeUndefined();
  });
});

it.each([
  [`The image '${image}' cannot be read: MANIFEST_UNKNOWN: manifest unknown`, ['kf push shop -m 64M -o IMAGE', 'kf events shop']],
  [
    `The image '${image}' cannot be read: UNAUTHORIZED: authentication required`,
    ['CF_DOCKER_PASSWORD=PASSWORD kf push shop -m 64M -o IMAGE --docker-username USERNAME', 'kf events shop'],
  ],
  [
    `The image '${image}' cannot be read: x509: certificate signed by unknown authority`,
    ['kf events shop', `kf push shop --docker-image ${image} -m 64M`],
  ],
])('the hints repeat a push that failed only when it may succeed then: %s', async (message, hints) => {
  Object.assign(scene, { droplet: 'fails', buildFailure: 'StagingFailed', buildMessage: message });
  const run = await scene.cli.run(['push', 'shop', '-o', image, '-m', '64M', '--json']);
  expect(JSON.parse(run.stdout)).toMatchObject({ status: 1, error: { code: 'build', hints } });
});

it('an image whose name is none is refused before anything is written', async () => {
  const run = await scene.cli.run(['push', 'shop', '-o', 'Upper Case']);
  expect([run.code, run.stdout]).toEqual([1, expect.stringContaining('USAGE:')]);
  expect(run.stderr).toMatch(/^Incorrect Usage: The image reference 'Upper Case' is not valid: [^]*\nTIP:\n {3}kf push shop -o IMAGE\n/);
  expect([scene.cluster.memory.all(kinds.app), scene.packages()]).toEqual([[], []]);
});

it('a package of another tool whose image has no valid name is explained with the command for another image, and no logs', async () => {
  const buildMessage = "The image reference 'Upper Case' is not valid: 'Upper Case' is not a repository name.";
  Object.assign(scene, { droplet: 'fails', buildFailure: 'StagingFailed', buildMessage });
  await scene.cli.run(['push', 'shop', '-o', image]);
  const why = JSON.parse((await scene.cli.run(['why', 'shop', '--build', '--json'])).stdout) as unknown;
  expect(why).toMatchObject({ result: { cause: 'image-not-found', next: ['kf push shop -o IMAGE', 'kf events shop'] } });
});

it('--docker-username without an image is refused', async () => {
  const run = await scene.cli.run(['push', 'shop', ...user], { env });
  expect([run.code, run.stderr]).toEqual([
    1,
    expect.stringContaining("'--docker-image, -o' and '--docker-username' must be used together."),
  ]);
});

it('without the right to write Secrets, it says whose right lacks, and no package is made', async () => {
  const message = 'secrets is forbidden: User "alice" cannot create resource "secrets"';
  scene.cluster.server.on('POST .*/secrets', (call) => call.fail(403, 'Forbidden', message));
  const run = await scene.cli.run(['push', 'shop', '-o', image, ...user], { env });
  expect([run.code, run.stderr, scene.packages()]).toEqual([1, expect.stringContaining('alice'), []]);
});

describe('the user of a registry', () => {
  const authsOf = (app: string): unknown => {
    const data = scene.cluster.memory.peek(secretType, ns, `${guidOf(app)}-image-pull`)?.data?.['.dockerconfigjson'];
    return (JSON.parse(Buffer.from(data ?? '', 'base64').toString()) as { auths: unknown }).auths;
  };
  const guidOf = (app: string): string =>
    scene.cluster.memory.all(kinds.app).find(({ spec }) => spec.displayName === app)?.metadata.name ?? '';

  it('is given by create-package --docker-username, only with an image', async () => {
    await scene.ok('create-app', 'img', '--app-type', 'docker');
    const made = await scene.cli.run(['create-package', 'img', '-o', image, ...user], { env });
    expect([made.code, made.stderr]).toEqual([0, '']);
    expect(authsOf('img')).toEqual({ 'registry.example.com': credential('bob', 's3cret') });
    const imagePullSecrets = [{ name: `${guidOf('img')}-image-pull` }];
    expect(scene.packages()[0]?.spec.source?.registry).toEqual({ image, imagePullSecrets });
    const alone = await scene.cli.run(['create-package', 'img', ...user], { env });
    expect(alone).toMatchObject({ code: 1, stderr: expect.stringContaining('must be used together') as string });
    expect((await scene.cli.run(['create-package', 'img', '-o', image, ...user])).stderr).toContain('CF_DOCKER_PASSWORD');
  });

  it('is copied by copy-source, with the password', async () => {
    await scene.ok('create-app', 'img', '--app-type', 'docker');
    await scene.cli.run(['create-package', 'img', '-o', image, ...user], { env });
    await scene.ok('create-app', 'copy', '--app-type', 'docker');
    await scene.ok('copy-source', 'img', 'copy', '--no-restart');
    expect(authsOf('copy')).toEqual({ 'registry.example.com': credential('bob', 's3cret') });
    const copied = scene.packages().find(({ spec }) => spec.appRef.name === guidOf('copy'));
    expect(copied?.spec.source?.registry).toEqual({ image, imagePullSecrets: [{ name: `${guidOf('copy')}-image-pull` }] });
  });
});
