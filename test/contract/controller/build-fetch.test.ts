import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runFetch, settingsFromEnv } from '../../../src/controller/fetch/fetch.ts';
import { classifyReadError, readImage, type NamedConfig } from '../../../src/controller/builds/docker-image.ts';
import { digestOf, jsonBlob, MEDIA_TYPES } from '../../../src/lib/oci/descriptor.ts';
import { basicAuthenticator } from '../../../src/lib/oci/auth.ts';
import { directConnection } from '../../../src/lib/oci/http.ts';
import { bufferSource } from '../../../src/lib/oci/push.ts';
import { RegistryClient } from '../../../src/lib/oci/registry.ts';
import { ScriptedRegistry } from '../../support/registry.ts';

const credential = { username: 'build.s.a.9', password: 'geheim' };

async function tar(files: Record<string, string>): Promise<Buffer> {
  const stream = pack();
  for (const [name, text] of Object.entries(files)) stream.entry({ name, mode: 0o644 }, text);
  stream.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Pushes an image of one layer; returns its digest. */
async function push(
  registry: ScriptedRegistry,
  repository: string,
  tag: string,
  options: { layer: Buffer; config?: object },
): Promise<string> {
  const connection = directConnection(registry.host);
  const client = new RegistryClient({ send: connection.send, authenticator: basicAuthenticator(credential, 'direct') });
  const config = jsonBlob(MEDIA_TYPES.config, {
    architecture: 'amd64',
    os: 'linux',
    config: options.config ?? {},
    rootfs: { type: 'layers', diff_ids: [] },
  });
  const layer = { mediaType: MEDIA_TYPES.layerGzip, digest: digestOf(options.layer), size: options.layer.length };
  const blobs = [{ bytes: options.layer, descriptor: layer }, config];
  for (const blob of blobs) await client.putBlob({ repository, source: bufferSource(blob), what: 'a blob' });
  const manifest = jsonBlob(MEDIA_TYPES.manifest, {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.manifest,
    config: config.descriptor,
    layers: [layer],
  });
  await client.putManifest(repository, tag, manifest);
  connection.close();
  return manifest.descriptor.digest;
}

describe('the fetch program', () => {
  let root: string;
  let registry: ScriptedRegistry;
  const lines: string[] = [];
  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'kf-fetch-'));
    for (const folder of ['workspace', 'hand', 'registry']) mkdirSync(join(root, folder));
    writeFileSync(join(root, 'registry/username'), credential.username);
    writeFileSync(join(root, 'registry/password'), credential.password);
    registry = await ScriptedRegistry.start({ credential: { scheme: 'basic', ...credential } });
    lines.length = 0;
  });
  afterEach(async () => {
    await registry.stop();
    rmSync(root, { recursive: true, force: true });
  });
  const fetch = (source: string, credentialHost = registry.host): Promise<number> => {
    const env = {
      KF_SOURCE: source,
      KF_TARGET: join(root, 'workspace'),
      KF_HAND: join(root, 'hand'),
      KF_CREDENTIAL: join(root, 'registry'),
      KF_CREDENTIAL_HOST: credentialHost,
      KF_INSECURE: registry.host,
    };
    const settings = settingsFromEnv({ ...env, KF_TERMINATION_LOG: join(root, 'message') });
    return runFetch(settings, new AbortController().signal, (line) => void lines.push(line));
  };
  const has = (path: string): boolean => existsSync(join(root, path));

  test('unpacks the source by digest with the build credential and writes the marker', async () => {
    const digest = await push(registry, 's/a-packages', 't', { layer: gzipSync(await tar({ 'package.json': '{}', 'src/a.js': 'x' })) });
    expect(await fetch(`${registry.host}/s/a-packages@${digest}`)).toBe(0);
    expect(readFileSync(join(root, 'workspace/src/a.js'), 'utf8')).toBe('x');
    expect([has('hand/reached'), has('hand/fetched'), has('hand/failed'), has('message')]).toEqual([true, true, false, false]);
    expect(lines[0]).toMatch(/^Fetched the source: 2 files, [\d.]+[BK] in \d+\.\d s$/);
  });

  test.each([
    ['an image that is gone', (host: string) => `${host}/s/a-packages@sha256:${'0'.repeat(64)}`, /is not in the registry\.$/],
    ['a tag', (host: string) => `${host}/s/a-packages:t`, /is not named by a digest\.$/],
  ])('prints why it cannot use %s, marks the failure and exits with 1', async (_, source, message) => {
    expect(await fetch(source(registry.host))).toBe(1);
    expect(readFileSync(join(root, 'message'), 'utf8')).toMatch(message);
    expect([has('hand/fetched'), has('hand/failed')]).toEqual([false, true]);
  });

  test('waits while the network refuses a new pod, and lets the other container start only after that', async () => {
    const digest = await push(registry, 's/a-packages', 't', { layer: gzipSync(await tar({ a: 'x' })) });
    // Nothing listens on the port yet.
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const running = fetch(`${registry.host}/s/a-packages@${digest}`, `127.0.0.1:${String(port)}`);
    await sleep(300);
    expect([has('hand/reached'), has('hand/failed')]).toEqual([false, false]);
    const gate = createServer((socket) => socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n')).listen(port, '127.0.0.1');
    await running;
    expect(has('hand/reached')).toBe(true);
    gate.close();
  });

  test('refuses an archive with paths outside of its folder', async () => {
    const digest = await push(registry, 's/a-packages', 't', { layer: gzipSync(await tar({ '../evil': 'x' })) });
    expect(await fetch(`${registry.host}/s/a-packages@${digest}`)).toBe(1);
    expect([has('evil'), has('hand/fetched')]).toEqual([false, false]);
  });

  test('sends its credential only to the registry that it is for', async () => {
    const digest = await push(registry, 's/a-packages', 't', { layer: gzipSync(await tar({ a: 'x' })) });
    registry.requests.length = 0;
    expect(await fetch(`${registry.host}/s/a-packages@${digest}`, 'kf-registry.kf-system.svc:5000')).toBe(1);
    expect(registry.requests.map((request) => request.headers.authorization)).toEqual([undefined]);
  });

  test('does not print the credential when the registry refuses it', async () => {
    writeFileSync(join(root, 'registry/password'), 'falsch');
    expect(await fetch(`${registry.host}/s/a-packages@sha256:${'0'.repeat(64)}`)).toBe(1);
    expect(readFileSync(join(root, 'message'), 'utf8') + lines.join()).not.toMatch(/falsch|geheim/);
  });

  test('names a missing setting', () => expect(() => settingsFromEnv({})).toThrow('The variable KF_SOURCE is missing.'));

  describe('reading an image', () => {
    const known = (): NamedConfig => ({ text: JSON.stringify({ auths: { [registry.host]: credential } }), from: "Secret 'known'" });
    const read = (image: string, dockerConfigs = [known()]) =>
      readImage(image, { dockerConfigs, insecureRegistries: [registry.host], architecture: 'amd64', signal: AbortSignal.timeout(5_000) });

    test('returns digest, user, TCP ports and labels of a tag', async () => {
      const config = { User: '1000', ExposedPorts: { '9090/tcp': {}, '53/udp': {}, '8081': {} }, Labels: { a: 'b' } };
      const digest = await push(registry, 'x/app', '1', { layer: Buffer.from('l'), config });
      expect(await read(`${registry.host}/x/app:1`)).toEqual({
        digest,
        user: '1000',
        ports: [8081, 9090],
        architecture: 'amd64',
        buildMetadata: '',
      });
    });

    test.each([
      ['for one architecture with its attestation', [{ os: 'unknown', architecture: 'unknown' }], 'amd64'],
      ['for one architecture of Linux and for Windows', [{ os: 'windows', architecture: 'arm64' }], 'amd64'],
      ['for two architectures', [{ os: 'linux', architecture: 'arm64' }], undefined],
      ['with a manifest for an unnamed platform', [undefined], undefined],
    ])('returns the architecture of an index %s: only if the image runs on no other', async (_, others, expected) => {
      const digest = await push(registry, 'x/app', 'amd', { layer: Buffer.from('l') });
      const entries = [{ digest, platform: { os: 'linux', architecture: 'amd64' } }, ...others.map((platform) => ({ digest, platform }))];
      const index = registry.putManifest('x/app', 'both', MEDIA_TYPES.index, { manifests: entries });
      const facts = await read(`${registry.host}/x/app:both`);
      expect([facts.digest, facts.architecture]).toEqual([index, expected]);
    });

    test('that is refused names the Secret of the first credential for the registry, or that there is none', async () => {
      await push(registry, 'x/app', '1', { layer: Buffer.from('l') });
      const image = `${registry.host}/x/app:1`;
      const config = (name: string, host: string, username: string) => {
        const auth = { username, password: 'falsch' };
        return { text: JSON.stringify({ auths: { [host]: auth } }), from: `Secret '${name}'` };
      };
      const messageWith = async (dockerConfigs: NamedConfig[]): Promise<string> => {
        const error: unknown = await read(image, dockerConfigs).catch((thrown: unknown) => thrown);
        return classifyReadError(image, error, dockerConfigs.length > 0).message;
      };
      const other = config('other', 'registry.example.com', 'eve');
      const own = [config('own', registry.host, "bo'b"), config('later', registry.host, 'eve')];
      const wrong = await messageWith([other, ...own]);
      expect(wrong).toContain("does not know the credential that was sent: user and password of Secret 'own'. Check the user");
      expect(wrong).not.toMatch(/falsch|eve|bo.b/);
      const none = `No credential is configured for '${registry.host}'. If the registry asks for a user, push with --docker-username`;
      expect([await messageWith([other]), await messageWith([])]).toEqual([expect.stringContaining(none), expect.stringContaining(none)]);
    });

    test('reports that an image does not exist, or that the registry refuses without a credential', async () => {
      await expect(read(`${registry.host}/x/app:none`)).rejects.toThrow(`The image '${registry.host}/x/app:none' does not exist.`);
      await expect(read(`${registry.host}/x/app:1`, [])).rejects.toMatchObject({ answer: { status: 401 } });
    });
  });
});
