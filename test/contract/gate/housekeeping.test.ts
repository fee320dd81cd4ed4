// Uploads that the gate refuses because the volume is full, and its cleanup, on folders in the layout of CNCF distribution.

import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Commits } from '../../../src/controller/gate/commits.ts';
import { Housekeeping } from '../../../src/controller/gate/housekeeping.ts';
import { Capacity } from '../../../src/controller/gate/capacity.ts';
import { entryBytes, ImageStore } from '../../../src/controller/gate/store.ts';
import { until } from '../../support/until.ts';
import { ask, basic, now, openGate } from './support.ts';
import type { Scene, Upstream } from './support.ts';

let folder: string;
let store: ImageStore;
let scene: Scene | undefined;
const root = (...names: string[]): string => join(folder, 'docker/registry/v2', ...names);
const hex = (text: string): string => createHash('sha256').update(text).digest('hex');

function putBlob(text: string): string {
  const digest = hex(text);
  const at = root('blobs/sha256', digest.slice(0, 2), digest);
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'data'), text);
  return digest;
}
const has = (digest: string): boolean => existsSync(root('blobs/sha256', digest.slice(0, 2), digest, 'data'));

function link(repository: string, digest: string, kind: '_layers' | '_manifests/revisions' = '_layers'): void {
  const at = root('repositories', repository, kind, 'sha256', digest);
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'link'), `sha256:${digest}`);
}

function upload(repository: string, bytes: number, ageMs: number): string {
  const at = root('repositories', repository, '_uploads', randomUUID());
  mkdirSync(at, { recursive: true });
  const then = (Date.now() - ageMs) / 1000;
  for (const [name, content] of [
    ['data', Buffer.alloc(bytes)],
    ['startedat', Buffer.from('x')],
  ] as const) {
    writeFileSync(join(at, name), content);
    utimesSync(join(at, name), then, then);
  }
  utimesSync(at, then, then);
  return at;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kf-store-'));
  store = new ImageStore(folder);
});
afterEach(async () => {
  await scene?.close();
  scene = undefined;
  rmSync(folder, { recursive: true });
});

const housekeeping = (commits = new Commits()): Housekeeping =>
  new Housekeeping({ store, commits, capacity: new Capacity({ store, folder, reserve: 0 }), log: () => undefined });

describe('blobs', () => {
  test('are removed when no repository refers to them, and stay as long as one does', async () => {
    const [shared, mine, manifest, lost] = ['shared', 'mine', 'manifest', 'lost'].map(putBlob) as [string, string, string, string];
    link('s-1/a-droplets', shared);
    link('s-1/a-droplets', mine);
    link('s-1/a-droplets', manifest, '_manifests/revisions');
    link('s-2/b-droplets', shared);
    expect(await housekeeping().sweep()).toBe(1);
    expect([shared, mine, manifest, lost].map(has)).toEqual([true, true, true, false]);
    expect(await store.removeRepository('s-1', 'a-droplets')).toBe(true);
    expect(await housekeeping().sweep()).toBe(2);
    expect([shared, mine, manifest].map(has)).toEqual([true, false, false]);
    const left: string[] = [];
    for await (const repository of store.repositories()) left.push(repository);
    expect(left).toEqual(['s-2/b-droplets']);
  });

  test('that a push refers to during a cleanup stay', async () => {
    const commits = new Commits();
    const digest = putBlob('known before');
    // The registry has the bytes and has answered the push, but has not written the reference yet.
    const end = await commits.begin(`sha256:${digest}`, 's-1');
    const sweep = housekeeping(commits).sweep();
    end();
    expect(await sweep).toBe(0);
    expect(has(digest)).toBe(true);
  });

  test('are not removed while one is stored, and none is stored while they are removed', async () => {
    const commits = new Commits();
    const order: string[] = [];
    const end = await commits.begin(`sha256:${hex('a')}`, 's-1');
    const removing = commits.remove([hex('b')], async () => {
      order.push('removes');
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push('removed');
    });
    const next = commits.begin(`sha256:${hex('c')}`, 's-1').then(() => order.push('stored'));
    order.push('ends');
    end();
    await Promise.all([removing, next]);
    expect(order).toEqual(['ends', 'removes', 'removed', 'stored']);
  });

  test('are removed although a client does not read the answer to what it stored', async () => {
    const commits = new Commits();
    let answered = 0;
    const upstream: Upstream = (request, response) => {
      request.resume().once('end', () => {
        answered += 1;
        response.writeHead(400).end(Buffer.alloc(64 * 1024 * 1024));
      });
    };
    scene = await openGate({ folder, commits, upstream });
    const socket = connect(scene.port('push'), '127.0.0.1').pause();
    await once(socket, 'connect');
    const auth = basic(`push.s-1.${now + 60}`);
    socket.write(`PUT /v2/s-1/a-droplets/manifests/t HTTP/1.1\r\nHost: gate\r\nAuthorization: ${auth}\r\nContent-Length: 2\r\n\r\n{}`);
    await until('the registry to answer', () => Promise.resolve(answered > 0));
    expect(await commits.remove([hex('x')], () => Promise.resolve())).toBe(1);
    socket.destroy();
  });

  test('of repositories with other names, and files of other kinds, do not disturb the cleanup', async () => {
    mkdirSync(root('repositories/s-1/a-droplets/_layers/sha256/not-a-digest'), { recursive: true });
    mkdirSync(root('blobs/sha256/zz'), { recursive: true });
    writeFileSync(root('repositories/file'), '');
    expect([await housekeeping().sweep(), await store.removeRepository('..', 's-1'), await store.removeRepository('s-1', '..')]).toEqual([
      0,
      false,
      false,
    ]);
    expect(existsSync(root('repositories/s-1/a-droplets'))).toBe(true);
  });
});

describe('digests of recent pushes', () => {
  const push = async (commits: Commits, space: string, count: number): Promise<void> => {
    for (let number = 0; number < count; number += 1) (await commits.begin(`sha256:${hex(`${space} ${number}`)}`, space))();
  };

  test('expire after ten minutes, also without a cleanup', async () => {
    let at = 0;
    const commits = new Commits(() => at);
    await push(commits, 's-1', 50);
    at = 10 * 60_000 + 1;
    expect([commits.isFull('s-1'), commits.size]).toEqual([false, 0]);
  });

  test('stay during a cleanup, however long it takes', async () => {
    let at = 0;
    const commits = new Commits(() => at);
    await push(commits, 's-1', 1);
    await commits.startSweep();
    at = 3_600_000;
    await push(commits, 's-2', 1);
    expect([commits.isFull('s-1'), commits.size]).toEqual([false, 2]);
    commits.endSweep();
    expect([commits.isFull('s-1'), commits.size]).toEqual([false, 1]);
  });

  test('are limited per space, and only a space at its limit has to wait', async () => {
    const commits = new Commits();
    await push(commits, 's-1', 4_000);
    scene = await openGate({ folder, commits });
    const path = (space: string): string => `/v2/${space}/a-packages`;
    const said = async (space: string, method: string, rest: string, body?: string): Promise<number> => {
      const headers = { authorization: basic(`push.${space}.${now + 60}`) };
      return (await ask(scene?.port('push') ?? 0, { method, path: path(space) + rest, headers, ...(body === undefined ? {} : { body }) }))
        .status;
    };
    const digest = `sha256:${hex('new')}`;
    expect([
      await said('s-1', 'PUT', '/manifests/t', '{}'),
      await said('s-1', 'PUT', `/blobs/uploads/u?digest=${digest}`),
      await said('s-1', 'POST', `/blobs/uploads/?mount=${digest}&from=s-1/b-packages`),
      await said('s-1', 'PATCH', '/blobs/uploads/u', 'x'),
      await said('s-2', 'PUT', '/manifests/t', '{}'),
    ]).toEqual([429, 429, 429, 200, 200]);
    expect(commits.size).toBe(4_001);
  });

  test('are limited for all spaces together, and spaces with few of them can still push', async () => {
    const commits = new Commits();
    for (let number = 0; number < 25; number += 1) await push(commits, `s-${number}`, 4_000);
    await push(commits, 'small', 199);
    expect(commits.isFull('small')).toBe(false);
    await push(commits, 'small', 200);
    expect(commits.isFull('small')).toBe(true);
  });
});

test('an upload without a byte for an hour is deleted, an active one stays', async () => {
  const [old, going] = [upload('s-1/a-packages', 5, 3_700_000), upload('s-1/a-packages', 5, 3_500_000)];
  expect(await housekeeping().purge()).toBe(1);
  expect([existsSync(old), existsSync(going)]).toEqual([false, true]);
});

test('all blobs are checked, in batches, also while some are removed', async () => {
  const stored = Array.from({ length: 40 }, (_, number) => putBlob(`blob ${number}`));
  for (const digest of stored.slice(0, 10)) link('s-1/a-droplets', digest);
  const gone: string[] = [];
  for await (const part of store.unreferenced(7)) {
    expect(part.length).toBeLessThanOrEqual(7);
    for (const digest of part) await store.removeBlob(digest);
    gone.push(...part);
  }
  expect(gone.toSorted()).toEqual(stored.slice(10).toSorted());
  expect(stored.map(has)).toEqual(stored.map((_, index) => index < 10));
});

test('the usage of a space counts each blob once, its unfinished uploads, and a fixed amount for every entry', async () => {
  const digest = putBlob('x'.repeat(100));
  link('s-1/a-packages', digest);
  link('s-1/a-droplets', digest);
  link('s-2/b-droplets', putBlob('y'.repeat(1000)));
  upload('s-1/a-packages', 20, 0);
  const tag = root('repositories/s-2/b-droplets/_manifests/tags/t');
  for (const past of ['one', 'two']) mkdirSync(join(tag, 'index/sha256', hex(past)), { recursive: true });
  expect(await Promise.all(['s-1', 's-2', 's-3'].map((space) => store.usageOf(space)))).toEqual([
    // Two repositories, two links, a blob, an upload.
    { bytes: 120 + 6 * entryBytes, uploads: 1 },
    // A repository, a link, a blob, a tag, and its manifest.
    { bytes: 1000 + 6 * entryBytes, uploads: 0 },
    { bytes: 0, uploads: 0 },
  ]);
  // It stops counting at the limit.
  expect((await store.usageOf('s-2', 2 * entryBytes)).bytes).toBe(1000 + 3 * entryBytes);
});

describe('repositories', () => {
  const made = (space: string, count: number): string[] =>
    Array.from({ length: count }, (_, number) => {
      const repository = `${space}/a${String(number).padStart(5, '0')}-packages`;
      mkdirSync(root('repositories', repository, '_uploads'), { recursive: true });
      return repository;
    });
  const headers = (user: string): Record<string, string> => ({ authorization: basic(`${user}.${now + 60}`) });

  test('are listed in pages of a bounded size, each of them once', async () => {
    const stored = [...made('s-1', 1_500), ...made('s-1-more', 700), ...made('s-2', 1)];
    scene = await openGate({ folder });
    const pages: string[][] = [];
    for (let after: string | undefined = ''; after !== undefined;) {
      const path = `/kf/repositories${after === '' ? '' : `?after=${after}`}`;
      const answer = await ask(scene.port('push'), { path, headers: headers('keeper') });
      const page = JSON.parse(answer.body.toString()) as { repositories: string[]; next?: string };
      pages.push(page.repositories);
      after = page.next;
    }
    expect(pages.map(({ length }) => length)).toEqual([1_000, 1_000, 201]);
    expect(pages.flat()).toEqual(stored);
  });

  test('are at most 3,000 in a space, and existing ones and other spaces still accept pushes', async () => {
    made('s-1', 2_999);
    // Even without a share.
    scene = await openGate({ folder });
    const push = async (repository: string, method: string, rest: string): Promise<[number, string]> => {
      const [space = ''] = repository.split('/');
      const { status, body } = await ask(scene?.port('push') ?? 0, {
        method,
        path: `/v2/${repository}/${rest}`,
        headers: headers(`push.${space}`),
        ...(method === 'PUT' ? { body: '{}' } : {}),
      });
      const { errors = [] } = JSON.parse(body.toString()) as { errors?: { code: string; message: string }[] };
      return [status, errors.map(({ code, message }) => `${code}: ${message}`).join()];
    };
    expect(await push('s-1/last-packages', 'POST', 'blobs/uploads/')).toEqual([200, '']);
    made('s-1', 3_000);
    const refused = 'DENIED: the space has 3000 repositories, the most that are possible; those of deleted apps go within minutes';
    expect(await push('s-1/new-packages', 'POST', 'blobs/uploads/')).toEqual([403, refused]);
    expect(await push('s-1/new-packages', 'PUT', 'manifests/t')).toEqual([403, refused]);
    expect(await push('s-1/a00000-packages', 'POST', 'blobs/uploads/')).toEqual([200, '']);
    expect(await push('s-2/new-packages', 'POST', 'blobs/uploads/')).toEqual([200, '']);
  });
});

describe('an upload', () => {
  const headers = { authorization: basic(`push.s-1.${now + 60}`) };
  const send = async (method: string, path: string, body?: Buffer): Promise<[number, string]> => {
    const answer = await ask(scene?.port('push') ?? 0, { method, path: `/v2/s-1/a-packages/${path}`, headers, ...(body ? { body } : {}) });
    const { errors = [] } = JSON.parse(answer.body.toString() || '{}') as { errors?: { code: string; message: string }[] };
    return [answer.status, errors[0]?.message ?? ''];
  };

  test("that would exceed the space's share is refused, in every form of upload, and others are not", async () => {
    link('s-1/a-packages', putBlob('x'.repeat(900)));
    // A repository, a link and a blob exist, and an upload begins.
    scene = await openGate({ folder, capacity: { spaceQuota: 1000 + 4 * entryBytes } });
    const said = expect.stringContaining('would take more than 257K, its share of the registry: they take ') as string;
    expect(await send('POST', 'blobs/uploads/')).toEqual([200, '']);
    expect(await send('PATCH', 'blobs/uploads/u', Buffer.alloc(50))).toEqual([200, '']);
    expect(await send('PATCH', 'blobs/uploads/u', Buffer.alloc(101))).toEqual([403, said]);
    expect(await send('PUT', 'manifests/t', Buffer.alloc(101))).toEqual([403, said]);
    expect(await send('GET', 'manifests/t')).toEqual([200, '']);
    expect(scene.seen.map(({ method }) => method)).toEqual(['POST', 'PATCH', 'GET']);
    const other = { authorization: basic(`push.s-2.${now + 60}`) };
    const answer = await ask(scene.port('push'), {
      method: 'PATCH',
      path: '/v2/s-2/b-packages/blobs/uploads/u',
      headers: other,
      body: Buffer.alloc(900),
    });
    expect(answer.status).toBe(200);
  });

  test('without a length is cut where its share ends', async () => {
    const bodies: number[] = [];
    const counting: Upstream = (request) => {
      let bytes = 0;
      request.on('data', (chunk: Buffer) => (bytes += chunk.length));
      request.on('close', () => bodies.push(bytes));
    };
    scene = await openGate({ folder, capacity: { spaceQuota: 10_000_000 }, upstream: counting });
    const chunked = { ...headers, 'transfer-encoding': 'chunked' };
    const path = '/v2/s-1/a-packages/blobs/uploads/u';
    const answer = await ask(scene.port('push'), { method: 'PATCH', path, headers: chunked, body: Buffer.alloc(13_000_000) });
    expect(answer.status).toBe(403);
    await until('the request to the registry to end', async () => bodies.length === 1);
    expect(bodies[0]).toBeLessThanOrEqual(10_000_000);
  });

  test('that is empty counts too, so that entries use up a quota', async () => {
    const capacity = new Capacity({ store, folder, reserve: 0, spaceQuota: 10 * entryBytes });
    const said = [];
    for (let number = 0; number < 12; number += 1)
      said.push((await capacity.admit({ space: 's-1', name: 'a-packages' }, 0, 'entry'))?.status);
    expect(said).toEqual([...Array<undefined>(10).fill(undefined), 403, 403]);
  });

  test('is refused if the space has 1,000 unfinished ones, which can still continue', async () => {
    for (let number = 0; number < 999; number += 1) upload('s-1/a-packages', 0, 0);
    scene = await openGate({ folder, capacity: { spaceQuota: 1e12 } });
    expect((await send('POST', 'blobs/uploads/'))[0]).toBe(200);
    expect(await send('POST', 'blobs/uploads/')).toEqual([429, 'the space has 1000 unfinished uploads; each ends after an hour']);
    expect((await send('PATCH', 'blobs/uploads/u', Buffer.from('x')))[0]).toBe(200);
    expect((await send('PUT', `blobs/uploads/u?digest=sha256:${hex('x')}`))[0]).toBe(200);
  });

  test('waits for the running count of its space, however many uploads there are', async () => {
    const counts: string[] = [];
    class Counted extends ImageStore {
      override usageOf(space: string, most?: number): ReturnType<ImageStore['usageOf']> {
        counts.push(space);
        return super.usageOf(space, most);
      }
    }
    const capacity = new Capacity({ store: new Counted(folder), folder, reserve: 0, spaceQuota: 1e9 });
    await Promise.all(
      Array.from({ length: 30 }, (_, number) => capacity.admit({ space: `s-${number % 2}`, name: 'a-packages' }, 1, 'entry')),
    );
    expect(counts.toSorted()).toEqual(['s-0', 's-1']);
  });

  test('is refused if the volume has few inodes left', async () => {
    const statfs = async () => Promise.resolve({ blocks: 1e9, bavail: 9e8, bsize: 4096, files: 1000, ffree: 49 });
    scene = await openGate({ folder, capacity: { statfs } });
    expect(await send('POST', 'blobs/uploads/')).toEqual([507, 'the registry has no disk space left: 49 of 1000 files are free']);
    expect((await send('GET', 'manifests/t'))[0]).toBe(200);
    expect((await ask(scene.port('push'), { path: '/readyz' })).status).toBe(503);
  });

  test('is refused if the volume has no more than its reserve, and reads continue', async () => {
    scene = await openGate({ folder, capacity: { reserve: Number.MAX_SAFE_INTEGER } });
    const [status, message] = await send('POST', 'blobs/uploads/');
    expect([status, message]).toEqual([
      507,
      expect.stringMatching(/^the registry has no disk space left: [\d.]+[MGT] of [\d.]+[MGT] are free$/),
    ]);
    expect((await send('GET', 'manifests/t'))[0]).toBe(200);
    expect((await ask(scene.port('push'), { path: '/healthz' })).status).toBe(200);
  });

  test('has its last bytes held back while blobs are removed, with and without a body', async () => {
    const commits = new Commits();
    scene = await openGate({ folder, commits });
    let free: () => void = () => undefined;
    const removing = commits.remove([hex('x')], () => new Promise((resolve) => (free = resolve)));
    const digest = `sha256:${hex('y')}`;
    const puts = [
      send('PUT', `blobs/uploads/u?digest=${digest}`),
      send('PUT', `blobs/uploads/v?digest=${digest}`, Buffer.from('y')),
      send('PUT', 'manifests/t', Buffer.from('{}')),
      send('POST', `blobs/uploads/?mount=${digest}&from=s-1/b-packages`),
    ];
    expect((await send('PATCH', 'blobs/uploads/w', Buffer.from('z')))[0]).toBe(200);
    expect(scene.seen.map(({ method }) => method)).toEqual(['PATCH']);
    free();
    expect((await Promise.all(puts)).map(([status]) => status)).toEqual([200, 200, 200, 200]);
    expect(await removing).toBe(1);
  });
});
