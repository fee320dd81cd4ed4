// The credential for an image that its registry refuses: the build says which one was sent, or that there is none.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { buildBuild, buildPackage } from '../../../src/templates/build.ts';
import { ScriptedRegistry } from '../../support/registry.ts';
import { app, startScene, type BuildScene } from './build-scene.ts';

const author = { changedBy: 'dev', now: new Date() };
const lifecycle = { type: 'docker' as const, data: { stack: '' } };
let scene: BuildScene;
let registry: ScriptedRegistry;
beforeEach(async () => {
  [scene, registry] = await Promise.all([startScene(), ScriptedRegistry.start()]);
  registry.switches.credential = { scheme: 'basic', username: 'bob', password: 'right' };
});
afterEach(() => Promise.all([scene.stop(), registry.stop()]));

/** What a failed build of an image says, of a package with a Secret for that registry host. */
async function said(host: string, password = 'wrong-password'): Promise<string | undefined> {
  const { cluster } = scene;
  const config = JSON.stringify({ auths: { [host]: { username: 'bob', password } } });
  await cluster.create(secretType, {
    metadata: { name: 'a-1-image-pull', namespace: 's-1' },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  });
  const owner = await cluster.create(kinds.app, { ...app('a-1'), spec: { ...app('a-1').spec, lifecycle } });
  const image = `${registry.host}/x/y:1`;
  const source = buildPackage({ guid: 'p-1', app: owner, type: 'docker', image, pullSecrets: ['a-1-image-pull'] }, author);
  await cluster.create(kinds.package, source);
  const input = { guid: 'b-1', app: owner, packageGuid: 'p-1', lifecycle, stagingMemoryMB: 0, stagingDiskMB: 0 };
  await cluster.create(kinds.build, buildBuild(input, author));
  await scene.until(() =>
    expect(cluster.all(kinds.build)[0]?.status).toMatchObject({ state: 'FAILED', failure: { cause: 'image-unauthorized' } }),
  );
  return scene.condition(kinds.build, 's-1', 'b-1', 'Succeeded')?.message;
}

test('a wrong password is told with its Secret, and without the user and the password', async () => {
  const message = await said(registry.host);
  expect(message).toContain("The registry does not know the credential that was sent: user and password of Secret 'a-1-image-pull'.");
  expect(message).not.toMatch(/wrong-password|bob/);
});

test('a Secret without a credential for the registry is no credential', async () => {
  expect(await said('registry.example.com')).toContain(
    `No credential is configured for '${registry.host}'. If the registry asks for a user, push with --docker-username USER`,
  );
});

test.each([
  ['may not do this in the repository, or there is none', 'right', 'may not do this in this repository, or the repository does not exist'],
  ['is not known, if the token server refuses it', 'wrong-password', 'The registry does not know the credential that was sent'],
])('a credential of a registry with a token server %s', async (_, password, expected) => {
  // A token is issued, and is not enough for the image.
  registry.switches.credential = { scheme: 'bearer', username: 'bob', password: 'right' };
  registry.switches.tokenUses = 0;
  const message = await said(registry.host, password);
  expect(message).toContain(`${expected}: user and password of Secret 'a-1-image-pull'. Check the `);
  expect(message?.includes('CF_DOCKER_PASSWORD')).toBe(password !== 'right');
});

test.each([
  [403, 'No credential was sent: the registry refused before it asked for one.'],
  [401, "does not ask for what is configured for it: user and password of Secret 'a-1-image-pull'."],
])('a registry that refuses with %i and no challenge has not seen the credential of the Secret', async (status, expected) => {
  registry.switches.intercept = () => status;
  const message = await said(registry.host);
  expect(message).toContain(expected);
  expect(message).toMatch(/ Check the user \(--docker-username\) and the password \(CF_DOCKER_PASSWORD\)\.$/);
});
