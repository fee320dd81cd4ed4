import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { digestOf as digest } from '../../../src/lib/oci/descriptor.ts';
import { type DirectConnection, directConnection } from '../../../src/lib/oci/http.ts';
import { RegistryClient } from '../../../src/lib/oci/registry.ts';
import type { BlobSource, UploadMemory, UploadOptions } from '../../../src/lib/oci/upload.ts';
import { ScriptedRegistry, type Switches } from '../../support/registry.ts';

const KIB = 1024;
let registry: ScriptedRegistry;
let connection: DirectConnection;
let client: RegistryClient;

async function start(switches: Switches = {}): Promise<void> {
  registry = await ScriptedRegistry.start(switches);
  connection = directConnection(registry.host);
  client = new RegistryClient({ send: connection.send, retryDelaysMs: [1, 1] });
}

beforeEach(() => start());
afterEach(async () => {
  connection.close();
  await registry.stop();
});

async function restart(switches: Switches): Promise<void> {
  connection.close();
  await registry.stop();
  await start(switches);
}

/** Like a layer on disk: each chunk is a stream of small buffers. */
function blob(bytes: Buffer): BlobSource {
  const pieces = (part: Buffer): Buffer[] =>
    Array.from({ length: Math.ceil(part.length / 16_384) }, (_, i) => part.subarray(i * 16_384, (i + 1) * 16_384));
  return {
    digest: digest(bytes),
    size: bytes.length,
    open: (from, to) => Readable.from(pieces(bytes.subarray(from, to)), { objectMode: false }),
  };
}

function upload(source: BlobSource, more: Partial<UploadOptions> = {}) {
  return client.putBlob({
    repository: 'space/app',
    what: 'the layer',
    source,
    chunkBytes: 256 * KIB,
    minChunkBytes: 16 * KIB,
    stallDelaysMs: [1, 5, 20, 50, 100],
    ...more,
  });
}

const patches = (): number[] => registry.requests.filter(({ method }) => method === 'PATCH').map(({ bytes }) => bytes);

test('a blob is uploaded in chunks between POST and PUT', async () => {
  const bytes = randomBytes(600 * KIB);
  expect(await upload(blob(bytes))).toEqual({ bytesSent: bytes.length, chunkBytes: 256 * KIB });
  expect(registry.methods()).toEqual(['HEAD', 'POST', 'PATCH', 'PATCH', 'PATCH', 'PUT']);
  expect(patches()).toEqual([256 * KIB, 256 * KIB, 88 * KIB]);
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('a blob that exists costs one HEAD', async () => {
  const bytes = randomBytes(10);
  registry.putBlob('space/app', bytes);
  expect(await upload(blob(bytes))).toMatchObject({ bytesSent: 0 });
  expect(registry.methods()).toEqual(['HEAD']);
});

test('a small blob is sent in the PUT itself', async () => {
  const bytes = randomBytes(500);
  await upload(blob(bytes));
  expect(registry.methods()).toEqual(['HEAD', 'POST', 'PUT']);
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('an empty blob is uploaded too', async () => {
  await upload(blob(Buffer.alloc(0)));
  expect(registry.blobs.get(digest(''))).toEqual(Buffer.alloc(0));
});

test('a blob of another repository is mounted', async () => {
  const bytes = randomBytes(100 * KIB);
  registry.putBlob('space/other', bytes);
  expect(await upload(blob(bytes), { mountFrom: 'space/other' })).toMatchObject({ bytesSent: 0 });
  expect(registry.methods()).toEqual(['HEAD', 'POST']);
  expect(await client.headBlob('space/app', digest(bytes))).toBe(bytes.length);
});

test('if the registry refuses a mount the blob is uploaded', async () => {
  const bytes = randomBytes(300 * KIB);
  await upload(blob(bytes), { mountFrom: 'space/other' });
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test.each(['relative', 'wrong-scheme', 'prefixed'] as const)(
  'a %s Location is resolved relative to the URL that was used',
  async (location) => {
    await restart({ location });
    const bytes = randomBytes(300 * KIB);
    await upload(blob(bytes));
    expect(registry.requests.every(({ path }) => path.startsWith('/v2/space/app/'))).toBe(true);
    expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
  },
);

test.each([413, 403, 400])('a proxy that answers %i to large bodies gets smaller ones', async (refuseStatus) => {
  await restart({ maxBodyBytes: 100 * KIB, refuseStatus });
  const bytes = randomBytes(300 * KIB);
  expect(await upload(blob(bytes))).toEqual({ bytesSent: bytes.length, chunkBytes: 64 * KIB });
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('a proxy that refuses even the smallest chunk is reported with the size that it must let through', async () => {
  await restart({ maxBodyBytes: 10 * KIB });
  await expect(upload(blob(randomBytes(300 * KIB)))).rejects.toMatchObject({
    code: 'upload',
    message: 'The way to the registry refuses request bodies of 16 KiB.',
  });
});

test.each([
  ['kept', true],
  ['lost', false],
])('with connections that are cut after 100 KiB the upload succeeds if the bytes of a cut body are %s', async (_, keepCutBytes) => {
  await restart({ cutAfterBytes: 100 * KIB, keepCutBytes });
  const bytes = randomBytes(700 * KIB);
  const result = await upload(blob(bytes));
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
  expect(result.chunkBytes).toBe(64 * KIB);
});

test.each([502, 504])('a proxy that aborts a body with %i gets smaller ones', async (status) => {
  await restart({
    intercept: ({ method, headers }) => (method === 'PATCH' && Number(headers['content-length']) > 100 * KIB ? status : undefined),
  });
  const bytes = randomBytes(300 * KIB);
  expect(await upload(blob(bytes))).toMatchObject({ chunkBytes: 64 * KIB });
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('an upload to a registry that goes away and returns is continued, not started again', async () => {
  const bytes = randomBytes(1024 * KIB);
  let gone: Promise<void> | undefined;
  registry.switches.intercept = ({ method }) => {
    if (method !== 'PATCH' || gone || patches().length < 3) return undefined;
    gone = registry.stop().then(async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      // Without a configured secret distribution cannot read the upload states that it returned, but it keeps the uploads.
      registry.changeSecret();
      await registry.listen();
    });
    return 'cut';
  };
  await upload(blob(bytes), { stallDelaysMs: [10, 20, 50, 100, 200, 400, 1_000, 5_000] });
  await gone;
  expect(registry.methods().filter((method) => method === 'POST')).toHaveLength(1);
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('a registry that was replaced between two chunks is asked for its position, and nothing is sent twice', async () => {
  const bytes = randomBytes(1024 * KIB);
  let replaced = false;
  registry.switches.intercept = ({ method }) => {
    if (method !== 'PATCH' || replaced || patches().length < 3) return undefined;
    replaced = true;
    registry.changeSecret();
    return undefined;
  };
  expect(await upload(blob(bytes))).toMatchObject({ bytesSent: bytes.length });
  expect(replaced).toBe(true);
  expect(registry.methods().filter((method) => method === 'POST')).toHaveLength(1);
  expect(patches().reduce((sum, sent) => sum + sent, 0)).toBe(bytes.length);
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('a registry that never recognises its own upload state is not asked for ever', async () => {
  registry.switches.intercept = ({ method }) => {
    if (method === 'PATCH') registry.changeSecret();
    return undefined;
  };
  await expect(upload(blob(randomBytes(300 * KIB)))).rejects.toThrow(/./);
  expect(registry.methods().filter((method) => method === 'POST').length).toBeLessThan(10);
});

test('a registry that stays away ends the upload with a message that names it', async () => {
  const source = blob(randomBytes(300 * KIB));
  registry.switches.intercept = ({ method }) => {
    if (method === 'PATCH') void registry.stop();
    return undefined;
  };
  await expect(upload(source)).rejects.toMatchObject({
    code: 'upload',
    message: expect.stringMatching(/^The registry cannot be reached: .*'space\/app'/),
  });
});

test('an upload that the registry forgot is started again', async () => {
  const bytes = randomBytes(600 * KIB);
  registry.switches.intercept = (_, count) => {
    if (count === 4) registry.uploads.clear();
    return undefined;
  };
  await upload(blob(bytes));
  expect(registry.methods().filter((method) => method === 'POST')).toHaveLength(2);
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('if the answer to the last PUT is lost, the blob is not sent twice', async () => {
  const bytes = randomBytes(300 * KIB);
  registry.switches.intercept = ({ method }) => {
    if (method !== 'PUT') return undefined;
    registry.putBlob('space/app', bytes);
    registry.uploads.clear();
    return 'cut';
  };
  await upload(blob(bytes));
  expect(registry.methods()).toEqual(['HEAD', 'POST', 'PATCH', 'PATCH', 'PUT', 'GET', 'HEAD']);
});

test('a busy registry is asked again after a pause', async () => {
  let refusals = 0;
  registry.switches.intercept = ({ method }) => (method === 'PATCH' && refusals++ < 3 ? 503 : undefined);
  const bytes = randomBytes(100 * KIB);
  await upload(blob(bytes));
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
});

test('a refusal by the registry itself is reported at once', async () => {
  registry.switches.credential = { scheme: 'basic', username: 'a', password: 'b' };
  await expect(upload(blob(randomBytes(10)))).rejects.toMatchObject({
    code: 'upload',
    message: expect.stringContaining('Error from registry: '),
    details: { status: 401 },
  });
  expect(registry.requests).toHaveLength(1);
});

test("the upload of a killed run is continued by the next one at the registry's position", async () => {
  const bytes = randomBytes(700 * KIB);
  let saved: string | undefined;
  const memory: UploadMemory = { load: () => saved, save: (session) => (saved = session) };
  const killed = new AbortController();
  registry.switches.intercept = ({ method }) => {
    if (method === 'PATCH' && patches().length === 2) killed.abort();
    return undefined;
  };
  await expect(upload(blob(bytes), { memory, signal: killed.signal })).rejects.toMatchObject({ name: 'AbortError' });
  delete registry.switches.intercept;
  expect(saved).toMatch(/^\/v2\/space\/app\/blobs\/uploads\//);
  const sentBefore = registry.requests.length;
  const result = await upload(blob(bytes), { memory });
  expect(registry.requests.slice(sentBefore).map(({ method }) => method)).toEqual(expect.not.arrayContaining(['POST']));
  expect(result.bytesSent).toBeLessThan(bytes.length);
  expect(registry.blobs.get(digest(bytes))).toEqual(bytes);
  expect(saved).toBeUndefined();
});

test('a saved upload session of another repository is not used', async () => {
  const bytes = randomBytes(100 * KIB);
  await upload(blob(bytes), { memory: { load: () => '/v2/space/other/blobs/uploads/x', save: () => undefined } });
  expect(registry.requests.every(({ path }) => path.startsWith('/v2/space/app/'))).toBe(true);
});

test('progress ends at the size and never exceeds it', async () => {
  const bytes = randomBytes(600 * KIB);
  const seen: number[] = [];
  await upload(blob(bytes), { progress: (sent) => seen.push(sent) });
  expect(seen.at(-1)).toBe(bytes.length);
  expect(Math.max(...seen)).toBe(bytes.length);
  expect(seen.length).toBeGreaterThan(10);
});

test('bytes that do not match the digest are refused at the end', async () => {
  const bytes = randomBytes(100 * KIB);
  const source = { ...blob(bytes), digest: digest('something else') };
  await expect(upload(source)).rejects.toMatchObject({ code: 'upload', details: { codes: ['DIGEST_INVALID'] } });
});

test('an upload ends if the registry accepts every chunk and stores none', async () => {
  await restart({ keepsNothing: true });
  const source = blob(randomBytes(600 * KIB));
  await expect(upload(source, { stallDelaysMs: [1, 1] })).rejects.toMatchObject({
    code: 'upload',
    message: expect.stringContaining('does not store them') as string,
  });
  expect(patches()).toHaveLength(3);
});
