// Commands that make an app without a source, rename it, end one instance, and show and set its health checks.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { CFProcess } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const where = 'in org example-org / space example-space as alice';
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const guid = (): string => scene.app().metadata.name ?? '';
const processes = (): CFProcess[] => scene.cluster.memory.all(kinds.process);
const writes = (): number => scene.cluster.memory.writes.length;

/** Acts as the controller: answers each new name of an app with this state of its claim. */
function judgeNames(status: 'True' | 'False'): void {
  const { memory } = scene.cluster;
  memory.intercept = (verb, { plural }, name) => {
    if (plural !== kinds.app.plural || (verb !== 'create' && verb !== 'patch')) return;
    setTimeout(() => {
      const { generation } = memory.peek(kinds.app, ns, name)?.metadata ?? {};
      const claimed = { type: 'Claimed', status, reason: 'x', message: '', lastTransitionTime: '', observedGeneration: generation };
      scene.setStatus(kinds.app, name, { conditions: [claimed] });
    }, 5);
  };
}

describe('create-app', () => {
  it('makes a stopped app with its environment and its web process, once', async () => {
    const made = await run('create-app', 'shop');
    expect(made).toMatchObject({ code: 0, stdout: `Creating app shop ${where}...\nOK\n\n` });
    expect(scene.app().spec).toMatchObject({ displayName: 'shop', desiredState: 'STOPPED', lifecycle: { type: 'buildpack' } });
    expect(processes().map(({ spec }) => [spec.processType, spec.desiredInstances, spec.memoryMB])).toEqual([['web', 1, 256]]);
    expect(scene.cluster.memory.peek(secretType, ns, scene.app().spec.envSecretName ?? '')).toBeDefined();
    const before = writes();
    const again = await run('create-app', 'Shop');
    expect(again).toMatchObject({ code: 0, stdout: `Creating app Shop ${where}...\nApp 'shop' already exists.\nOK\n\n` });
    expect(JSON.parse((await run('create-app', 'shop', '--json')).stdout)).toMatchObject({
      result: { name: 'shop', guid: guid(), created: false },
    });
    expect(writes()).toBe(before);
  });

  it('is followed by a push, which uses its buildpacks and settings', async () => {
    await scene.ok('create-app', 'shop', '-b', 'kf/nodejs', '--app-type', 'cnb');
    expect(scene.app().spec.lifecycle.data.buildpacks).toEqual(['kf/nodejs']);
    await scene.ok('set-env', 'shop', 'COLOUR', 'green');
    await scene.ok('push', 'shop', '-p', 'app');
    expect([scene.app().spec.desiredState, scene.cluster.memory.all(kinds.app).length]).toEqual(['STARTED', 1]);
    expect(scene.variablesOf(scene.builds()[0])).toMatchObject({ COLOUR: 'green' });
  });

  it('--app-type docker makes an app for images', async () => {
    await scene.ok('create-app', 'shop', '--app-type', 'docker');
    expect(scene.app().spec.lifecycle.type).toBe('docker');
    await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1');
  });

  it('refuses what cannot be, and creates nothing', async () => {
    const refused: [string[], RegExp][] = [
      [['create-app'], /the required argument `APP_NAME` was not provided/],
      [['create-app', 'my.shop'], /consists of letters, digits/],
      [['create-app', 'shop', '--app-type', 'jar'], /--app-type must be "buildpack" or "docker" or "cnb"/],
      [['create-app', 'shop', '--app-type', 'docker', '-b', 'kf/nodejs'], /cannot be used together: --app-type docker, --buildpack, -b/],
      [['create-app', 'shop', '-b', 'ruby'], /The builder has no buildpack 'ruby'/],
      [['create-app', 'shop', '-b', 'default', '-b', 'kf/nodejs'], /cannot have null\/default option/],
    ];
    for (const [argv, why] of refused) {
      const refusal = await run(...argv);
      expect(refusal.code, argv.join(' ')).toBe(1);
      expect(refusal.stderr).toMatch(why);
    }
    expect(scene.cluster.memory.all(kinds.app)).toEqual([]);
  });

  it('that loses its name to another app leaves nothing behind', async () => {
    judgeNames('False');
    expect(await run('create-app', 'shop')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("App 'shop' already exists.\nOK") as string,
    });
    expect(scene.cluster.memory.all(kinds.app)).toEqual([]);
  });
});

describe('rename', () => {
  beforeEach(async () => void (await scene.ok('create-app', 'shop')));

  it('changes the name and keeps the app', async () => {
    judgeNames('True');
    const before = guid();
    const renamed = await run('rename', 'shop', 'shop-old');
    expect(renamed).toMatchObject({ code: 0, stdout: `Renaming app shop to shop-old ${where}...\nOK\n\n` });
    expect([scene.app().spec.displayName, guid()]).toEqual(['shop-old', before]);
    expect((await run('app', 'shop')).code).toBe(1);
    const capitals = await run('rename', 'shop-old', 'Shop-Old', '--json');
    expect(JSON.parse(capitals.stdout)).toMatchObject({ result: { name: 'Shop-Old', formerName: 'shop-old', guid: before } });
  });

  it('to a taken name fails and changes nothing', async () => {
    await scene.ok('create-app', 'store');
    const before = writes();
    const refused = await run('rename', 'shop', 'Store');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("App with the name 'store' already exists.")]);
    expect(refused.stdout).toMatch(/FAILED\n$/);
    expect(writes()).toBe(before);
  });

  it('to a name that another app gets first gives the former name back', async () => {
    judgeNames('False');
    const refused = await run('rename', 'shop', 'store');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("App with the name 'store' already exists.")]);
    expect(scene.app().spec.displayName).toBe('shop');
  });

  it('of an unknown app, without a new name, and to a text that is no name fails', async () => {
    expect((await run('rename', 'chop', 'other')).stderr).toContain("App 'chop' not found.");
    expect((await run('rename', 'shop')).stderr).toContain('the required argument `NEW_APP_NAME` was not provided');
    expect((await run('rename', 'shop', 'a b')).stderr).toContain('consists of letters, digits');
  });
});

it('a user without the right gets the right that lacks, and nothing is changed', async () => {
  await scene.ok('create-app', 'shop');
  const web = processes()[0]?.metadata.name ?? '';
  const marks = { [labels.appGuid]: guid(), [labels.guid]: web, [labels.podIndex]: '0' };
  await scene.cluster.add(podType, { metadata: { name: 'web-0', namespace: ns, labels: marks } });
  scene.cluster.server.on('(POST|PATCH|DELETE) .*/(cfapps|cfprocesses|pods)(/.*)?', (call) => {
    call.fail(403, 'Forbidden', 'User "alice" cannot do this');
  });
  const before = writes();
  const commands = ['create-app other', 'rename shop other', 'restart-app-instance shop 0', 'set-health-check shop process'];
  for (const command of commands) {
    const refused = JSON.parse((await run(...command.split(' '), '--json')).stdout) as { error: { code: string } };
    expect(refused.error.code, command).toBe('forbidden');
  }
  expect(writes()).toBe(before);
});

describe('restart-app-instance', () => {
  const addPod = async (name: string, process: string, index: number): Promise<void> => {
    const marks = { [labels.appGuid]: guid(), [labels.guid]: process, [labels.podIndex]: String(index) };
    await scene.cluster.add(podType, { metadata: { name, namespace: ns, labels: marks } });
  };
  const pods = (): string[] => scene.cluster.memory.all(podType).map(({ metadata }) => metadata.name ?? '');

  beforeEach(async () => {
    await scene.ok('create-app', 'shop');
    const [web] = processes();
    await addPod('web-0', web?.metadata.name ?? '', 0);
    await addPod('web-1', web?.metadata.name ?? '', 1);
  });

  it('deletes the pod of that index by its uid, and no other', async () => {
    const uid = scene.cluster.memory.peek(podType, ns, 'web-1')?.metadata.uid;
    const ended = await run('restart-app-instance', 'shop', '1');
    expect(ended).toMatchObject({ code: 0, stdout: `Restarting instance 1 of process web of app shop ${where}...\nOK\n\n`, stderr: '' });
    expect(pods()).toEqual(['web-0']);
    const [call] = scene.cluster.server.callsOf('DELETE .*/pods/.*');
    expect(JSON.parse(call?.body.toString() ?? '')).toMatchObject({ preconditions: { uid } });
  });

  it('--process ends an instance of that process', async () => {
    const spec = { ...processes()[0]?.spec, processType: 'worker', appRef: { name: guid() } } as CFProcess['spec'];
    await scene.cluster.add(kinds.process, { metadata: { name: 'worker', namespace: ns, labels: { [labels.appGuid]: guid() } }, spec });
    await addPod('worker-0', 'worker', 0);
    await scene.ok('restart-app-instance', 'shop', '0', '--process', 'worker');
    expect(pods()).toEqual(['web-0', 'web-1']);
  });

  it('of an instance that is being replaced says so, and is done', async () => {
    const spec = { desiredState: 'STARTED' };
    await scene.cluster.memory.mergePatch(kinds.app, ns, guid(), { spec });
    await scene.cluster.memory.delete(podType, ns, 'web-0');
    expect(await run('restart-app-instance', 'shop', '0')).toMatchObject({
      ...{ code: 0, stderr: 'Instance 0 of process web is being replaced already.\n' },
    });
    expect(pods()).toEqual(['web-1']);
  });

  it('of what is not there fails and deletes nothing', async () => {
    const refused: [string[], string][] = [
      [['shop', '7'], 'Instance 7 of process web not found'],
      [['shop', '0', '--process', 'worker'], 'Process worker not found'],
      [['shop', 'first'], "Incorrect Usage: invalid argument for flag 'INDEX' (expected int >= 0)"],
      [['chop', '0'], "App 'chop' not found."],
      [['shop'], 'the required argument `INDEX` was not provided'],
    ];
    for (const [argv, why] of refused) {
      const refusal = await run('restart-app-instance', ...argv);
      expect([refusal.code, refusal.stderr], argv.join(' ')).toEqual([1, expect.stringContaining(why)]);
    }
    expect(pods()).toEqual(['web-0', 'web-1']);
  });
});

describe('health checks', () => {
  const web = (): CFProcess['spec'] | undefined => processes().find(({ spec }) => spec.processType === 'web')?.spec;
  const held = (): string | undefined => processes()[0]?.metadata.annotations?.[annotations.held];

  beforeEach(async () => void (await scene.ok('create-app', 'shop')));

  it('are shown in the table of cf', async () => {
    const shown = await run('get-health-check', 'shop');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toBe(
      [
        `Getting health check type for app shop ${where}...`,
        '',
        'process   health check   endpoint (for http)   invocation timeout',
        'web       port                                 1',
        '',
      ].join('\n'),
    );
    const readiness = (await run('get-readiness-health-check', 'shop')).stdout.split('\n').map((text) => text.trimEnd());
    expect(readiness).toEqual([
      `Getting readiness health check type for app shop ${where}...`,
      '',
      'process   type      endpoint (for http)   invocation timeout   interval',
      'web       process',
      '',
    ]);
    expect(JSON.parse((await run('get-readiness-health-check', 'shop', '--json')).stdout)).toMatchObject({
      result: { app: 'shop', processes: [{ process: 'web', type: 'process' }] },
    });
  });

  it('of an app without processes are none', async () => {
    for (const { metadata } of processes()) await scene.cluster.memory.delete(kinds.process, ns, metadata.name ?? '');
    expect((await run('get-health-check', 'shop')).stdout).toContain('\n\nApp has no processes\n');
  });

  it('are set, and the endpoint goes with http', async () => {
    const set = await run('set-health-check', 'shop', 'http', '--endpoint', '/health', '--invocation-timeout', '7');
    expect(set).toMatchObject({ code: 0, stdout: `Updating health check type for app shop process web ${where}...\n\nOK\n\n`, stderr: '' });
    expect(web()?.healthCheck).toEqual({
      type: 'http',
      data: { httpEndpoint: '/health', invocationTimeoutSeconds: 7, timeoutSeconds: 60 },
    });
    expect((await run('get-health-check', 'shop')).stdout).toContain('web       http           /health               7\n');
    await scene.ok('set-health-check', 'shop', 'process');
    expect(web()?.healthCheck).toEqual({ type: 'process', data: { invocationTimeoutSeconds: 7, timeoutSeconds: 60 } });
    await scene.ok('set-health-check', 'shop', 'http');
    expect(web()?.healthCheck.data.httpEndpoint).toBe('/');
    expect(held()).toBeUndefined();
  });

  it('of a started app wait for the restart, and kf says so', async () => {
    await scene.ok('push', 'shop', '-p', 'app');
    const set = await run('set-health-check', 'shop', 'process');
    expect(set.stdout).toMatch(/OK\n\nTIP: An app restart is required for the change to take effect\.\n$/);
    const { [annotations.deployId]: deployId, [annotations.appRev]: rev } = scene.app().metadata.annotations ?? {};
    expect(held()).toBe(`${rev}/${deployId}`);
  });

  it('of --process go to that process', async () => {
    const spec = { ...web(), processType: 'worker', appRef: { name: guid() } } as CFProcess['spec'];
    await scene.cluster.add(kinds.process, { metadata: { name: 'worker', namespace: ns, labels: { [labels.appGuid]: guid() } }, spec });
    await scene.ok('set-health-check', 'shop', 'process', '--process', 'worker');
    expect(processes().map((process) => [process.spec.processType, process.spec.healthCheck.type])).toEqual([
      ['web', 'port'],
      ['worker', 'process'],
    ]);
  });

  it('that cannot be are refused, and nothing is changed', async () => {
    const before = writes();
    const refused: [string[], string][] = [
      [['shop'], 'the required argument `HEALTH_CHECK_TYPE` was not provided'],
      [['shop', 'tcp'], 'HEALTH_CHECK_TYPE must be "http" or "port" or "process"'],
      [['shop', 'port', '--endpoint', '/x'], "Health check type must be 'http' to set a health check HTTP endpoint."],
      [['shop', 'http', '--endpoint', 'x'], "--endpoint must begin with '/'"],
      [['shop', 'http', '--invocation-timeout', '0'], "invalid argument for flag '--invocation-timeout' (expected int >= 1)"],
      [['shop', 'http', '--process', 'worker'], 'Process worker not found'],
      [['chop', 'http'], "App 'chop' not found."],
    ];
    for (const [argv, why] of refused) {
      const refusal = await run('set-health-check', ...argv);
      expect([refusal.code, refusal.stderr], argv.join(' ')).toEqual([1, expect.stringContaining(why)]);
    }
    expect(writes()).toBe(before);
  });
});
