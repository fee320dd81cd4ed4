import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { basicAuthenticator, challengeAuthenticator } from '../../../src/lib/oci/auth.ts';
import type { RegistryCredential } from '../../../src/lib/oci/credentials.ts';
import { type Digest, MEDIA_TYPES } from '../../../src/lib/oci/descriptor.ts';
import { type DirectConnection, directConnection, readUpTo } from '../../../src/lib/oci/http.ts';
import { layerFromEntries } from '../../../src/lib/oci/layer.ts';
import { pushSingleLayerImage } from '../../../src/lib/oci/push.ts';
import { RegistryClient } from '../../../src/lib/oci/registry.ts';
import { isWhole } from '../../../src/lib/oci/whole.ts';
import { digestOf, ScriptedRegistry } from '../../support/registry.ts';

let dir: string;
let registry: ScriptedRegistry;
let connection: DirectConnection;
let client: RegistryClient;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'kf-registry-'));
  registry = await ScriptedRegistry.start();
  connection = directConnection(registry.host);
  client = new RegistryClient({ send: connection.send, retryDelaysMs: [1, 1] });
});
afterEach(async () => {
  connection.close();
  await registry.stop();
  rmSync(dir, { recursive: true, force: true });
});

const login = { username: 'push.space', password: 'secret' };
const repository = 'space/app-packages';

function withCredential(credential: RegistryCredential | undefined): RegistryClient {
  const authenticator = challengeAuthenticator({
    registry: registry.host,
    credentials: async () => credential,
    sendUrl: connection.sendUrl,
  });
  return new RegistryClient({ send: connection.send, authenticator, retryDelaysMs: [1] });
}

async function smallLayer() {
  const entries = [{ type: 'file', name: 'a', source: Buffer.from('hello') }] as const;
  return layerFromEntries(entries, { output: join(dir, 'layer'), compression: 'gzip' });
}

test('an image of one layer is pushed in at most 7 requests and one per chunk, blobs before the manifest', async () => {
  const layer = await smallLayer();
  const result = await pushSingleLayerImage({ client, repository, tag: 'p1', layer, annotations: { 'kf/content-hash': 'h' } });
  expect(registry.methods()).toEqual(['HEAD', 'POST', 'PUT', 'HEAD', 'POST', 'PUT', 'PUT']);
  const stored = registry.manifest(repository, 'p1');
  expect(digestOf(stored?.bytes ?? Buffer.alloc(0))).toBe(result.digest);
  expect(JSON.parse(String(stored?.bytes))).toMatchObject({ annotations: { 'kf/content-hash': 'h' }, layers: [{ digest: layer.digest }] });
  expect(result.layerBytesSent).toBe(layer.size);
});

test('the same image under a second tag sends no blob again', async () => {
  const layer = await smallLayer();
  await pushSingleLayerImage({ client, repository, tag: 'p1', layer });
  const before = registry.requests.length;
  expect(await pushSingleLayerImage({ client, repository, tag: 'p2', layer })).toMatchObject({ layerBytesSent: 0 });
  expect(registry.methods().slice(before)).toEqual(['HEAD', 'HEAD', 'PUT']);
  expect(await client.tags(repository)).toEqual(['p1', 'p2']);
});

test('a Basic challenge is answered once and remembered', async () => {
  registry.switches.credential = { scheme: 'basic', ...login };
  const layer = await smallLayer();
  await pushSingleLayerImage({ client: withCredential(login), repository, tag: 't', layer });
  expect(registry.requests.filter(({ headers }) => headers.authorization === undefined)).toHaveLength(1);
});

test('a Bearer challenge gets one token that also serves the upload after the HEAD', async () => {
  registry.switches.credential = { scheme: 'bearer', ...login };
  await pushSingleLayerImage({ client: withCredential(login), repository, tag: 't', layer: await smallLayer() });
  const tokens = registry.requests.filter(({ path }) => path.startsWith('/token'));
  expect(tokens.map(({ path }) => new URLSearchParams(path.split('?')[1]).get('scope'))).toEqual([`repository:${repository}:pull,push`]);
});

test('a token that expires in the middle of a push is renewed', async () => {
  registry.switches.credential = { scheme: 'bearer', ...login };
  registry.switches.tokenUses = 2;
  await pushSingleLayerImage({ client: withCredential(login), repository, tag: 't', layer: await smallLayer() });
  expect(registry.manifest(repository, 't')).toBeDefined();
  expect(registry.requests.filter(({ path }) => path.startsWith('/token')).length).toBeGreaterThan(2);
});

test.each([
  [
    'a wrong password',
    { username: 'push.space', password: 'wrong', from: "Secret 'x'" },
    (): string => "The registry does not know the credential that was sent: user and password of Secret 'x'.",
  ],
  ['no credential', undefined, (): string => `No credential is configured for '${registry.host}'.`],
  [
    'a token for tokens',
    { identityToken: 'secret-token' },
    (): string => `The registry '${registry.host}' does not ask for what is configured for it: an identity token.`,
  ],
])('%s is reported as a refusal by the registry, after one answer to its challenge', async (_, credential, hint) => {
  registry.switches.credential = { scheme: 'basic', ...login };
  await expect(withCredential(credential).headManifest(repository, 't')).rejects.toMatchObject({
    code: 'upload',
    details: { status: 401 },
    hints: [hint()],
  });
  expect(registry.requests.length).toBeLessThanOrEqual(2);
});

test('through the service proxy the credential is in the header of the gate, from the first request on', async () => {
  registry.switches.credential = { scheme: 'basic', ...login };
  registry.switches.credentialHeader = 'x-kf-authorization';
  const proxied = new RegistryClient({ send: connection.send, authenticator: basicAuthenticator(login, 'proxy') });
  await pushSingleLayerImage({ client: proxied, repository, tag: 't', layer: await smallLayer() });
  expect(registry.methods()).toHaveLength(7);
  expect(registry.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true);
});

test('blobs are streamed, and other bytes than requested are an error', async () => {
  const bytes = Buffer.alloc(300_000, 'x');
  const digest = registry.putBlob(repository, bytes) as Digest;
  expect(await readUpTo(await client.getBlob(repository, digest), Infinity)).toEqual(bytes);
  registry.blobs.set(digest, Buffer.alloc(300_000, 'y'));
  await expect(readUpTo(await client.getBlob(repository, digest), Infinity)).rejects.toThrow(
    `The registry sent other bytes than those of ${digest}.`,
  );
});

test('an index is resolved to the manifest and the config of the architecture', async () => {
  const config = registry.putBlob(repository, Buffer.from(JSON.stringify({ config: { User: '1000', ExposedPorts: { '3000/tcp': {} } } })));
  const manifest = { schemaVersion: 2, config: { digest: config }, layers: [] };
  const arm = registry.putManifest(repository, 'arm', MEDIA_TYPES.manifest, manifest);
  const index = registry.putManifest(repository, 'latest', MEDIA_TYPES.index, {
    manifests: [
      { digest: 'sha256:0', platform: { os: 'linux', architecture: 'amd64' } },
      { digest: arm, platform: { os: 'linux', architecture: 'arm64' } },
      { digest: 'sha256:1', platform: { os: 'unknown', architecture: 'unknown' } },
    ],
  });
  const resolved = await client.resolve(repository, 'latest', 'arm64');
  expect(resolved).toMatchObject({ digest: arm, rootDigest: index });
  expect(await client.readConfig(repository, resolved!.manifest)).toMatchObject({ config: { User: '1000' } });
  await expect(client.resolve(repository, 'latest', 's390x')).rejects.toThrow(
    `The image '${repository}' latest does not exist for linux/s390x; it exists for linux/amd64, linux/arm64.`,
  );
});

test('a missing object is undefined and not an error', async () => {
  expect(await client.headManifest(repository, 'none')).toBeUndefined();
  expect(await client.getManifest(repository, 'none')).toBeUndefined();
  expect(await client.resolve(repository, 'none', 'amd64')).toBeUndefined();
  expect(await client.headBlob(repository, `sha256:${'0'.repeat(64)}`)).toBeUndefined();
  expect(await client.tags(repository)).toEqual([]);
});

test('an image that names more blobs than kf looks for is an error, before any of them is looked for', async () => {
  const layers = Array.from({ length: 1_001 }, (_, index) => ({ digest: digestOf(Buffer.from(String(index))) }));
  const digest = registry.putManifest(repository, 'many', MEDIA_TYPES.manifest, { layers });
  await expect(isWhole(client, repository, digest, AbortSignal.timeout(10_000))).rejects.toThrow('names 1001 blobs');
  expect(registry.methods()).toEqual(['GET']);
});

test('tags are read page by page', async () => {
  for (const tag of ['a', 'b', 'c', 'd', 'e']) registry.putManifest(repository, tag, MEDIA_TYPES.manifest, { tag });
  registry.switches.tagsPerPage = 2;
  expect(await client.tags(repository)).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(registry.requests).toHaveLength(3);
});

test.each([429, 500, 502, 503, 504, 'cut' as const])('a read is tried three times if the answer is %s', async (answer) => {
  registry.putManifest(repository, 't', MEDIA_TYPES.manifest, {});
  registry.switches.intercept = (_, count) => (count < 3 ? answer : undefined);
  expect(await client.headManifest(repository, 't')).toBeDefined();
  registry.switches.intercept = () => answer;
  await expect(client.headManifest(repository, 't')).rejects.toMatchObject({ code: 'upload' });
  expect(registry.requests).toHaveLength(6);
});

test('a full registry is reported as full and is not asked again', async () => {
  registry.switches.intercept = ({ method }) => (method === 'POST' ? 507 : undefined);
  await expect(pushSingleLayerImage({ client, repository, tag: 't', layer: await smallLayer() })).rejects.toThrow(
    `Error from registry: uploading the layer to '${repository}': the registry has no disk space left.`,
  );
  expect(registry.methods()).toEqual(['HEAD', 'POST']);
});
