// `why --route`: which apps answer behind a route that the gateway has loaded.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { WhyDetails } from '../../../src/lib/api/results.ts';
import type { CFProcessStatus } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests } from '../../support/cli.ts';
import { nameOf, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', 'shop', '-p', 'app', '-m', '64M'];
const asJson = async (...argv: string[]): Promise<WhyDetails> => {
  const { code, stdout, stderr } = await scene.cli.run(['why', ...argv, '--json']);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { result: WhyDetails }).result;
};
const processStatus = (status: CFProcessStatus): void =>
  scene.setStatus(kinds.process, nameOf(scene.cluster.memory.all(kinds.process)[0]), status);

const good = '0123456789';
const crashed = { state: 'CRASHED' as const, reason: 'Crashed', cause: 'exit-code', exitCode: 7, pod: `shop-${good}-0` };

describe('a route that the gateway has loaded', () => {
  const url = 'shop.apps.localhost';
  const running = { instancesStatus: { '0': { state: 'RUNNING' as const } } };

  it('fails when no instance of its app runs, and is well when one does', async () => {
    await scene.ok(...push);
    processStatus({ instancesStatus: { '0': { ...crashed, generation: good } } });
    expect(await asJson('--route', url)).toMatchObject({
      kind: 'route',
      state: 'failed',
      cause: 'not-serving',
      message: "No instance answers: the route leads to app 'shop', of which 0 of 1 instances run.",
      next: ['kf why shop'],
    });
    processStatus(running);
    expect(await asJson('--route', url)).toMatchObject({ state: 'well', message: 'The gateway has loaded the route.' });
  });

  it('waits for an app that is stopped, and fails for one that is scaled to 0', async () => {
    await scene.ok(...push, '-i', '0');
    expect(await asJson('--route', url)).toMatchObject({
      state: 'failed',
      message: "No instance answers: the route leads to app 'shop', which is scaled to 0 instances.",
      next: ['kf scale shop -i 1', 'kf why shop'],
    });
    await scene.ok('stop', 'shop');
    const stopped = await asJson('--route', url);
    expect(stopped).toMatchObject({
      state: 'waiting',
      message: "No instance answers: the route leads to app 'shop', which is stopped.",
      next: ['kf start shop'],
    });
    expect(stopped).not.toHaveProperty('cause');
  });

  it.each([
    ['free', '', 'apps.localhost --hostname free'],
    ['free', '/Cart', 'apps.localhost --hostname free --path /Cart'],
    ['free', '/a$b', "apps.localhost --hostname free --path '/a$b'"],
  ])('waits for an app when it leads to none: %s%s', async (host, path, place) => {
    await scene.ok('create-route', 'apps.localhost', '--hostname', host, ...(path === '' ? [] : ['--path', path]));
    const explained = await asJson('--route', `${host}.apps.localhost${path}`);
    expect(explained).toMatchObject({ state: 'waiting', message: 'The route leads to no app.', next: [`kf map-route APP ${place}`] });
    expect(explained).not.toHaveProperty('cause');
  });

  it('waits for an app again when its only one is unmapped', async () => {
    await scene.ok(...push);
    processStatus(running);
    await scene.ok('unmap-route', 'shop', 'apps.localhost', '-n', 'shop');
    expect(await asJson('--route', url)).toMatchObject({
      state: 'waiting',
      message: 'The route leads to no app.',
      next: ['kf map-route APP apps.localhost --hostname shop'],
    });
  });

  /** The controller has asked the apps behind the route as it was at this change, with these ports and protocols, and one did not answer. */
  function notAnswered({ later = 0, ...used }: { later?: number; port?: number; protocol?: 'http1' | 'http2' }): void {
    const route = scene.cluster.memory.all(kinds.route)[0];
    const conditions = ['Claimed', 'Programmed', 'Ready'].map((type) => ({
      ...{ type, status: 'True', reason: type === 'Programmed' ? 'AppDoesNotAnswer' : type, message: 'The gateway has loaded revision x.' },
      ...{ lastTransitionTime: '', observedGeneration: (route?.metadata.generation ?? 0) - later },
    }));
    const destinations = route?.spec.destinations?.map((one) => ({ ...one, ...used }));
    scene.setStatus(kinds.route, nameOf(route), { conditions, destinations });
  }

  it('says that its app did not answer when it was mapped, with the port and protocol that were used', async () => {
    await scene.ok(...push);
    processStatus(running);
    notAnswered({ port: 9999, protocol: 'http1' });
    const message = (where: string) =>
      `The gateway has loaded the route. After its last change, app 'shop' on ${where} gave errors or no answer for some seconds. If that lasts, look at port and protocol.`;
    const explained = await asJson('--route', url);
    expect(explained).toMatchObject({ state: 'well', message: message('port 9999 (protocol http1)'), next: ['kf logs shop --recent'] });
    expect(explained).not.toHaveProperty('cause');
    notAnswered({ port: 8080, protocol: 'http2' });
    expect(await asJson('--route', url)).toMatchObject({ message: message('port 8080 (protocol http2)') });
    notAnswered({ port: 9999, later: 1 });
    expect(await asJson('--route', url)).toMatchObject({ state: 'well', message: 'The gateway has loaded the route.', next: [] });
  });

  describe('and that leads to two apps', () => {
    const ofApp = (name: string, status: CFProcessStatus): void => {
      const guid = nameOf(scene.cluster.memory.all(kinds.app).find(({ spec }) => spec.displayName === name));
      const process = scene.cluster.memory.all(kinds.process).find(({ spec }) => spec.appRef.name === guid);
      scene.setStatus(kinds.process, nameOf(process), status);
    };

    beforeEach(async () => {
      await scene.ok(...push);
      await scene.ok('push', 'broken', '-p', 'app', '-m', '64M', '--no-route');
      await scene.ok('map-route', 'broken', 'apps.localhost', '-n', 'shop');
      ofApp('shop', running);
    });

    it('is well and names the one that is down, and not one that somebody has stopped', async () => {
      ofApp('broken', { instancesStatus: { '0': { ...crashed, generation: good } } });
      const explained = await asJson('--route', url);
      expect(explained).toMatchObject({
        state: 'well',
        message: "The gateway has loaded the route. It also leads to app 'broken', of which 0 of 1 instances run.",
        next: ['kf why broken'],
      });
      expect(explained).not.toHaveProperty('cause');
      await scene.ok('stop', 'broken');
      expect(await asJson('--route', url)).toMatchObject({ state: 'well', message: 'The gateway has loaded the route.', next: [] });
    });

    it('says that one did not answer when it was mapped, and blames none of them', async () => {
      ofApp('broken', running);
      notAnswered({ port: 9999, protocol: 'http1' });
      const which =
        "After its last change, one of its apps (app 'shop' on port 9999 (protocol http1), or app 'broken' on port 9999 (protocol http1)) gave errors";
      const logs = ['kf logs shop --recent', 'kf logs broken --recent'];
      expect(await asJson('--route', url)).toMatchObject({ state: 'well', message: expect.stringContaining(which) as string, next: logs });
      ofApp('broken', { instancesStatus: { '0': { ...crashed, generation: good } } });
      const { message, next } = await asJson('--route', url);
      expect([message.includes(which), message.includes("It also leads to app 'broken', of which 0 of 1 instances run.")]).toEqual([
        true,
        true,
      ]);
      expect(next).toEqual(['kf why broken', ...logs]);
    });
  });
});
