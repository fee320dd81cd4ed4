import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkedRealm, credentialHeader, parseChallenge } from '../../../src/lib/oci/auth.ts';
import { credentialsFromConfig, dockerCredentials } from '../../../src/lib/oci/credentials.ts';

test('the header of the credential depends only on whether the registry is reached through the proxy', () => {
  expect(credentialHeader('Basic x', 'direct')).toEqual({ Authorization: 'Basic x' });
  expect(credentialHeader('Basic x', 'proxy')).toEqual({ 'X-Kf-Authorization': 'Basic x' });
});

test.each([
  ['Basic realm="r"', { scheme: 'basic', parameters: { realm: 'r' } }],
  [
    'Bearer realm="https://auth.io/token",service="reg",scope="repository:a/b:pull,push"',
    { scheme: 'bearer', parameters: { realm: 'https://auth.io/token', service: 'reg', scope: 'repository:a/b:pull,push' } },
  ],
  ['bearer Realm=x , service = "a \\"b\\""', { scheme: 'bearer', parameters: { realm: 'x', service: 'a "b"' } }],
  ['Negotiate', { scheme: 'negotiate', parameters: {} }],
  ['', undefined],
])('the challenge %j is parsed', (text, challenge) => {
  expect(parseChallenge(text)).toEqual(challenge);
});

test.each([
  ['https://auth.docker.io/token', 'registry-1.docker.io'],
  ['https://r.io/token', 'r.io'],
  ['http://r.io:5000/token', 'r.io:5000'],
  ['http://127.0.0.1:9000/token', '127.0.0.1:5000'],
  ['https://10.0.0.5/token', '10.0.0.5:5000'],
])('the token server %s gets a request for %s', (realm, registry) => {
  expect(checkedRealm(realm, registry).href).toBe(realm);
});

test.each([
  ['http://auth.io/token', 'r.io', 'plain text'],
  ['http://r.io/token', 'r.io:5000', 'plain text'],
  ['https://127.0.0.1/token', 'r.io', 'private address'],
  ['https://localhost:1/', 'r.io', 'private address'],
  ['https://10.1.2.3/', 'r.io', 'private address'],
  ['https://172.20.0.1/', 'r.io', 'private address'],
  ['https://192.168.1.1/', 'r.io', 'private address'],
  ['https://169.254.169.254/latest', 'r.io', 'private address'],
  ['https://[::1]/', 'r.io', 'private address'],
  ['https://[fd00::1]/', 'r.io', 'private address'],
  ['file:///etc/passwd', 'r.io', 'not a protocol'],
  ['nonsense', 'r.io', 'not a URL'],
  ['', 'r.io', 'not a URL'],
])('the token server %j of %s is refused', (realm, registry, why) => {
  expect(() => checkedRealm(realm, registry)).toThrow(why);
});

const auth = (text: string): string => Buffer.from(text).toString('base64');
const config = {
  auths: {
    'r.io': { auth: auth('user:pa:ss') },
    'localhost:5000': { username: 'u', password: 'p' },
    'https://index.docker.io/v1/': { auth: auth('hub:secret') },
    'https://gcr.io/v2/': { auth: auth('_json_key:{}') },
    'token.io': { auth: auth('x:'), identitytoken: 'refresh' },
    'empty.io': {},
  },
};

test.each([
  ['r.io', { username: 'user', password: 'pa:ss' }],
  ['localhost:5000', { username: 'u', password: 'p' }],
  ['registry-1.docker.io', { username: 'hub', password: 'secret' }],
  ['docker.io', { username: 'hub', password: 'secret' }],
  ['gcr.io', { username: '_json_key', password: '{}' }],
  ['token.io', { identityToken: 'refresh' }],
  ['empty.io', undefined],
  ['sub.r.io', undefined],
  ['r.io.evil.net', undefined],
  ['xr.io', undefined],
  ['r.io:5000', undefined],
  ['localhost', undefined],
])('%s gets only the credential of exactly its host', async (registry, credential) => {
  expect(await credentialsFromConfig(JSON.stringify(config), 'config.json')(registry)).toEqual(credential);
});

test.each(['{', '[1', '"text"', 'null'])('a docker configuration %j is refused, and the file is named', (text) => {
  expect(() => credentialsFromConfig(text, '/home/me/config.json')).toThrow(
    /^The docker configuration '\/home\/me\/config\.json' is not valid JSON/,
  );
});

let dir: string;
const path = process.env['PATH'];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-auth-'));
  mkdirSync(join(dir, 'bin'));
  process.env['PATH'] = `${join(dir, 'bin')}${delimiter}${path}`;
});
afterEach(() => {
  process.env['PATH'] = path;
  rmSync(dir, { recursive: true, force: true });
});

function helper(name: string, script: string): void {
  const file = join(dir, 'bin', `docker-credential-${name}`);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}

function ask(settings: object, registry: string, helperTimeoutMs = 5000) {
  writeFileSync(join(dir, 'config.json'), JSON.stringify(settings));
  return dockerCredentials({ DOCKER_CONFIG: dir }, { helperTimeoutMs })(registry);
}

test('a missing config.json means no credentials, also if the home is not a folder', async () => {
  expect(await dockerCredentials({ DOCKER_CONFIG: join(dir, 'none') })('r.io')).toBeUndefined();
  helper('none', 'exit 1');
  expect(await dockerCredentials({ DOCKER_CONFIG: join(dir, 'bin', 'docker-credential-none', 'x') })('r.io')).toBeUndefined();
});

test('the helper of a registry has priority over the store for all registries', async () => {
  helper('one', 'read server; echo "{\\"Username\\":\\"one\\",\\"Secret\\":\\"$server\\"}"');
  helper('all', 'read server; echo "{\\"Username\\":\\"all\\",\\"Secret\\":\\"$server\\"}"');
  const settings = { credsStore: 'all', credHelpers: { 'r.io': 'one' } };
  expect(await ask(settings, 'r.io')).toEqual({ username: 'one', password: 'r.io' });
  expect(await ask(settings, 'docker.io')).toEqual({ username: 'all', password: 'https://index.docker.io/v1/' });
});

test('a helper can return an identity token', async () => {
  helper('t', 'cat >/dev/null; echo \'{"Username":"<token>","Secret":"refresh"}\'');
  expect(await ask({ credsStore: 't' }, 'r.io')).toEqual({ identityToken: 'refresh' });
});

test('if a helper has no credential, auths is used', async () => {
  helper('none', 'cat >/dev/null; echo "credentials not found in native keychain"; exit 1');
  expect(await ask({ credsStore: 'none', auths: config.auths }, 'r.io')).toEqual({ username: 'user', password: 'pa:ss' });
});

test('a helper that hangs is ended after the time limit', async () => {
  helper('slow', 'exec sleep 30');
  await expect(ask({ credsStore: 'slow' }, 'r.io', 200)).rejects.toThrow(
    "The credential helper 'docker-credential-slow' failed for 'r.io': it did not answer within 0.2 s.",
  );
});

test.each([
  ['fails', 'cat >/dev/null; echo "keychain is locked" >&2; exit 2', 'keychain is locked.'],
  ['babbles', 'cat >/dev/null; echo hello', 'did not answer in JSON.'],
])('a helper that %s is reported with its message', async (name, script, message) => {
  helper(name, script);
  await expect(ask({ credsStore: name }, 'r.io')).rejects.toThrow(message);
});

test('a helper name that is not a program name is not run', async () => {
  await expect(ask({ credsStore: '../../bin/sh' }, 'r.io')).rejects.toThrow('is not a program name');
});
