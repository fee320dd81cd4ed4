// One transport for all traffic: push, logs and lists through proxies that inspect the traffic or cut it, and with a token that expires.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { CertificateAuthority } from '../support/certificates.ts';
import { ConnectProxy, type ProxyOptions } from '../support/connect-proxy.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const users = 'kf-test-users';
const authority = new CertificateAuthority('corporate proxy');
let folder: string;
let source: string;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-transport-'));
  await writeFile(path.join(folder, 'authority.pem'), authority.cert);
  source = path.join(folder, 'source');
  await cp(path.resolve('test/fixtures/apps/node-hello'), source, { recursive: true });
  // Random bytes keep their size when they are packed.
  await writeFile(path.join(source, 'ballast.bin'), randomBytes(6 * 1024 * 1024));
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(async () => {
  const kf = await Kf.create();
  await kf.run(['delete', 'transport', '-r', '-f']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

interface KubeConfig {
  clusters: { name: string; cluster: Record<string, unknown> }[];
  users: { name: string; user: Record<string, unknown> }[];
}

async function startProxy(options: ProxyOptions): Promise<ConnectProxy> {
  const proxy = await ConnectProxy.start(options);
  closers.push(() => proxy.stop());
  return proxy;
}

/** The developer's kubeconfig with other settings of the cluster and the user. */
async function kubeconfigWith(cluster: Record<string, unknown>, user: Record<string, unknown> = {}): Promise<string> {
  const config = parse(await readFile(ringEnv('KF_TEST_DEVELOPER'), 'utf8')) as KubeConfig;
  Object.assign(config.clusters[0]?.cluster ?? {}, cluster);
  if (Object.keys(user).length > 0 && config.users[0] !== undefined) config.users[0].user = user;
  const file = path.join(folder, `kubeconfig-${randomBytes(4).toString('hex')}`);
  await writeFile(file, stringify(config), { mode: 0o600 });
  return file;
}

async function developer(extra: Record<string, string>): Promise<Kf> {
  const kf = await Kf.create('developer', extra);
  closers.push(() => kf.remove());
  return kf;
}

/** A proxy with TLS and the corporate authority's certificate, which decrypts the tunnels' TLS with the same authority. */
async function throughInspection(options: ProxyOptions = {}, user: Record<string, unknown> = {}): Promise<{ proxy: ConnectProxy; kf: Kf }> {
  const proxy = await startProxy({ authority, inspectWith: authority, ...options });
  const data = Buffer.from(authority.cert).toString('base64');
  const cluster = { 'proxy-url': proxy.url, 'certificate-authority-data': data, 'tls-server-name': '127.0.0.1' };
  return { proxy, kf: await developer({ KUBECONFIG: await kubeconfigWith(cluster, user) }) };
}

const push = ['push', 'transport', '-p', '.', '-m', '128M'];

describe('a CONNECT proxy with its own authority', () => {
  test('carries a push of source, the app list and followed logs', async () => {
    const proxy = await startProxy({ authority });
    const kf = await developer({ HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: path.join(folder, 'authority.pem') });
    const ran = await kf.run(push, { cwd: source });
    expect(ran.code, ran.stderr + ran.stdout).toBe(0);
    expect(ran.stdout).toMatch(/npm|node/i);
    expect((await get('transport.apps.localhost')).status).toBe(200);
    expect((await kf.ok('apps')).stdout).toMatch(/transport\s+started/);
    const server = parse(await readFile(ringEnv('KF_TEST_DEVELOPER'), 'utf8')) as { clusters: { cluster: { server: string } }[] };
    expect(new Set(proxy.tunnels)).toEqual(new Set([new URL(server.clusters[0]?.cluster.server ?? '').host]));
  });

  test('that breaks every connection after two seconds: followed logs repeat no line and lose none', async () => {
    const { kf, proxy } = await throughInspection({ maxTunnelMs: 2_000 });
    const follower = kf.start(['logs', 'transport']);
    let seen = '';
    follower.stdout?.setEncoding('utf8').on('data', (text: string) => (seen += text));
    await until('the stream', async () => {
      await get('transport.apps.localhost', '/warm-up');
      return seen.includes('/warm-up');
    });
    const tunnels = proxy.tunnels.length;
    const wanted: string[] = [];
    // Over at least three connections, however long each of them existed.
    for (let index = 0; index < 70 || proxy.tunnels.length <= tunnels + 2; index++) {
      const line = `/line-${index}-`;
      wanted.push(line);
      await get('transport.apps.localhost', line);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await until('the last line', () => Promise.resolve(seen.includes(wanted.at(-1) ?? '')));
    const ended = new Promise<number | null>((resolve) => follower.on('exit', (code) => resolve(code)));
    follower.kill('SIGINT');
    expect(await ended).toBe(0);
    expect(wanted.map((line) => seen.split(line).length - 1)).toEqual(wanted.map(() => 1));
  });

  test('that breaks every connection after two seconds and refuses bodies of more than 1 MB: a push of 6 MB succeeds', async () => {
    await writeFile(path.join(source, 'ballast.bin'), randomBytes(6 * 1024 * 1024));
    const { kf } = await throughInspection({ maxBodyBytes: 1_000_000, maxTunnelMs: 2_000 });
    const ran = await kf.run([...push, '--json'], { cwd: source });
    expect(ran.code, ran.stderr + ran.stdout).toBe(0);
    const { result } = JSON.parse(ran.stdout) as { result: { apps: { built: boolean; layerBytesSent: number }[] } };
    expect(result.apps[0]?.built).toBe(true);
    expect(result.apps[0]?.layerBytesSent).toBeGreaterThan(6_000_000);
  });

  test('that is not trusted or does not exist is named', async () => {
    const proxy = await startProxy({ authority });
    const untrusted = await (await developer({ HTTPS_PROXY: proxy.url })).run(['apps']);
    expect(untrusted.code).toBe(1);
    expect(untrusted.stderr).toContain(`through the proxy ${proxy.url}`);
    expect(untrusted.stderr).toMatch(/certificate/);
    await proxy.stop();
    const absent = await (await developer({ HTTPS_PROXY: proxy.url })).run(['apps']);
    expect(absent.code).toBe(1);
    expect(absent.stderr).toContain(`through the proxy ${proxy.url}`);
  });
});

/** Sent by kubectl, as a user who has nothing but that token. */
async function isAccepted(token: string): Promise<boolean> {
  const file = await kubeconfigWith({}, { token });
  return new Promise((resolve, reject) => {
    execFile('kubectl', ['auth', 'whoami'], { env: { ...process.env, KUBECONFIG: file } }, (error, _stdout, stderr) => {
      if (error !== null && !/Unauthorized|logged in/.test(stderr)) reject(new Error(stderr));
      else resolve(error === null);
    });
  });
}

/** A token of the developer that becomes invalid at once when its Secret is deleted. */
async function revocableToken(name: string): Promise<{ token: string; revoke: () => Promise<void> }> {
  const config = parse(await readFile(ringEnv('KF_TEST_DEVELOPER'), 'utf8')) as KubeConfig;
  await kubectl('create', 'secret', 'generic', name, '-n', users);
  const account = config.users[0]?.name ?? '';
  const made = await kubectl('create', 'token', account, '-n', users, '--bound-object-kind', 'Secret', '--bound-object-name', name);
  const token = made.trim();
  const revoke = async (): Promise<void> => {
    await kubectl('delete', 'secret', name, '-n', users);
    // The API server caches for some seconds that the token is valid.
    await until('the token to end', async () => !(await isAccepted(token)));
  };
  return { token, revoke };
}

test('a token that expires during the upload is read again from its file, and the push continues', async () => {
  await writeFile(path.join(source, 'ballast.bin'), randomBytes(6 * 1024 * 1024));
  const run = randomBytes(3).toString('hex');
  const [first, second] = [await revocableToken(`first-${run}`), await revocableToken(`second-${run}`)];
  expect(await isAccepted(first.token)).toBe(true);
  const file = path.join(folder, 'token');
  await writeFile(file, first.token);
  let revoked: Promise<void> | undefined;
  const revokeOnce = async (method: string): Promise<void> => {
    if (method !== 'PATCH') return;
    revoked ??= first.revoke().then(async () => {
      await writeFile(`${file}.new`, second.token);
      await rename(`${file}.new`, file);
    });
    await revoked;
  };
  const { kf } = await throughInspection({ before: revokeOnce }, { tokenFile: file });
  const ran = await kf.run(push, { cwd: source });
  expect(revoked).toBeDefined();
  expect(ran.code, ran.stderr + ran.stdout).toBe(0);
  expect((await get('transport.apps.localhost')).status).toBe(200);
  await kubectl('delete', 'secret', `second-${run}`, '-n', users);
});

test('if a token has expired for good, the push names the user whose credentials are refused', async () => {
  const token = await revocableToken(`only-${randomBytes(3).toString('hex')}`);
  await token.revoke();
  const kf = await developer({ KUBECONFIG: await kubeconfigWith({}, { token: token.token }) });
  const ran = await kf.run(push, { cwd: source });
  expect(ran.code).toBe(1);
  expect(ran.stderr).toMatch(/the credentials of the user ".*" \(context "kf-test"\) are not accepted; they may have expired/);
});
