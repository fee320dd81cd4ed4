// `why`: the cause, the evidence and the command to try, for an app, a build, a task, a route and a service.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, eventType } from '../../../src/lib/api/core.ts';
import { eventsName } from '../../../src/lib/api/event-log.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { changeOf } from '../../../src/lib/api/held.ts';
import { statefulSetName } from '../../../src/lib/api/names.ts';
import type { WhyDetails } from '../../../src/lib/api/results.ts';
import { printRecord, revisionsName } from '../../../src/lib/api/revisions.ts';
import { printVerdict, type Verdict } from '../../../src/lib/api/verdicts.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const place = 'in org example-org / space example-space as alice...';
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const again = 'kf push shop -p app';
const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const push = ['push', 'shop', '-p', 'app'];
const asJson = async (...argv: string[]): Promise<WhyDetails> => {
  const { code, stdout, stderr } = await run('why', ...argv, '--json');
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { result: WhyDetails }).result;
};
const crash = {
  reason: 'Crashed',
  cause: 'exit-code',
  message: 'The app ended with exit code 7.',
  process: 'web',
  pod: 'shop-0123456789-2',
  container: 'application',
  exitCode: 7,
  since: '2026-08-07T10:16:20Z',
  logHead: ['the cause'],
  logOmitted: 3,
  logTail: ['the \u001b]0;title\u0007end'],
};

async function warning(name: string, reason: string, message: string, lastTimestamp = '2026-08-07T10:16:21Z'): Promise<void> {
  await scene.cluster.add(eventType, {
    metadata: { name: `${name}.${reason.toLowerCase()}`, namespace: ns },
    involvedObject: { kind: 'Pod', name },
    type: 'Warning',
    reason,
    message,
    lastTimestamp,
  });
}

const full = 'Pod ephemeral local storage usage exceeds the total limit of containers 20Mi.';
const evicted = (name: string, message = full, time = new Date().toISOString()) => warning(name, 'Evicted', message, time);

describe('an app whose last change failed', () => {
  beforeEach(async () => {
    scene.failure = crash;
    await run(...push);
    await warning('shop-0123456789-2', 'BackOff', 'Back-off restarting\nfailed container');
    await warning('another-0', 'BackOff', 'of another app');
  });

  it('is explained on one screen: the cause, the last lines, the events, the command', async () => {
    const shown = await run('why', 'shop');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout.replace(/^since: .*\n/m, '').replace(/^\S+( {3}Pod)/m, 'TIME$1')).toBe(
      `Explaining shop ${place}\n\nThe app ended with exit code 7.\n\n` +
        'cause:       exit-code (the app ended by itself)\nprocess:     web, instance 2\ncontainer:   application\nexit code:   7\n\n' +
        'last lines:\n   the cause\n   ... 3 lines left out ...\n   the \u001b]0;title\u0007end\n\n' +
        'time                          object                  event     description\n' +
        'TIME   Pod shop-0123456789-2   BackOff   Back-off restarting failed container\n\n' +
        'TIP:\n   kf logs shop --recent\n',
    );
  });

  it('has the code in the documents of why and of the push, with the same commands', async () => {
    const details = await asJson('shop');
    expect(details).toMatchObject({
      kind: 'app', name: 'shop', state: 'failed', cause: 'exit-code', message: crash.message, process: 'web', instance: 2, exitCode: 7,
      log: { head: crash.logHead, omitted: 3, tail: crash.logTail }, events: [{ object: 'Pod shop-0123456789-2', reason: 'BackOff' }],
    }); // prettier-ignore
    const failed = await run(...push, '--force', '--json');
    const { error } = JSON.parse(failed.stdout) as { error: { hints: string[]; details: { cause: string } } };
    expect(error.details.cause).toBe('exit-code');
    expect(error.hints).toEqual([...details.next, 'kf why shop']);
  });
});

describe('an app', () => {
  it('that runs is well, with nothing to try', async () => {
    await scene.ok(...push);
    expect((await run('why', 'shop')).stdout).toBe(`Explaining shop ${place}\n\nApp 'shop' runs.\n`);
    expect(await asJson('shop')).toEqual({ kind: 'app', name: 'shop', state: 'well', message: "App 'shop' runs.", events: [], next: [] });
    await scene.ok('stop', 'shop');
    expect(await asJson('shop')).toMatchObject({ state: 'well', message: "App 'shop' is stopped." });
  });

  it('that is scaled to no instances is well, and does not run', async () => {
    await scene.ok(...push, '-i', '0');
    expect(await asJson('shop')).toMatchObject({ state: 'well', message: "App 'shop' is started, and scaled to no instances." });
  });

  it('whose canary is paused is well, with its step and version, and the commands that go on and back', async () => {
    await scene.ok(...push);
    scene.source('b');
    await scene.ok(...push, '--strategy', 'canary', '--instance-steps', '20,50');
    const revision = { change: changeOf(scene.app()), version: 2, deployed: 1, droplets: [] };
    scene.setStatus(kinds.app, nameOf(scene.app()), { revision });
    const message = "App 'shop' runs; the canary deployment of its version 2 is paused at step 1 of 2 (20% of the instances).";
    expect((await run('why', 'shop')).stdout).toBe(
      `Explaining shop ${place}\n\n${message}\n\nversion:   2\n\nTIP:\n   kf continue-deployment shop\n   kf cancel-deployment shop\n`,
    );
    expect(await asJson('shop')).toMatchObject({ state: 'well', version: 2, message });
    // What kept it from its begin is over.
    const lines = { head: [], omitted: 0, tail: [] };
    const hindered: Verdict = {
      ...lines,
      version: 2,
      change: revision.change,
      cause: 'binding-not-ready',
      message: 'No.',
      at: crash.since,
    };
    const metadata = { name: revisionsName(nameOf(scene.app())), namespace: ns };
    await scene.cluster.add(configMapType, { metadata, data: { 'verdict-2': printVerdict(hindered) } });
    expect(await asJson('shop')).toMatchObject({ state: 'well', version: 2, message });
    await scene.ok('restart', 'shop', '--strategy', 'canary');
    const unknown = "App 'shop' runs; its canary deployment is paused at step 1 of 1 (one instance).";
    expect(await asJson('shop')).toMatchObject({ state: 'well', message: unknown });
    // An instance that ended meanwhile is told with it.
    await crashed();
    expect(await asJson('shop')).toMatchObject({
      cause: 'exit-code',
      message: expect.stringMatching(
        /^Instance 0 runs, and ended once, at .*: APP\/PROC\/WEB: Exited with status 7\. App 'shop' runs; its canary/,
      ) as string,
      next: ['kf continue-deployment shop', 'kf cancel-deployment shop'],
    });
  });

  /** The record of events says that instance 0 of web has ended. */
  async function crashed(): Promise<void> {
    const description = 'index: 0, reason: CRASHED, instance: shop-0, exit_description: APP/PROC/WEB: Exited with status 7, exit_status: 7';
    const data = { 1: JSON.stringify({ time: new Date().toISOString(), type: 'app.crash', actor: '', description }) };
    await scene.cluster.add(configMapType, { metadata: { name: eventsName(nameOf(scene.app())), namespace: ns }, data });
  }

  it('whose instance ended once and runs again is well, with the cause and the command', async () => {
    await scene.ok(...push);
    await crashed();
    expect(await asJson('shop')).toMatchObject({
      state: 'well',
      cause: 'exit-code',
      message: expect.stringMatching(/^Instance 0 runs, and ended once, at .*Z: APP\/PROC\/WEB: Exited with status 7\.$/) as string,
      next: ['kf logs shop --recent'],
    });
  });

  it.each([-60, 60])(
    'whose instance ended is explained by the clock of the cluster, which is %i min ahead of that of the user',
    async (minutes) => {
      await scene.ok(...push);
      scene.cluster.server.aheadMs = minutes * 60_000;
      const at = (ago: number): string => new Date(Date.now() + (minutes - ago) * 60_000).toISOString();
      await evicted(`${nameOf(scene.app())}-3b5-0123456789-1`, full, at(11));
      expect(await asJson('shop')).toMatchObject({ state: 'well', message: "App 'shop' runs." });
      await evicted(`${nameOf(scene.app())}-3b5-0123456789-2`, full, at(1));
      expect(await asJson('shop')).toMatchObject({ state: 'well', cause: 'disk', instance: 2 });
    },
  );

  it('whose instance was evicted a moment ago is well, with the cause, before the controller has recorded it', async () => {
    await scene.ok(...push);
    await evicted('another-3b5-0123456789-1', 'The node was low on resource: memory.');
    expect(await asJson('shop')).toMatchObject({ state: 'well', message: "App 'shop' runs." });
    await evicted(`${nameOf(scene.app())}-3b5-0123456789-1`);
    // As many as are shown, and newer.
    for (const index of [2, 3, 4, 5, 6, 7, 8, 9])
      await warning(`${nameOf(scene.app())}-3b5-0123456789-${index}`, 'Unhealthy', 'no answer', new Date(Date.now() + 1_000).toISOString());
    expect(await asJson('shop')).toMatchObject({
      state: 'well',
      cause: 'disk',
      instance: 1,
      next: ['kf scale shop -k DISK', 'kf logs shop --recent'],
    });
  });

  it('whose instance of another process was evicted is explained by that process', async () => {
    await scene.ok(...push, '-m', '64M');
    const [app, guid, hash] = [nameOf(scene.app()), nameOf(scene.cluster.memory.all(kinds.process)[0]), '0123456789'];
    const rollout = { generations: [{ process: 'worker', hash, state: 'Current', instances: 1, ready: 1 }] };
    await scene.cluster.memory.mergePatch(kinds.process, ns, guid, { spec: { processType: 'worker' } });
    await scene.cluster.memory.mergePatch(kinds.process, ns, guid, { status: { rollout } }, { subresource: 'status' });
    await evicted(`${statefulSetName(app, ns, guid, hash)}-1`);
    expect(await asJson('shop')).toMatchObject({
      state: 'well',
      message: expect.stringMatching(/^Instance 1 of 'worker' runs, and ended once, at /) as string,
      process: 'worker',
      instance: 1,
      next: ['kf scale shop --process worker -k DISK', 'kf logs shop --recent'],
    });
  });

  it('whose instance crashed later is explained by the instance', async () => {
    await scene.ok(...push, '-m', '64M');
    const details = 'The app used more memory than its limit of 64M and was ended; -m gives it more.';
    scene.setStatus(kinds.process, nameOf(scene.cluster.memory.all(kinds.process)[0]), {
      instancesStatus: {
        '0': { state: 'RUNNING' },
        '1': { state: 'CRASHED', reason: 'OutOfMemory', cause: 'oom', details, pod: 'shop-0123456789-1', exitCode: 137 },
      },
    });
    const explained = await asJson('shop');
    expect(explained).toMatchObject({ state: 'failed', cause: 'oom', process: 'web', instance: 1, exitCode: 137 });
    expect(explained.message).toBe(`Instance 1 of 'web' does not run: ${details}`);
    expect(explained.next[0]).toBe('kf scale shop -m 128M');
  });

  it('with a code that this kf does not know has the sentence, and the cause is unknown', async () => {
    scene.failure = { ...crash, cause: 'of-tomorrow', message: 'Something new.' };
    await run(...push);
    expect(await asJson('shop')).toMatchObject({ state: 'failed', cause: 'unknown', message: 'Something new.' });
  });

  it.each([
    ['NoBuildpackMatched', 'no-buildpack', ['kf buildpacks', 'kf logs shop --recent']],
    ['OutOfMemory', 'build-oom', ['kf restage shop', 'kf logs shop --recent', again]],
    [undefined, 'unknown', ['kf logs shop --recent', again]],
  ])('whose build fails (%s) ends the push with the cause and the advice of kf why', async (reason, cause, hints) => {
    scene.droplet = 'fails';
    scene.buildFailure = reason;
    const { error } = JSON.parse((await run(...push, '--json')).stdout) as { error: { details: object; hints: string[] } };
    expect(error).toMatchObject({ details: { cause }, hints });
    expect(await asJson('shop', '--build')).toMatchObject({ cause, next: hints.filter((hint) => hint !== again) });
  });

  it('whose newest build failed is explained by the build, until another change', async () => {
    await scene.ok(...push);
    scene.droplet = 'fails';
    scene.source('b');
    await run(...push);
    const build = nameOf(scene.builds().at(-1));
    scene.setStatus(kinds.build, build, { failure: { reason: 'NoBuildpackMatched', lane: 'build', exitCode: 20 } });
    const expected = {
      kind: 'build',
      name: build,
      state: 'failed',
      cause: 'no-buildpack',
      message: 'Error staging application: It broke.',
      exitCode: 20,
    };
    expect(await asJson('shop')).toMatchObject(expected);
    expect(await asJson('shop', '--build')).toMatchObject({ ...expected, next: ['kf buildpacks', 'kf logs shop --recent'] });
    scene.droplet = {};
    await scene.ok(...push);
    expect(await asJson('shop')).toMatchObject({ kind: 'app', state: 'well' });
    expect(await asJson('shop', '--build')).toMatchObject({ kind: 'build', state: 'well' });
  });

  it('is not explained by a wrong command line', async () => {
    for (const argv of [[], ['shop', '--route', 'a.b'], ['shop', '--build', '--task', '1'], ['--service', 'db', '--route', 'a.b']])
      expect((await run('why', ...argv)).code, argv.join(' ')).toBe(1);
    expect(await run('why', 'shpo')).toMatchObject({ code: 1, stderr: expect.stringContaining("App 'shpo' not found.") });
  });
});

describe('a revision', () => {
  /** As the controller keeps it: revision 1 serves, revision 2 failed. */
  async function twoRevisions(): Promise<string> {
    await scene.ok(...push);
    const guid = nameOf(scene.app());
    const record = (version: number) =>
      printRecord({
        version,
        guid: `g${String(version)}`,
        description: 'x',
        droplet: `d${String(version)}`,
        created: '2026-08-07T10:16:20Z',
      });
    const kept: Verdict = {
      ...{ version: 2, change: 'then', cause: 'exit-code', message: crash.message, at: crash.since, process: 'web', pod: crash.pod },
      ...{ container: 'application', exitCode: 7, head: crash.logHead, omitted: 3, tail: crash.logTail },
    };
    const data = { '1': record(1), '2': record(2), 'verdict-2': printVerdict(kept) };
    await scene.cluster.add(configMapType, { metadata: { name: `${guid}-revisions`, namespace: ns }, data });
    return guid;
  }

  it('that failed is explained by what is kept, with what it has changed, until a newer one serves', async () => {
    const guid = await twoRevisions();
    const generations = [{ process: 'web', hash: '0123456789', state: 'Current', instances: 1, ready: 1 }];
    scene.setStatus(kinds.app, guid, { revision: { change: 'x', version: 2, deployed: 1, droplets: [] }, deployment: { generations } });
    const expected = {
      state: 'failed', cause: 'exit-code', message: crash.message, version: 2, process: 'web', instance: 2, exitCode: 7, since: crash.since,
      log: { head: crash.logHead, omitted: 3, tail: crash.logTail },
      changed: { from: 1, to: 2, changes: [{ what: 'droplet', change: 'changed', from: 'd1', to: 'd2' }] },
    }; // prettier-ignore
    expect(await asJson('shop')).toMatchObject(expected);
    expect(await asJson('shop', '--version', '2')).toMatchObject(expected);
    expect((await run('why', 'shop')).stdout).toContain('changed since version 1, which served last:\n   droplet   changed   d1 -> d2\n');
    expect(await asJson('shop', '--version', '1')).toMatchObject({ state: 'well', message: "Revision 1 of app 'shop' serves." });
    scene.setStatus(kinds.app, guid, { revision: { change: 'x', version: 3, deployed: 3, droplets: [] } });
    expect(await asJson('shop')).toMatchObject({ state: 'well' });
    expect(await asJson('shop', '--version', '2')).toMatchObject({ cause: 'exit-code', version: 2 });
    expect(await run('why', 'shop', '--version', '9')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Revision '9' not found"),
    });
  });

  it('that failed has the digests of its droplets shortened for people, and whole in the document', async () => {
    const guid = await twoRevisions();
    scene.setStatus(kinds.app, guid, { revision: { change: 'x', version: 2, deployed: 1, droplets: [] } });
    const image = (digit: string): string => `registry.example.com/kf/shop@sha256:${digit.repeat(64)}`;
    const record = { guid: 'g', description: 'x', created: '2026-08-07T10:16:20Z' };
    const entries = [1, 2].map((version) => [version, printRecord({ ...record, version, droplet: 'd', image: image(String(version)) })]);
    await scene.cluster.memory.mergePatch(configMapType, ns, `${guid}-revisions`, { data: Object.fromEntries(entries) as object });
    const shown = `   droplet   changed   sha256:${'1'.repeat(12)} -> sha256:${'2'.repeat(12)}\n`;
    expect((await run('why', 'shop')).stdout).toContain(`changed since version 1, which served last:\n${shown}`);
    expect((await asJson('shop')).changed?.changes).toEqual([{ what: 'droplet', change: 'changed', from: image('1'), to: image('2') }]);
  });

  it('is explained to a user who may read neither Events nor pods nor Secrets', async () => {
    const guid = await twoRevisions();
    scene.setStatus(kinds.app, guid, { revision: { change: 'x', version: 2, deployed: 1, droplets: [] } });
    for (const resource of ['events', 'pods', 'secrets'])
      scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/${resource}.*`, (call) =>
        call.fail(403, 'Forbidden', `${resource} is forbidden`),
      );
    expect(await asJson('shop')).toMatchObject({ cause: 'exit-code', log: { tail: crash.logTail }, events: [] });
  });
});

describe('parts of a space', () => {
  it('a task, by its exit code', async () => {
    await scene.ok(...push);
    const condition = { type: 'Failed', status: 'True', reason: 'Error', message: 'Failed with exit code: 139', lastTransitionTime: '' };
    await scene.cluster.add(kinds.task, {
      metadata: { name: 'task-guid', namespace: ns, labels: { 'korifi.cloudfoundry.org/app-guid': nameOf(scene.app()) } },
      spec: { appRef: { name: nameOf(scene.app()) }, displayName: 'migrate', command: 'x' },
    });
    scene.setStatus(kinds.task, 'task-guid', { sequenceId: 1, conditions: [condition] });
    expect(await asJson('shop', '--task', '1')).toMatchObject({ kind: 'task', name: 'migrate', state: 'failed', cause: 'signal' });
    expect((await run('why', 'shop', '--task', '2')).stderr).toContain('Task sequence ID 2 not found.');
  });

  it('a route, by what its gateway says', async () => {
    await scene.ok(...push);
    const route = scene.cluster.memory.all(kinds.route)[0];
    const url = route?.status?.uri ?? 'shop.apps.example.com';
    const said = (type: string, status: string, reason: string) => ({
      ...{ type, status, reason, message: 'It does not answer.', lastTransitionTime: '' },
      observedGeneration: route?.metadata.generation,
    });
    const condition = (status: string, reason: string) => ({
      conditions: [said('Claimed', 'True', 'Claimed'), said('Programmed', status, reason)],
    });
    scene.setStatus(kinds.route, nameOf(route), condition('False', 'NotAnswered'));
    expect(await asJson('--route', url)).toMatchObject({
      kind: 'route',
      state: 'failed',
      cause: 'gateway-down',
      message: 'It does not answer.',
    });
    scene.setStatus(kinds.route, nameOf(route), condition('True', 'Loaded'));
    expect(await asJson('--route', url)).toMatchObject({ state: 'well' });
    expect((await run('why', '--route', `no-such.${url.split('.').slice(1).join('.')}`)).stderr).toContain('not found');
  });

  it('a service, by its own condition or that of a binding', async () => {
    const condition = {
      type: 'Ready',
      status: 'False',
      reason: 'CredentialsSecretNotAvailable',
      message: 'The Secret is missing.',
      lastTransitionTime: '',
    };
    await scene.cluster.add(kinds.serviceInstance, {
      metadata: { name: 'db-guid', namespace: ns },
      spec: { displayName: 'db', type: 'user-provided', secretName: 'db-guid', planGuid: '' },
    });
    expect(await asJson('--service', 'db')).toMatchObject({ kind: 'service', state: 'well' });
    scene.setStatus(kinds.serviceInstance, 'db-guid', { conditions: [condition] });
    expect(await asJson('--service', 'db')).toMatchObject({ state: 'failed', cause: 'secret-missing', message: 'The Secret is missing.' });
  });
});

it('waits a moment for a controller that has not taken up the change yet', async () => {
  await scene.ok(...push);
  await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), {
    metadata: { annotations: { [annotations.deployId]: 'later' } },
  });
  const taken = setTimeout(() => scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { id: 'later', phase: 'Serving' } }), 300);
  expect(await asJson('shop')).toMatchObject({ state: 'well' });
  clearTimeout(taken);
});
