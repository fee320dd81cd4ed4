// Packages and droplets, one by one: list, create, stage, set, download, copy.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, places } from '../../../src/lib/api/group.ts';
import { MEDIA_TYPES } from '../../../src/lib/oci/descriptor.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';
import { ScriptedRegistry } from '../../support/registry.ts';

const bundle = bundleForTests();
const place = 'in org example-org / space example-space as alice...';
let scene: PushScene;
let registry: ScriptedRegistry | undefined;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(async () => {
  await scene.stop();
  await registry?.stop();
  registry = undefined;
});
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv, { env: { TZ: 'UTC' } });
const push = ['push', 'shop', '-p', 'app'];

/** Two pushes with other source each. Returns the droplets, oldest first. */
async function pushedTwice(): Promise<[string, string]> {
  await scene.ok(...push);
  scene.source('b');
  await scene.ok(...push);
  const [first, second] = scene.builds().map(nameOf);
  return [first ?? '', second ?? ''];
}

/** The installation's registry is a real one outside of the cluster, which the test can look into. */
async function withRegistry(): Promise<ScriptedRegistry> {
  registry = await ScriptedRegistry.start();
  const map = scene.cluster.memory.peek(configMapType, 'cf', places.info);
  const info = JSON.parse(map?.data?.[places.infoKey] ?? '{}') as { registry: object };
  Object.assign(info.registry, { pushHost: registry.host, pullPrefix: `${registry.host}/` });
  await scene.cluster.memory.mergePatch(configMapType, 'cf', places.info, { data: { [places.infoKey]: JSON.stringify(info) } });
  return registry;
}

async function layer(files: Record<string, string>): Promise<Buffer> {
  const archive = pack();
  for (const [name, content] of Object.entries(files)) archive.entry({ name }, content);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Puts an image into the registry whose first layer is that of the run image; returns its reference. */
async function putDroplet(into: ScriptedRegistry, repository: string, ...layers: Record<string, string>[]): Promise<string> {
  const tars = await Promise.all(layers.map(layer));
  const descriptors = tars.map((tar) => {
    const bytes = gzipSync(tar);
    return { mediaType: MEDIA_TYPES.layerGzip, digest: into.putBlob(repository, bytes), size: bytes.length };
  });
  const diffIds = tars.map((_, index) => `sha256:${String(index).repeat(64)}`);
  const labels = { 'io.buildpacks.lifecycle.metadata': JSON.stringify({ runImage: { topLayer: diffIds[0] } }) };
  const config = Buffer.from(
    JSON.stringify({ architecture: 'amd64', os: 'linux', config: { Labels: labels }, rootfs: { type: 'layers', diff_ids: diffIds } }),
  );
  const digest = into.putManifest(repository, 'latest', MEDIA_TYPES.manifest, {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.manifest,
    config: { mediaType: MEDIA_TYPES.config, digest: into.putBlob(repository, config), size: config.length },
    layers: descriptors,
  });
  return `${into.host}/${repository}@${digest}`;
}

describe('packages and droplets', () => {
  it('are listed in the layout of cf, newest first', async () => {
    const [first, second] = await pushedTwice();
    const [older, newer] = scene.packages().map(nameOf);
    const packages = await run('packages', 'shop');
    expect(packages).toMatchObject({ code: 0, stderr: '' });
    const date = '\\w{3} \\d\\d \\w{3} \\d\\d:\\d\\d:\\d\\d UTC \\d{4}';
    expect(packages.stdout).toMatch(new RegExp(`^Getting packages of app shop ${place}\n\nguid +state +created\n`));
    expect(packages.stdout).toMatch(new RegExp(`^${newer} +ready +${date}$`, 'm'));
    expect(packages.stdout).toMatch(new RegExp(`^${older} +ready +${date}$`, 'm'));
    const droplets = await run('droplets', 'shop');
    expect(droplets.stdout).toMatch(new RegExp(`^Getting droplets of app shop ${place}\n\nguid +state +created\n`));
    expect(droplets.stdout).toMatch(new RegExp(`^${second} \\(current\\) +staged +${date}$`, 'm'));
    expect(droplets.stdout).toMatch(new RegExp(`^${first} +staged +${date}$`, 'm'));
    const { result } = JSON.parse((await run('droplets', 'shop', '--json')).stdout) as { result: { guid: string; current: boolean }[] };
    expect(new Map(result.map(({ guid, current }) => [guid, current]))).toEqual(new Map([[first, false], [second, true]])); // prettier-ignore
  });

  it('of a new app are none, and an unknown app is not found', async () => {
    await scene.ok('create-app', 'shop');
    expect((await run('packages', 'shop')).stdout).toMatch(/\n\nNo packages found\.\n$/);
    expect((await run('droplets', 'shop')).stdout).toMatch(/\n\nNo droplets found\n$/);
    for (const command of ['packages', 'droplets', 'stage', 'download-droplet', 'create-package'])
      expect(await run(command, 'shap')).toMatchObject({ code: 1, stderr: expect.stringContaining("App 'shap' not found.") });
  });
});

describe('create-package', () => {
  it('uploads without a build, and the next restart builds the package', async () => {
    await scene.ok(...push);
    const before = scene.app();
    scene.source('b');
    const made = await run('create-package', 'shop', '-p', 'app');
    const guid = nameOf(scene.packages()[1]);
    expect(made.code).toBe(0);
    expect(made.stdout).toContain(`Uploading and creating bits package for app shop ${place}\n`);
    expect(made.stdout).toMatch(new RegExp(`\nPackage with guid '${guid}' has been created\\.\nOK\n\n$`));
    expect([scene.builds().length, scene.app().spec]).toEqual([1, before.spec]);
    expect(scene.app().metadata.annotations?.[annotations.deployId]).toBe(before.metadata.annotations?.[annotations.deployId]);
    await scene.ok('restart', 'shop');
    expect([scene.builds().length, scene.packageThatRuns()]).toEqual([2, guid]);
  });

  it('-o names the image of an app that runs images', async () => {
    await scene.ok('create-app', 'img', '--app-type', 'docker');
    const made = await run('create-package', 'img', '-o', 'registry.example.com/shop:1');
    expect(made.stdout).toContain(`Creating docker package for app img ${place}\n`);
    expect(scene.packages().map(({ spec }) => [spec.type, spec.source?.registry.image])).toEqual([
      ['docker', 'registry.example.com/shop:1'],
    ]);
    const wrong = await run('create-package', 'img', '-p', 'app');
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining("App 'img' runs ready images") });
    expect(await run('create-package', 'img', '-o', 'not an image')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not valid'),
    });
    expect(scene.packages()).toHaveLength(1);
  });

  it('refuses an image for source code, both at once, and a folder that does not exist', async () => {
    await scene.ok('create-app', 'shop');
    const image = await run('create-package', 'shop', '-o', 'registry.example.com/shop:1');
    expect(image).toMatchObject({ code: 1, stderr: expect.stringContaining('kf create-package shop -p PATH') });
    const both = await run('create-package', 'shop', '-o', 'a', '-p', 'app');
    expect(both.stderr).toContain('Incorrect Usage: The following arguments cannot be used together: --docker-image, -o, -p');
    const missing = await run('create-package', 'shop', '-p', 'nowhere');
    expect(missing.stderr).toContain("Incorrect Usage: The specified path 'nowhere' does not exist.");
    expect(scene.packages()).toHaveLength(0);
  });
});

describe('stage-package', () => {
  it('builds the last package and changes neither the droplet nor what runs', async () => {
    await scene.ok(...push);
    scene.source('b');
    await scene.ok('create-package', 'shop', '-p', 'app');
    const before = scene.app();
    const staged = await run('stage-package', 'shop');
    const droplet = nameOf(scene.builds()[1]);
    expect(staged.code).toBe(0);
    expect(staged.stdout).toMatch(new RegExp(`^Staging package for shop ${place}\n\nStaging app and tracing logs\\.\\.\\.\n`));
    expect(staged.stdout).toMatch(new RegExp(`\n\nPackage staged\ndroplet guid: +${droplet}\nstate: +staged\ncreated: +\\w{3} \\d\\d`));
    expect(scene.app().spec).toEqual(before.spec);
    // As in cf, a restart runs the droplet that the app has.
    await scene.ok('restart', 'shop');
    expect([scene.builds().length, scene.app().spec.currentDropletRef?.name]).toEqual([2, nameOf(scene.builds()[0])]);
  });

  it('--package-guid builds that package, which must be one of the app', async () => {
    await pushedTwice();
    const [older] = scene.packages().map(nameOf);
    await scene.ok('stage', 'shop', '--package-guid', older ?? '');
    expect(scene.builds().at(-1)?.spec.packageRef.name).toBe(older);
    const unknown = await run('stage', 'shop', '--package-guid', 'other');
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("Package with guid 'other' not found in app 'shop'.") });
    await scene.ok('create-app', 'empty');
    expect(await run('stage', 'empty')).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing was pushed') });
  });

  it('of a build that fails says why', async () => {
    await scene.ok(...push);
    scene.droplet = 'fails';
    const failed = await run('stage', 'shop');
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('Error staging application: It broke.') });
  });
});

describe('set-droplet', () => {
  it('rolls nothing: the next start runs the droplet', async () => {
    const [first, second] = await pushedTwice();
    const { [annotations.appRev]: rev = '0', [annotations.deployId]: deployId = '' } = scene.app().metadata.annotations ?? {};
    const set = await run('set-droplet', 'shop', first);
    expect(set).toMatchObject({ code: 0, stderr: '', stdout: `Setting app shop to droplet ${first} ${place}\nOK\n\n` });
    expect(scene.app().spec).toMatchObject({ desiredState: 'STARTED', currentDropletRef: { name: first } });
    expect(scene.app().metadata.annotations).toMatchObject({
      [annotations.held]: `${rev}/${deployId}`,
      [annotations.deployId]: deployId,
      [annotations.appRev]: rev,
    });
    expect(scene.app().status?.deployment?.id).toBe(deployId);
    expect(second).not.toBe(first);
    await scene.ok('restart', 'shop');
    expect(scene.app().metadata.annotations?.[annotations.deployId]).not.toBe(deployId);
    expect([scene.builds().length, scene.app().spec.currentDropletRef?.name]).toEqual([2, first]);
  });

  it('is followed by a push that runs the droplet, although nothing else differs', async () => {
    const [first] = await pushedTwice();
    await scene.ok('set-droplet', 'shop', first);
    const { [annotations.deployId]: deployId } = scene.app().metadata.annotations ?? {};
    scene.source('a');
    const pushed = await scene.ok(...push);
    expect(pushed.stdout).not.toContain('is unchanged');
    expect(scene.app().metadata.annotations?.[annotations.deployId]).not.toBe(deployId);
    expect(scene.app().spec.currentDropletRef?.name).toBe(first);
  });

  it('refuses a droplet of another app, a failed build and an unknown one', async () => {
    await scene.ok(...push);
    scene.droplet = 'fails';
    scene.source('b');
    await run(...push);
    const before = scene.app();
    const failed = nameOf(scene.builds()[1]);
    await scene.cluster.add(kinds.build, {
      metadata: { name: 'of-another', namespace: ns },
      spec: { ...before.spec, appRef: { name: 'other' }, packageRef: { name: 'p' }, stagingMemoryMB: 1, stagingDiskMB: 1 },
    });
    scene.endBuild('of-another', {});
    for (const guid of [failed, 'of-another', 'unknown', '../x']) {
      const refused = await run('set-droplet', 'shop', guid);
      expect(refused).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          'Unable to assign droplet: Unable to assign current droplet. Ensure the droplet exists and belongs to this app.',
        ),
      });
    }
    expect(scene.app().spec).toEqual(before.spec);
    expect((await run('set-droplet', 'shop')).stderr).toContain('the required argument `DROPLET_GUID` was not provided');
  });
});

describe('download-droplet', () => {
  const files = { '/workspace/server.js': 'listen', 'layers/node/bin': 'node', workspace: '' };

  async function withDroplet(): Promise<string> {
    const found = await withRegistry();
    await scene.ok(...push);
    const build = nameOf(scene.builds()[0]);
    const repository = `${ns}/${nameOf(scene.app())}-droplets`;
    const { workspace: _, ...content } = files;
    const image = await putDroplet(found, repository, { 'etc/os-release': 'linux' }, content);
    scene.setStatus(kinds.build, build, { droplet: { registry: { image } } });
    return build;
  }
  const contents = (file: string): string[] => execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n');

  it('writes the files that the build added, as one archive that tar reads', async () => {
    const droplet = await withDroplet();
    const file = path.join(scene.cli.home, `droplet_${droplet}.tgz`);
    const downloaded = await run('download-droplet', 'shop');
    expect(downloaded).toMatchObject({ code: 0, stderr: '' });
    expect(downloaded.stdout).toBe(`Downloading current droplet for app shop ${place}\nDroplet downloaded successfully at ${file}\nOK\n\n`);
    expect(contents(file)).toEqual(['workspace/server.js', 'layers/node/bin']);
    expect(execFileSync('tar', ['-xzOf', file, 'workspace/server.js'], { encoding: 'utf8' })).toBe('listen');
  });

  it('--droplet names one, and --path a file or a folder', async () => {
    const droplet = await withDroplet();
    mkdirSync(path.join(scene.cli.home, 'out'));
    const named = await run('download-droplet', 'shop', '--droplet', droplet, '--path', 'out');
    expect(named.stdout).toContain(`Downloading droplet ${droplet} for app shop ${place}\n`);
    expect(readdirSync(path.join(scene.cli.home, 'out'))).toEqual([`droplet_${droplet}.tgz`]);
    await scene.ok('download-droplet', 'shop', '-p', 'mine.tgz');
    expect(contents(path.join(scene.cli.home, 'mine.tgz'))).toHaveLength(2);
  });

  it('leaves nothing behind when the registry sends other bytes, or the file cannot be written', async () => {
    await withDroplet();
    const nowhere = await run('download-droplet', 'shop', '-p', 'no/folder/mine.tgz');
    expect(nowhere).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Error creating droplet file: ENOENT.*no\/folder\/mine\.tgz'$/m) as string,
    });
    for (const [digest, bytes] of registry?.blobs ?? []) if (bytes[0] === 0x1f) registry?.blobs.set(digest, gzipSync(gzipSync('x')));
    const damaged = await run('download-droplet', 'shop', '-p', 'mine.tgz');
    expect(damaged.code).toBe(1);
    expect(readdirSync(scene.cli.home).filter((name) => name.includes('mine'))).toEqual([]);
  });

  it('says that an app has no droplet, or has a ready image', async () => {
    await scene.ok('create-app', 'shop');
    expect((await run('download-droplet', 'shop')).stderr).toContain("App 'shop' does not have a current droplet.");
    expect((await run('download-droplet', 'shop', '--droplet', 'x')).stderr).toContain("Droplet 'x' not found for app 'shop'");
    await scene.ok('push', 'img', '-o', 'registry.example.com/a:1');
    const image = await run('download-droplet', 'img');
    expect(image).toMatchObject({ code: 1, stderr: expect.stringContaining('which kf has not built') });
    expect(existsSync(path.join(scene.cli.home, 'droplet_.tgz'))).toBe(false);
  });
});

describe('copy-source', () => {
  const copy = ['copy-source', 'shop', 'copy'];
  const packageOf = (app: string) => {
    const guid = nameOf(scene.cluster.memory.all(kinds.app).find(({ spec }) => spec.displayName === app));
    return scene.packages().filter(({ spec }) => spec.appRef.name === guid);
  };

  it('copies the package, builds it and runs it', async () => {
    const found = await withRegistry();
    await scene.ok('create-app', 'copy');
    await scene.ok(...push);
    const copied = await run(...copy);
    expect(copied.code).toBe(0);
    expect(copied.stdout).toMatch(new RegExp(`^Copying source from app shop to target app copy ${place}\n`));
    expect(copied.stdout).toMatch(
      /\n\nStaging app and tracing logs\.\.\.\n\nWaiting for app to start\.\.\.\n\nname: +copy\nrequested state: +started\n/,
    );
    const [[from], [to]] = [packageOf('shop'), packageOf('copy')];
    const digest = (image = ''): string => image.replace(/^.*@/, '');
    expect(digest(to?.spec.source?.registry.image)).toBe(digest(from?.spec.source?.registry.image));
    expect(to?.spec.source?.registry.image).toContain(`${found.host}/${ns}/${to?.spec.appRef.name ?? ''}-packages@`);
    expect(scene.builds().at(-1)?.spec.packageRef.name).toBe(nameOf(to));
  });

  it('--no-wait ends with the first instance that serves', async () => {
    await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1');
    await scene.ok('create-app', 'copy', '--app-type', 'docker');
    scene.cluster.memory.writes.length = 0;
    const copied = await scene.ok(...copy, '--strategy', 'rolling', '--no-wait');
    expect(copied.stdout).toMatch(/^name: +copy\nrequested state: +started$/m);
    expect(JSON.stringify(scene.cluster.memory.writes)).not.toContain('STOPPED');
    await scene.ok(...copy, '--strategy', 'canary', '--max-in-flight', '2', '--instance-steps', '10,100');
    const target = scene.cluster.memory.all(kinds.app).find(({ spec }) => spec.displayName === 'copy');
    expect(target?.spec.rollout).toMatchObject({ strategy: 'canary', maxInFlight: 2, instanceSteps: [10, 100] });
  });

  it('--no-restart leaves the other app as it is, in another space too; its next start builds the package', async () => {
    await withRegistry();
    await scene.ok(...push);
    await scene.cluster.add(kinds.space, { metadata: { name: 'other-guid', namespace: 'org-guid' }, spec: { displayName: 'other' } });
    const secret = scene.cluster.memory.peek(secretType, ns, 'kf-registry-push');
    await scene.cluster.add(secretType, { metadata: { name: 'kf-registry-push', namespace: 'other-guid' }, data: secret?.data ?? {} });
    const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
    await scene.cluster.add(kinds.app, {
      metadata: { name: 'copy-guid', namespace: 'other-guid' },
      spec: { displayName: 'copy', desiredState: 'STOPPED', lifecycle },
    });
    const copied = await run(...copy, '-s', 'other', '--no-restart');
    expect(copied.code).toBe(0);
    expect(copied.stdout).toMatch(
      /^Copying source from app shop to target app copy in org example-org \/ space other as alice\.\.\.\n[^]*\n\nOK\n\n$/,
    );
    const [made] = packageOf('copy');
    expect(made?.metadata.namespace).toBe('other-guid');
    const target = scene.cluster.memory.peek(kinds.app, 'other-guid', 'copy-guid');
    expect(target?.spec.desiredState).toBe('STOPPED');
    expect(target?.metadata.annotations?.[annotations.unstaged]).toBe(`${nameOf(made)}/`);
    expect(scene.builds()).toHaveLength(1);
    const again = await scene.ok('copy-source', 'shop', 'copy', '-s', 'other', '-o', 'example-org', '--no-restart', '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ status: 0, result: { package: { state: 'ready' } } });
    // What fails there is looked at there.
    const failing = run(...copy, '-s', 'other');
    await expect.poll(() => scene.builds()).toHaveLength(2);
    const build = scene.builds().find(({ metadata }) => metadata.namespace === 'other-guid');
    const succeeded = { type: 'Succeeded', status: 'False', reason: 'BuildFailed', message: 'It broke.', lastTransitionTime: '' };
    const status = { state: 'FAILED', conditions: [succeeded] };
    await scene.cluster.memory.mergePatch(kinds.build, 'other-guid', nameOf(build), { status }, { subresource: 'status' });
    expect((await failing).stderr).toMatch(/\n {3}kf logs copy --recent --space other\n/);
  });

  it('copies the image of an app that runs images, and refuses an app of the other kind', async () => {
    await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1');
    await scene.ok('create-app', 'copy', '--app-type', 'docker');
    await scene.ok(...copy, '--no-restart');
    expect(packageOf('copy').map(({ spec }) => spec.source?.registry.image)).toEqual(['registry.example.com/shop:1']);
    await scene.ok('create-app', 'source');
    const refused = await run('copy-source', 'shop', 'source');
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/they take different packages[^]*create-app NEW_APP --app-type docker$/m) as string,
    });
  });

  it('refuses flags that exclude each other, unknown apps and spaces, and an app without a package', async () => {
    await scene.ok('create-app', 'shop');
    await scene.ok('create-app', 'copy');
    const texts: [string[], string][] = [
      [['-o', 'example-org'], "Incorrect Usage: '--organization, -o' and '--space, -s' must be used together."],
      [['--no-restart', '--strategy', 'rolling'], 'The following arguments cannot be used together: --no-restart, --strategy'],
      [['--no-restart', '--no-wait'], 'The following arguments cannot be used together: --no-restart, --no-wait'],
      [['-s', 'nowhere'], "Space 'nowhere' not found."],
      [['-s', 'example-space', '-o', 'nowhere'], "Organization 'nowhere' not found."],
      [[], "App 'shop' has no package to copy: nothing was pushed."],
    ];
    for (const [flags, text] of texts) {
      const refused = await run(...copy, ...flags);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(text);
    }
    expect((await run('copy-source', 'shop', 'shap')).stderr).toContain("App 'shap' not found.");
  });
});
