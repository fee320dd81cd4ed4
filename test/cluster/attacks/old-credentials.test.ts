// Attacker: a former developer of a space who kept its registry credential, and uses it from a pod of another space.

import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { registryPassword } from '../../../src/lib/api/registry-credentials.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { until } from '../../support/until.ts';

const space = ringEnv('KF_TEST_SPACE_GUID');
const folder = path.resolve('test/fixtures/apps/static-site');
const pullPortUrl = `http://${ringEnv('KF_CLUSTER_ADDRESS')}:32500`;
const app = 'old-credentials';
let kf: Kf;
let admin: Kf;

beforeAll(async () => {
  [kf, admin] = [await Kf.create(), await Kf.create('admin')];
});
afterAll(async () => {
  await kf.run(['delete', app, '-r', '-f']);
  await Promise.all([kf.remove(), admin.remove()]);
});

async function secretText(ns: string, name: string, key: string): Promise<string> {
  const { data } = await kubectlJson<{ data: Record<string, string> }>('get', 'secret', name, '-n', ns);
  return Buffer.from(data[key] ?? '', 'base64').toString();
}

interface Credential {
  username: string;
  password: string;
}

async function pullCredential(): Promise<Credential> {
  const config = JSON.parse(await secretText(space, 'image-registry-credentials', '.dockerconfigjson')) as {
    auths: Record<string, Credential>;
  };
  return Object.values(config.auths)[0] ?? { username: '', password: '' };
}
const pushCredential = async (): Promise<Credential> => ({
  username: await secretText(space, 'kf-registry-push', 'username'),
  password: await secretText(space, 'kf-registry-push', 'password'),
});

const basic = ({ username, password }: Credential): string => `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
const atPullPort = async (credential: Credential): Promise<number> =>
  (await fetch(`${pullPortUrl}/v2/`, { headers: { authorization: basic(credential) } })).status;

const endOf = ({ username }: Credential): number => Number(username.split('.').at(-1));

test('credentials of a space expire, and expired ones or those without an expiry time are refused', async () => {
  const key = Buffer.from(await secretText('kf-system', 'kf-registry-key', 'key'));
  const signed = (username: string): Credential => ({ username, password: registryPassword(key, username) });
  const [pull, push] = [await pullCredential(), await pushCredential()];
  expect([pull.username, push.username]).toEqual([
    expect.stringMatching(new RegExp(`^pull\\.${space}\\.\\d{10}$`)),
    expect.stringMatching(new RegExp(`^push\\.${space}\\.\\d{10}$`)),
  ]);
  expect(await atPullPort(pull)).toBe(200);
  // With a valid signature, as the controller of 0.1.0 made it, and with an expiry time in the past.
  expect(await atPullPort(signed(`pull.${space}`))).toBe(401);
  expect(await atPullPort(signed(`pull.${space}.${Math.floor(Date.now() / 1000) - 3600}`))).toBe(401);
  // An expiry time that somebody changed.
  expect(await atPullPort({ ...pull, username: `pull.${space}.${endOf(pull) + 1}` })).toBe(401);
});

test('a credential that will soon expire is renewed in its Secret, and the next push works', async () => {
  const key = Buffer.from(await secretText('kf-system', 'kf-registry-key', 'key'));
  const username = `push.${space}.${Math.floor(Date.now() / 1000) + 60}`;
  const old = { username, password: registryPassword(key, username) };
  const { metadata } = await kubectlJson<{ metadata: { uid: string } }>('get', 'secret', 'kf-registry-push', '-n', space);
  await kubectl('patch', 'secret', 'kf-registry-push', '-n', space, '-p', JSON.stringify({ stringData: old }));
  await until('the credential to be renewed', async () => (await pushCredential()).username !== old.username);
  const after = await kubectlJson<{ metadata: { uid: string } }>('get', 'secret', 'kf-registry-push', '-n', space);
  // Kubelets that check who may use a pulled image compare the Secret's uid.
  expect(after.metadata.uid).toBe(metadata.uid);
  await kf.ok('push', app, '-p', folder, '-m', '64M');
});

interface Rotated {
  key: string;
  previousKey: string;
  previousEnds: string;
  spaces: number;
}

test('no push fails while the key changes, and credentials of the previous key work until they expire', async () => {
  const before = await pullCredential();
  const pushes = (async (): Promise<number[]> => {
    const codes: number[] = [];
    for (let run = 0; run < 4; run++) codes.push((await kf.run(['push', `${app}-${run}`, '-p', folder, '-m', '64M', '--no-route'])).code);
    return codes;
  })();
  const rotated = await admin.json<Rotated>('rotate', 'registry-key');
  expect(await pushes).toEqual([0, 0, 0, 0]);
  expect(rotated.key).not.toBe(rotated.previousKey);
  const key = Buffer.from(await secretText('kf-system', 'kf-registry-key', 'key'));
  for (const credential of [await pullCredential(), await pushCredential()])
    expect(credential.password).toBe(registryPassword(key, credential.username));
  expect(await atPullPort(await pullCredential())).toBe(200);
  expect((await pullCredential()).password).not.toBe(before.password);
  expect(await atPullPort(before)).toBe(200);
  for (let run = 0; run < 4; run++) await kf.run(['delete', `${app}-${run}`, '-f']);

  const again = await admin.run(['rotate', 'registry-key']);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('The key was changed a short time ago')]);

  // It has expired by the clock of the gate.
  const over = JSON.stringify({ stringData: { 'previous-until': '1' } });
  await kubectl('patch', 'secret', 'kf-registry-key', '-n', 'kf-system', '-p', over);
  await kubectl('annotate', 'pods', '-n', 'kf-system', '-l', 'app=kf-registry', 'looked-at=again', '--overwrite');
  await until('the key before to be refused', async () => (await atPullPort(before)) === 401);
  expect(await atPullPort(await pullCredential())).toBe(200);
});

test('a member of a space cannot change the key', async () => {
  const ran = await kf.run(['rotate', 'registry-key']);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('may not get "secrets" in the namespace "kf-system"')]);
});
