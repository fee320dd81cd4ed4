import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GatePort } from '../../../src/controller/gate/scopes.ts';
import { registryKeyId, registryPassword } from '../../../src/lib/api/registry-credentials.ts';
import { ask, basic, key, now, openGate } from './support.ts';
import type { Scene } from './support.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const mine = 'space-1';
const requests = (repository: string): [string, string][] => [
  ['GET', `/v2/${repository}/blobs/${digest}`],
  ['HEAD', `/v2/${repository}/blobs/${digest}`],
  ['GET', `/v2/${repository}/manifests/${digest}`],
  ['HEAD', `/v2/${repository}/manifests/latest`],
  ['GET', `/v2/${repository}/tags/list`],
  ['GET', `/v2/${repository}/blobs/uploads/4b1f-2`],
  ['POST', `/v2/${repository}/blobs/uploads/`],
  ['PATCH', `/v2/${repository}/blobs/uploads/4b1f-2?_state=s`],
  ['PUT', `/v2/${repository}/blobs/uploads/4b1f-2?_state=s&digest=${digest}`],
  ['PUT', `/v2/${repository}/manifests/latest`],
  ['DELETE', `/v2/${repository}/manifests/${digest}`],
  ['DELETE', `/v2/${repository}/blobs/${digest}`],
  ['DELETE', `/v2/${repository}/blobs/uploads/4b1f-2`],
];
const later = now + 3600;
const users = { pull: `pull.${mine}.${later}`, push: `push.${mine}.${later}`, build: `build.${mine}.app-1.${later}` };

describe('the gate', () => {
  let scene: Scene;
  beforeEach(async () => void (scene = await openGate()));
  afterEach(() => scene.close());

  const status = async (port: GatePort, method: string, path: string, user?: string): Promise<number> =>
    (await ask(scene.port(port), { method, path, headers: user === undefined ? {} : { authorization: basic(user) } })).status;

  for (const port of ['push', 'pull'] as const) {
    test(`refuses everything without a credential at the ${port} port`, async () => {
      for (const [method, path] of [
        ...requests(`${mine}/app-1-droplets`),
        ['GET', '/v2/'],
        ['GET', '/v2/_catalog'],
        ['GET', '/metrics'],
        ['GET', '/'],
      ])
        expect([method, path, await status(port, method ?? '', path ?? '')]).toEqual([method, path, 401]);
      expect(scene.seen).toEqual([]);
    });

    for (const user of Object.values(users))
      test(`refuses '${user.split('.')[0]}' of one space every request to another space at the ${port} port`, async () => {
        for (const repository of ['space-2/app-1-droplets', 'space-10/app-1-droplets', 'space-1-/app-1-droplets', 'space/app-1-droplets'])
          for (const [method, path] of requests(repository))
            expect([method, path, await status(port, method, path, user)]).not.toEqual([method, path, 200]);
        expect(scene.seen).toEqual([]);
      });
  }

  test('allows a pull credential to read its space at the pull port and nothing else', async () => {
    for (const [method, path] of requests(`${mine}/app-1-droplets`)) {
      const reads = method === 'GET' || method === 'HEAD';
      expect([method, path, await status('pull', method, path, users.pull)]).toEqual([
        method,
        path,
        reads ? 200 : method === 'DELETE' ? 405 : 403,
      ]);
      expect(await status('push', method, path, users.pull)).toBeGreaterThanOrEqual(403);
    }
  });

  test('allows a push credential to read and upload in its space at the push port, but neither deletes nor the pull port', async () => {
    for (const [method, path] of requests(`${mine}/app-1-packages`)) {
      expect([method, path, await status('push', method, path, users.push)]).toEqual([method, path, method === 'DELETE' ? 405 : 200]);
      expect(await status('pull', method, path, users.push)).toBeGreaterThanOrEqual(403);
    }
  });

  test('allows a push credential to write only repositories of apps, because nobody would delete others', async () => {
    const names = ['other', 'app-1', 'app-1-other', 'a__b-packages', 'packages'];
    const writes = new Set(['POST', 'PATCH', 'PUT']);
    for (const name of names)
      for (const [method, path] of requests(`${mine}/${name}`).filter(([kind]) => writes.has(kind)))
        expect([method, path, await status('push', method, path, users.push)]).toEqual([method, path, 403]);
    expect(scene.seen).toEqual([]);
    for (const kind of ['packages', 'droplets', 'cache'])
      expect(await status('push', 'PUT', `/v2/${mine}/app-1-${kind}/manifests/t`, users.push)).toBe(200);
    expect(await status('push', 'GET', `/v2/${mine}/other/manifests/t`, users.push)).toBe(200);
  });

  test('limits a build credential to the three repositories of its app', async () => {
    for (const suffix of ['packages', 'droplets', 'cache'])
      expect(await status('push', 'PUT', `/v2/${mine}/app-1-${suffix}/manifests/t`, users.build)).toBe(200);
    for (const name of ['app-2-droplets', 'app-1', 'app-1-other', 'app-1-x-droplets', 'app-10-droplets', 'xapp-1-droplets'])
      for (const [method, path] of requests(`${mine}/${name}`))
        expect([path, await status('push', method, path, users.build)]).not.toEqual([path, 200]);
  });

  test.each([
    ['build', 'push', `build.${mine}.app-1`],
    ['push', 'push', `push.${mine}`],
    ['pull', 'pull', `pull.${mine}`],
  ] as const)(
    'ends a %s credential at its second and a minute for clocks that differ, and accepts none without an expiry time',
    async (_, port, user) => {
      const path = `/v2/${mine}/app-1-droplets/manifests/t`;
      expect(await status(port, 'GET', path, `${user}.${now}`)).toBe(200);
      expect(await status(port, 'GET', path, `${user}.${now - 60}`)).toBe(200);
      expect(await status(port, 'GET', path, `${user}.${now - 61}`)).toBe(401);
      expect(await status(port, 'GET', path, user)).toBe(401);
      expect(await status(port, 'GET', path, `${user}.99999999999999`)).toBe(401);
    },
  );

  test('shows its state to the controller at the push port, and allows the controller nothing else', async () => {
    const keeper = `keeper.${later}`;
    const headers = { authorization: basic(keeper) };
    const { status: code, body } = await ask(scene.port('push'), { path: '/kf/status', headers });
    expect([code, JSON.parse(body.toString())]).toEqual([200, expect.objectContaining({ keys: [registryKeyId(key)] })]);
    expect(await status('pull', 'GET', '/kf/status', keeper)).toBe(403);
    for (const [method, path] of [...requests(`${mine}/app-1-droplets`), ['GET', '/v2/'], ['GET', '/v2/_catalog']] as const)
      expect([path, await status('push', method, path, keeper)]).toEqual([path, 403]);
    for (const user of Object.values(users)) expect([403, 404]).toContain(await status('push', 'GET', '/kf/status', user));
    expect(await status('push', 'GET', '/kf/status', `keeper.${now - 100}`)).toBe(401);
    expect(scene.seen).toEqual([]);
  });

  test('accepts credentials that any valid key has signed', async () => {
    const older = Buffer.from('the key before it, long enough...');
    const both = await openGate({ readKeys: () => [key, older] });
    const asks = async (signer: Buffer): Promise<number> =>
      (await ask(both.port('push'), { path: '/v2/', headers: { authorization: basic(users.push, registryPassword(signer, users.push)) } }))
        .status;
    expect([await asks(key), await asks(older), await asks(Buffer.from('a key that was never one, but long'))]).toEqual([200, 200, 401]);
    await both.close();
  });

  test('refuses wrong passwords, passwords of other scopes, empty ones and malformed headers', async () => {
    const path = `/v2/${mine}/app-1-droplets/manifests/t`;
    const other =
      Buffer.from(basic(`push.space-2.${later}`).slice(6), 'base64')
        .toString()
        .split(':')[1] ?? '';
    const headers = [
      basic(users.push, ''),
      basic(users.push, 'x'),
      basic(users.push, other),
      basic(users.push, `${other}\0`),
      'Basic',
      'Basic !!!',
      `Bearer ${other}`,
      basic('admin'),
    ];
    headers.push(
      basic(`push.${mine}/../space-2.${later}`),
      basic(`PUSH.${mine}.${later}`),
      basic(`build.${mine}.${now + 60}`),
      basic('push.'),
      basic(`build.${mine}.app-1.-1`),
    );
    for (const authorization of headers)
      expect([authorization, (await ask(scene.port('push'), { path, headers: { authorization } })).status]).toEqual([authorization, 401]);
  });

  test('uses X-Kf-Authorization before Authorization, and only the first if there are both', async () => {
    const path = `/v2/${mine}/app-1-droplets/manifests/t`;
    const both = (kf: string | string[], plain: string) =>
      ask(scene.port('push'), { path, headers: { 'x-kf-authorization': kf, authorization: plain } });
    expect((await both(basic(users.push), 'Bearer of-the-api-server')).status).toBe(200);
    expect((await both(basic(`push.space-2.${later}`), basic(users.push))).status).toBe(403);
    expect((await both('', basic(users.push))).status).toBe(401);
    expect((await both([basic(users.push), basic(users.push)], basic(users.push))).status).toBe(401);
  });

  test('answers the version check with a Basic challenge or, with any valid credential of that port, with 200', async () => {
    const answer = await ask(scene.port('pull'), { path: '/v2/' });
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Basic realm="kf"']);
    expect(await status('pull', 'GET', '/v2/', users.pull)).toBe(200);
    expect(await status('push', 'GET', '/v2/', users.build)).toBe(200);
    expect(await status('pull', 'GET', '/v2/', users.push)).toBe(403);
  });

  test('refuses everything while it has no key, and follows a new key', async () => {
    let current: Buffer[] = [];
    const keyless = await openGate({ readKeys: () => current });
    const headers = { authorization: basic(users.push) };
    expect((await ask(keyless.port('push'), { path: '/v2/', headers })).status).toBe(401);
    current = [key];
    expect((await ask(keyless.port('push'), { path: '/v2/', headers })).status).toBe(200);
    current = [Buffer.from('another key that is long enough!!')];
    expect((await ask(keyless.port('push'), { path: '/v2/', headers })).status).toBe(401);
    await keyless.close();
  });
});
