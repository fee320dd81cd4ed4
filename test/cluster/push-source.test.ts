// Source code: built by a real CNB lifecycle, built once, and a failed build reports the cause.

import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countRequests } from '../support/audit.ts';
import { addGreeting } from '../support/greeting-wheel.ts';
import { get } from '../support/http.ts';
import { Kf, kubectlJson, ringEnv } from '../support/kf.ts';
import { currentPodsOf } from '../support/pods.ts';
import { until } from '../support/until.ts';
import { zipOf } from '../support/zip.ts';

const fixtures = path.resolve('test/fixtures/apps');
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-source-'));
});
afterAll(async () => {
  await Promise.all(
    ['source-app', 'no-match', 'static-site', 'binary-app', 'go-hello', 'python-hello'].map((app) => kf.run(['delete', app, '-r', '-f'])),
  );
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

interface PushResult {
  apps: { guid: string; unchanged: boolean; built: boolean; layerBytesSent: number; stack?: string; buildpacks: { name: string }[] }[];
}

interface CFApp {
  metadata: { annotations: Record<string, string> };
  spec: { currentDropletRef: { name: string } };
}

const ns = ringEnv('KF_TEST_SPACE_GUID');
const guidOf = async (app: string): Promise<string> => (await kf.ok('app', app, '--guid')).stdout.trim();
const appOf = async (app: string): Promise<CFApp> => kubectlJson<CFApp>('get', 'cfapp', await guidOf(app), '-n', ns);

/** A zip of a folder without folders in it. */
async function zippedFolder(from: string): Promise<Buffer> {
  const names = await readdir(from);
  const entries = names.map(async (name) => {
    const file = path.join(from, name);
    return { name, content: await readFile(file), mode: (await stat(file)).mode };
  });
  return zipOf(await Promise.all(entries));
}

/** The field managers of an app, as the API server stores them. */
async function managersOf(app: string): Promise<string[]> {
  interface Managed {
    metadata: { managedFields: { manager: string }[] };
  }
  const { metadata } = await kubectlJson<Managed>('get', 'cfapp', await guidOf(app), '-n', ns, '--show-managed-fields');
  return [...new Set(metadata.managedFields.map(({ manager }) => manager))].toSorted();
}

describe('push of source code', () => {
  test('a folder becomes an app that answers, and its build log is shown', async () => {
    await cp(path.join(fixtures, 'node-hello'), path.join(folder, 'hello'), { recursive: true });
    const push = () => kf.ok('push', 'source-app', '-p', path.join(folder, 'hello'), '-m', '128M');
    const { result: ran, requests } = await countRequests(push);
    expect(requests.api).toBeGreaterThan(5);
    expect(requests.api).toBeLessThanOrEqual(25);
    expect(requests.registry).toBeLessThanOrEqual(13);
    expect(ran.stdout).toContain('Staging app and tracing logs...');
    // The ring's homes cannot be written: kf works without a cache and prints a warning.
    expect(ran.stderr).toMatch(/The cache folder '\S+' cannot be used/);
    expect((await get('source-app.apps.localhost')).status).toBe(200);
    expect(await managersOf('source-app')).toEqual(['kf', 'kf-controller']);
    const env = JSON.parse((await get('source-app.apps.localhost', '/env')).body) as Record<string, string>;
    expect(env).toMatchObject({
      PORT: '8080',
      HOME: '/workspace',
      TMPDIR: '/tmp',
      USER: 'vcap',
      LANG: 'en_US.UTF-8',
      MEMORY_LIMIT: '128m',
    });
  });

  test('an unchanged folder sends no layer bytes and builds nothing', async () => {
    const push = () => kf.json<PushResult>('push', 'source-app', '-p', path.join(folder, 'hello'), '-m', '128M');
    const { result, requests } = await countRequests(push);
    expect(result.apps[0]).toMatchObject({ unchanged: true, built: false, layerBytesSent: 0 });
    expect(requests.api).toBeLessThanOrEqual(12);
    // Whether the registry still has the package and the droplet (docs/decisions/0076).
    expect(requests.registry).toBe(2);
  });

  test('another file causes a new build, and a .profile is read in the folder of the app before it starts', async () => {
    await writeFile(path.join(folder, 'hello', '.profile'), 'export FROM_PROFILE="$PWD with $MEMORY_LIMIT"\n');
    const pushed = await kf.json<PushResult>('push', 'source-app', '-p', path.join(folder, 'hello'), '-m', '128M');
    expect(pushed.apps[0]).toMatchObject({ unchanged: false, built: true, stack: 'kf' });
    const env = JSON.parse((await get('source-app.apps.localhost', '/env')).body) as Record<string, string>;
    expect(env).toMatchObject({ FROM_PROFILE: '/workspace with 128m', PWD: '/workspace' });
    await kf.ok('run-task', 'source-app', '-c', 'echo "task: $FROM_PROFILE in $PWD"', '-m', '64M', '--name', 'profiled', '--wait');
    await until('the line of the task', async () =>
      (await kf.ok('logs', 'source-app', '--recent')).stdout.includes('task: /workspace with') ? true : undefined,
    );
  });

  test('a zip is built as the folder that it would be unpacked to, and that folder is then unchanged', async () => {
    await writeFile(path.join(folder, 'hello', 'zipped.txt'), 'zipped');
    const archive = path.join(folder, 'hello.jar');
    await writeFile(archive, await zippedFolder(path.join(folder, 'hello')));
    const zipped = await kf.json<PushResult>('push', 'source-app', '-p', archive, '-m', '128M');
    expect(zipped.apps[0]).toMatchObject({ unchanged: false, built: true });
    expect((await get('source-app.apps.localhost')).status).toBe(200);
    const unpacked = await kf.json<PushResult>('push', 'source-app', '-p', path.join(folder, 'hello'), '-m', '128M');
    expect(unpacked.apps[0]).toMatchObject({ unchanged: true, layerBytesSent: 0 });
  });

  test('restage builds the same source again, with the settings of now', async () => {
    await kf.ok('set-env', 'source-app', 'COLOUR', 'green');
    const before = await appOf('source-app');
    const ran = await kf.ok('restage', 'source-app');
    expect(ran.stdout).toMatch(/Staging app and tracing logs\.\.\.\n[^]*^ {3}kf\/nodejs: web process: node server\.js$/m);
    const after = await appOf('source-app');
    expect(after.spec.currentDropletRef.name).not.toBe(before.spec.currentDropletRef.name);
    const { items: builds } = await kubectlJson<{ items: { spec: { packageRef: { name: string } } }[] }>(
      ...['get', 'cfbuilds', '-n', ns, before.spec.currentDropletRef.name, after.spec.currentDropletRef.name],
    );
    expect(new Set(builds.map(({ spec }) => spec.packageRef.name)).size).toBe(1);
    await until('the new value', async () => (await get('source-app.apps.localhost', '/env')).body.includes('"COLOUR": "green"'));
  });

  test('a build that fails shows its own last lines and leaves the old version serving', async () => {
    const ran = await kf.run(['push', 'source-app', '-p', path.join(fixtures, 'broken-build')]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(/^ {3}npm error local: the compiler that this package needs is missing$/m);
    expect(ran.stderr).toMatch(
      /^Error staging application: The build failed with exit code 51: kf\/nodejs: npm ci .* failed with exit code 3\.$/m,
    );
    expect((await get('source-app.apps.localhost')).status).toBe(200);
  });

  test('if no buildpack matches, the push says what it looked for', async () => {
    const ran = await kf.run(['push', 'no-match', '-p', path.join(fixtures, 'no-match'), '--json']);
    const { error } = JSON.parse(ran.stdout) as {
      error: { code: string; message: string; details: { reason: string; cause: string; logTail: string[] } };
    };
    expect(ran.code).toBe(1);
    expect(error.code).toBe('build');
    expect(error.message).toBe(
      'Error staging application: No buildpack recognised the source; tried: kf/nodejs, kf/go, kf/python, kf/staticfile, kf/binary.',
    );
    expect(error.details).toMatchObject({ reason: 'NoBuildpackMatched', cause: 'no-buildpack' });
    for (const text of [
      'looked for package.json in',
      'looked for go.mod in',
      'looked for requirements.txt, setup.py',
      'looked for Staticfile or index.html in',
      'looked for Procfile or an executable file',
    ])
      expect(error.details.logTail).toContainEqual(expect.stringContaining(text));
  });

  test('the logs of the app and of its build can be read afterwards', async () => {
    const { stdout } = await kf.ok('logs', 'source-app', '--recent');
    expect(stdout).toMatch(/^ {3}\S+ \[APP\/PROC\/WEB\/0\] OUT hello listens on port 8080$/m);
    expect(stdout).toMatch(/^ {3}\S+ \[STG\/0\] OUT kf\/nodejs: web process: node server\.js$/m);
    expect(stdout).toMatch(/^ {3}\S+ \[STG\/0\] OUT npm error local: the compiler that this package needs is missing$/m);
  });

  test.each([
    ['static-site', '<h1>A static site</h1>', 'kf/staticfile'],
    ['binary-app', 'hello from an executable\n', 'kf/binary'],
  ])('%s is recognised and answers, on the given stack', async (app, text, buildpack) => {
    const pushed = await kf.json<PushResult>('push', app, '-p', path.join(fixtures, app), '-m', '64M', '-s', 'kf');
    expect(pushed.apps[0]).toMatchObject({ built: true, stack: 'kf', buildpacks: [expect.objectContaining({ name: buildpack })] });
    expect((await get(`${app}.apps.localhost`)).body).toContain(text);
  });

  test('a stack that the builder lacks is refused with the stacks that it has, and a push without a stack keeps stack and build', async () => {
    const push = ['push', 'static-site', '-p', path.join(fixtures, 'static-site')];
    const ran = await kf.run([...push, '-s', 'unknown']);
    expect([ran.code, ran.stderr]).toEqual([
      1,
      expect.stringContaining("Stack 'unknown' not found. The builder of this installation has: kf"),
    ]);
    const again = await kf.json<PushResult>(...push);
    expect(again.apps[0]).toMatchObject({ unchanged: true, stack: 'kf' });
  });
});

describe.each([
  {
    app: 'python-hello',
    buildpack: 'kf/python',
    built: 'kf/python: pip install -r requirements.txt, from the folder vendor',
    process: 'kf/python: web process: python3 main.py',
    answer: 'hello from Python',
    procfile: 'web: python main.py twice\n',
    kept: 'kf/python: requirements.txt has not changed: the packages of the previous build are used again',
    broken: ['requirements.txt', 'greeting==1.0.0\nabsent==2.0\n'],
    said: 'ERROR: No matching distribution found for absent==2.0',
    cause: /kf\/python: the folder vendor has no wheel of 'absent==2\.0' that Python 3\.\d+ can use\. This puts it there: pip download -r/,
  },
  {
    app: 'go-hello',
    buildpack: 'kf/go',
    built: 'kf/go: go build ., with go1.',
    process: 'kf/go: web process: hello',
    answer: 'hello from Go',
    procfile: 'web: hello twice\n',
    kept: 'kf/go: no source of the programs has changed: those of the previous build are used again',
    broken: ['main.go', 'package main\n\nfunc main() {\n\tmissing()\n}\n'],
    said: './main.go:4:2: undefined: missing',
    cause: /kf\/go: go build failed: \.\/main\.go:4:2: undefined: missing\.$/m,
  },
] as const)('a source for $buildpack', ({ app, buildpack, ...expected }) => {
  const source = (): string => path.join(folder, app);
  const push = () => kf.run(['push', app, '-p', source(), '-m', '64M']);
  const body = async (): Promise<string> => (await get(`${app}.apps.localhost`)).body;

  test('is recognised, built from its folder vendor, and listens on PORT', async () => {
    await cp(path.join(fixtures, app), source(), { recursive: true });
    if (buildpack === 'kf/python') await addGreeting(source());
    const ran = await push();
    expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringContaining('FAILED')]);
    expect(ran.stdout).toContain(expected.built);
    expect(ran.stdout).toContain(expected.process);
    expect(ran.stdout).toMatch(new RegExp(`^\\t${buildpack} +1\\.0\\.0 `, 'm'));
    expect(await body()).toBe(`${expected.answer}\n`);
  });

  test('that changed elsewhere keeps what was built, and its Procfile names the process', async () => {
    await writeFile(path.join(source(), 'Procfile'), expected.procfile);
    expect((await push()).stdout).toContain(expected.kept);
    await until('the process of the Procfile', async () => (await body()) === `${expected.answer} twice\n`);
  });

  test('that cannot be built shows the cause', async () => {
    await writeFile(path.join(source(), expected.broken[0]), expected.broken[1]);
    const ran = await push();
    expect([ran.code, ran.stdout]).toEqual([1, expect.stringContaining(expected.said)]);
    expect(ran.stderr).toMatch(expected.cause);
  });
});

test('of two pushes at the same time the later one wins with its source and its settings, and the earlier one names it', async () => {
  const [early, late] = [path.join(folder, 'early'), path.join(folder, 'late')];
  for (const copy of [early, late]) await cp(path.join(fixtures, 'node-hello'), copy, { recursive: true });
  // Its build lasts until long after the other one has begun.
  const scripts = { build: 'sleep 30', start: 'node server.js early' };
  await writeFile(path.join(early, 'package.json'), JSON.stringify({ name: 'early', scripts }));
  await writeFile(path.join(late, 'package.json'), JSON.stringify({ name: 'late', scripts: { start: 'node server.js late' } }));
  const first = kf.start(['push', 'source-app', '-p', early, '-m', '96M', '-k', '300M']);
  const ended = new Promise<number | null>((resolve) => first.on('close', resolve));
  let [stdout, stderr] = ['', ''];
  first.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  first.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  await until('the first build', () => Promise.resolve(stdout.includes('Staging app')));
  const second = await kf.json<PushResult>('push', 'source-app', '-p', late, '-m', '80M');
  const guid = second.apps[0]?.guid ?? '';
  expect(await ended).toBe(1);
  const { 'kf.cloudfoundry.org/changed-by': by, 'kf.cloudfoundry.org/push-started': at } = (await appOf('source-app')).metadata.annotations;
  expect(stderr).toContain(`A later push, rollback or apply-manifest of app 'source-app' (by ${by}, started ${at}) has taken over`);
  const [pod] = await currentPodsOf(guid);
  const process = await kf.json<{ processes: { command: string; memoryMB: number; diskMB: number }[] }>('app', 'source-app');
  expect(process.processes[0]).toMatchObject({ command: 'node server.js late', memoryMB: 80, diskMB: 1024 });
  expect(pod?.spec.containers[0]?.resources.limits).toEqual({ memory: '80Mi', 'ephemeral-storage': '1Gi' });
});
