// The output of a push of a version that does not start: the present state of the app, and the cause.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { errorFromAnswer } from '../../../src/lib/kube/errors.ts';
import { bundleForTests } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', 'shop', '-p', 'app'];
const crash = { reason: 'Crashed', process: 'web', message: 'The app ended with exit code 7.' } as const;

async function crashNext(): Promise<void> {
  scene.failure = crash;
  await scene.ok(...push, '--no-start');
  const [process] = scene.cluster.memory.all(kinds.process);
  const instance = { state: 'CRASHED', ready: false, timestamp: '2026-08-07T10:16:20Z', details: 'exit code 7' };
  scene.setStatus(kinds.process, nameOf(process), { instancesStatus: { 0: instance } });
}

it('a push of a version that crashes ends with the summary of the app, as in cf, and then the cause', async () => {
  await crashNext();
  const run = await scene.cli.run(push);
  expect(run.code).toBe(1);
  expect(run.stdout).toMatch(
    /\nWaiting for app shop to start\.\.\.\n\n\nname: +shop\nrequested state: +started\n[^]*\nstart command: +node server\.js\n/,
  );
  expect(run.stdout).toMatch(/\n#0 +crashed +2026-08-07T10:16:20Z .* exit code 7 +false\n\nFAILED\n$/);
  expect(run.stderr).toContain('Start unsuccessful: The app ended with exit code 7.\n');
  // Once is enough.
  expect(run.stdout).not.toContain('last deployment:');
});

it('a new app whose build failed has no variables yet, and none are shown as lost', async () => {
  scene.droplet = 'fails';
  expect(await scene.cli.run(push)).toMatchObject({ code: 1 });
  const { stdout } = await scene.ok('env', 'shop');
  expect(stdout).toContain('\nNo user-provided env variables have been set\n');
  expect(stdout).not.toContain('missing');
});

it('a build that has taken longer than CF_STAGING_TIMEOUT gets twice the time by the hint', async () => {
  scene.droplet = undefined;
  const { stderr } = await scene.cli.run(push, { env: { CF_STAGING_TIMEOUT: '0.02' } });
  expect(stderr).toMatch(/timed out after 0\.02 minute\(s\)\n\nTIP:\n {3}CF_STAGING_TIMEOUT=0\.04 gives it 0\.04 minutes\.\n/);
});

it('a failed build whose log does not arrive in time says so, and ends with the last lines that the controller keeps', async () => {
  scene.droplet = undefined;
  const pushed = scene.cli.run(push);
  await expect.poll(() => scene.builds().length, { timeout: 10_000 }).toBe(1);
  const build = nameOf(scene.builds()[0]);
  const calls = (route: string): number => scene.cluster.server.callsOf(route).length;
  await expect.poll(() => calls(`GET /api/v1/namespaces/${ns}/pods`), { timeout: 10_000 }).toBeGreaterThan(0);
  scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/build/log`, async (call) => {
    await call.write('2026-08-07T10:16:20.000000000Z Fetching\n');
    await call.closed;
  });
  const startedAt = '2026-08-07T10:16:20Z';
  await scene.cluster.add(podType, {
    metadata: { name: 'build', namespace: ns, labels: { [labels.buildWorkloadName]: build } },
    spec: { restartPolicy: 'Never', containers: [{ name: 'build' }] },
    status: {
      phase: 'Failed',
      containerStatuses: [
        {
          ...{ name: 'build', ready: false, restartCount: 0, image: '', imageID: '', containerID: 'containerd://1' },
          state: { terminated: { exitCode: 1, containerID: 'containerd://1', startedAt } },
        },
      ],
    },
  });
  await expect.poll(() => calls('GET .*/log'), { timeout: 10_000 }).toBe(1);
  scene.setStatus(kinds.build, build, {
    state: 'FAILED',
    conditions: [
      { type: 'Succeeded', status: 'False', reason: 'Failed', message: 'It broke.', lastTransitionTime: '', observedGeneration: 1 },
    ],
    failure: { reason: 'BuildFail', logHead: ['Fetching'], logOmitted: 900, logTail: ['npm ERR! 404'] },
  });
  const { stdout, stderr } = await pushed;
  expect(stdout).toMatch(/Fetching\n.*-- STG\/0: gap after [0-9:.]+, not read in time --\n/);
  expect(stderr).toContain('staging application: It broke.\n   Fetching\n   ... 900 lines left out ...\n   npm ERR! 404\n');
});

it('a build that is deleted while it runs ends the push at once', async () => {
  scene.droplet = undefined;
  const pushed = scene.cli.run([...push, '--json'], { env: { CF_STAGING_TIMEOUT: '0.5' } });
  await expect.poll(() => scene.builds().length, { timeout: 10_000 }).toBe(1);
  await scene.cluster.memory.delete(kinds.build, ns, nameOf(scene.builds()[0]));
  const message = 'Error staging application: The build was deleted while it ran.';
  expect(JSON.parse((await pushed).stdout)).toMatchObject({ status: 1, error: { code: 'build', message, hints: ['kf push shop -p app'] } });
});

it('the tour of the README shows the hints of such a push', async () => {
  await crashNext();
  const hintsOf = (text: string): string | undefined => /\nStart unsuccessful: [^]*?\nTIP:\n((?: {3}.+\n)+)/.exec(text)?.[1];
  const { stderr } = await scene.cli.run(push);
  expect(hintsOf(stderr)).toContain('kf why shop');
  expect(hintsOf(readFileSync('README.md', 'utf8'))).toBe(hintsOf(stderr)?.replaceAll('shop', 'hello'));
});

it('a push of a version that crashes prints one document with --json', async () => {
  await crashNext();
  const { stdout } = await scene.cli.run([...push, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    status: 1,
    error: { code: 'start', message: 'Start unsuccessful: The app ended with exit code 7.' },
  });
});

it('a push of several apps has for each that crashes what a push of it alone has', async () => {
  scene.failure = {
    ...crash,
    cause: 'exit-code',
    exitCode: 7,
    pod: 'x',
    logHead: ['at start'],
    logOmitted: 3,
    logTail: ['FATAL: no database'],
  };
  writeFileSync(path.join(scene.cli.home, 'two.yml'), 'applications:\n- name: shop\n  path: app\n- name: bag\n  path: app\n');
  const { code, stdout } = await scene.cli.run(['push', '-f', 'two.yml', '--json']);
  const document = JSON.parse(stdout) as { error: { details: { apps: object[] } } };
  expect([code, document]).toMatchObject([1, { error: { code: 'start', hints: ['kf apps'] } }]);
  const told = { cause: 'exit-code', exitCode: 7, logHead: ['at start'], logOmitted: 3, logTail: ['FATAL: no database'] };
  const message = 'Start unsuccessful: The app ended with exit code 7.';
  expect(document.error.details.apps).toMatchObject(
    ['shop', 'bag'].map((name) => ({
      name,
      error: { code: 'start', message, hints: [`kf logs ${name} --recent`, `kf why ${name}`], details: told },
    })),
  );
});

it('a push of a version that crashes shows the cause even if the app cannot be read any more', async () => {
  await crashNext();
  scene.cluster.server.on('GET .*/pods', (call) => call.text('', 500));
  expect((await scene.cli.run(push)).stderr).toContain('Start unsuccessful: The app ended with exit code 7.\n');
});

it('the hints of such a push act in the place that it was given', async () => {
  await crashNext();
  const elsewhere = { env: { KF_ORG: 'other', KF_SPACE: 'other' } };
  const place = ['--org', 'example-org', '--space', 'example-space'];
  const { stderr } = await scene.cli.run([...push, ...place], elsewhere);
  const given = place.join(' ');
  expect(stderr).toContain(`   kf logs shop --recent ${given}\n   kf why shop ${given}\n`);
  scene.droplet = 'fails';
  scene.source('b');
  expect((await scene.cli.run([...push, ...place], elsewhere)).stderr).toContain(`   kf push shop -p app ${given}\n`);
});

describe('a push whose space is deleted meanwhile', () => {
  const refuse = (): void => {
    const { memory } = scene.cluster;
    const { intercept } = memory;
    memory.intercept = (verb, type, name) => {
      if (verb !== 'create' || type.plural !== kinds.build.plural) return intercept(verb, type, name);
      const message = `cfbuilds "x" is forbidden: unable to create new content in namespace ${ns} because it is being terminated`;
      const details = { name: 'x', kind: 'cfbuilds', causes: [{ reason: 'NamespaceTerminating' }] };
      const answer = { kind: 'Status', status: 'Failure', reason: 'Forbidden', message, details, code: 403 };
      const space = memory.all(kinds.space).find(({ metadata }) => metadata.name === ns);
      // It is there until its namespace is gone.
      if (space !== undefined && space.metadata.deletionTimestamp === undefined) space.metadata.deletionTimestamp = '2026-08-07T10:16:20Z';
      throw errorFromAnswer(403, JSON.stringify(answer));
    };
  };
  const error = { code: 'not-found', message: "Space 'example-space' is being deleted.", hints: ['kf spaces'] };

  it.each(['named', 'targeted'])('names the space that is %s, and blames no right', async (how) => {
    const place = how === 'named' ? {} : { KF_ORG: '', KF_SPACE: '' };
    await scene.ok('target', '-o', 'example-org', '-s', 'example-space');
    refuse();
    const { stdout } = await scene.cli.run([...push, '--json'], { env: place });
    expect(JSON.parse(stdout)).toMatchObject({ status: 1, error });
  });

  it('names it for each of several apps', async () => {
    refuse();
    writeFileSync(path.join(scene.cli.home, 'two.yml'), 'applications:\n- name: shop\n  path: app\n- name: bag\n  path: app\n');
    const document: unknown = JSON.parse((await scene.cli.run(['push', '-f', 'two.yml', '--json'])).stdout);
    expect(document).toMatchObject({ error: { code: 'not-found', details: { apps: ['shop', 'bag'].map((name) => ({ name, error })) } } });
  });
});
