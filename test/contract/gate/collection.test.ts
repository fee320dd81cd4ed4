// Collections by the gate while pushes look for what the registry has.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../support/until.ts';
import { ask, basic, now, openGate, type Answer, type Scene, type Upstream } from './support.ts';

const repository = 's-1/a-droplets';
const digest = createHash('sha256').update('layer').digest('hex');
let folder: string;
let scene: Scene;
let waiting: ServerResponse[];
const root = (...names: string[]): string => join(folder, 'docker/registry/v2', ...names);
const linkOf = (kind: '_layers' | '_manifests/revisions', hex = digest): string => root('repositories', repository, kind, 'sha256', hex);
const keeper = { authorization: basic(`keeper.${now + 600}`) };
const pusher = { authorization: basic(`push.s-1.${now + 600}`) };

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kf-gate-collection-'));
  for (const kind of ['_layers', '_manifests/revisions'] as const) {
    mkdirSync(linkOf(kind), { recursive: true });
    writeFileSync(join(linkOf(kind), 'link'), `sha256:${digest}`);
    utimesSync(join(linkOf(kind), 'link'), 1_000, 1_000);
  }
  mkdirSync(root('repositories', repository, '_manifests/tags/t/current'), { recursive: true });
  writeFileSync(root('repositories', repository, '_manifests/tags/t/current/link'), `sha256:${digest}`);
  waiting = [];
  const upstream: Upstream = (request, response) => void request.resume().once('end', () => waiting.push(response));
  scene = await openGate({ folder, upstream });
});
afterEach(async () => {
  await scene.close();
  rmSync(folder, { recursive: true });
});

const unusedSince = (seconds = 300): number => Math.floor(Date.now() / 1000) - seconds;
const collect = (body: object = { keep: [], unusedSince: unusedSince() }): Promise<Answer> =>
  ask(scene.port('push'), {
    method: 'POST',
    path: `/kf/repositories/${repository}/collection`,
    headers: keeper,
    body: JSON.stringify(body),
  });
const collected = async (body?: object): Promise<unknown> => JSON.parse((await collect(body)).body.toString());

/** Stores the text of the repository's manifest. */
function hasText(): void {
  mkdirSync(root('blobs/sha256', digest.slice(0, 2), digest), { recursive: true });
  writeFileSync(root('blobs/sha256', digest.slice(0, 2), digest, 'data'), '{}');
}

/** Sends a request whose answer the registry keeps back. */
async function begun(method: string, path: string, body?: string): Promise<{ answer: Promise<Answer>; end: () => void }> {
  const answer = ask(scene.port('push'), { method, path, headers: pusher, ...(body === undefined ? {} : { body }) });
  await until('the registry to have the request', () => Promise.resolve(waiting.length > 0));
  return { answer, end: () => void waiting.shift()?.writeHead(200).end() };
}

describe('a collection', () => {
  test('removes what is old and tells how much', async () => {
    expect(await collected()).toEqual({ manifests: 1, layers: 1 });
    expect([existsSync(linkOf('_layers')), existsSync(linkOf('_manifests/revisions'))]).toEqual([false, false]);
  });

  test.each([
    ['a layer', 'HEAD', `blobs/sha256:${digest}`, '_layers'],
    ['a manifest', 'HEAD', `manifests/sha256:${digest}`, '_manifests/revisions'],
    ['a manifest by its tag', 'GET', 'manifests/t', '_manifests/revisions'],
  ] as const)('leaves %s that a push has found, during the request and for the time after it', async (_, method, path, kind) => {
    const { answer, end } = await begun(method, `/v2/${repository}/${path}`);
    expect(await collected()).toEqual({ manifests: 0, layers: 0, isUsed: true });
    end();
    expect((await answer).status).toBe(200);
    hasText();
    expect(await collected()).toMatchObject({ [kind === '_layers' ? 'layers' : 'manifests']: 0 });
    expect(existsSync(linkOf(kind))).toBe(true);
    expect(Date.now() - statSync(join(linkOf(kind), 'link')).mtimeMs).toBeLessThan(60_000);
  });

  test('does not run while a manifest is stored, or when its client went away before the answer', async () => {
    const { answer, end } = await begun('PUT', `/v2/${repository}/manifests/new`, '{}');
    expect(await collected()).toMatchObject({ isUsed: true });
    end();
    await answer;
    const before = scene.port('push');
    const control = new AbortController();
    const aborted = fetch(`http://127.0.0.1:${before}/v2/${repository}/manifests/other`, {
      method: 'PUT',
      headers: pusher,
      body: '{}',
      signal: control.signal,
    }).catch(() => undefined);
    await until('the registry to have the request', () => Promise.resolve(waiting.length > 0));
    control.abort();
    await aborted;
    expect(await collected()).toMatchObject({ isUsed: true });
    expect(existsSync(linkOf('_layers'))).toBe(true);
  });

  test('leaves a repository with an unfinished upload as it is', async () => {
    mkdirSync(root('repositories', repository, '_uploads/0d5b7d4e'), { recursive: true });
    expect(await collected()).toMatchObject({ isUsed: true });
  });

  test('needs a keeper, a time of five minutes or more, and a repository that exists', async () => {
    expect((await collect({ keep: [], unusedSince: unusedSince(295) })).status).toBe(400);
    expect((await collect({ keep: 'x', unusedSince: unusedSince() })).status).toBe(400);
    const path = `/kf/repositories/${repository}/collection`;
    const body = JSON.stringify({ keep: [], unusedSince: unusedSince() });
    for (const headers of [pusher, { authorization: basic(`build.s-1.a.${now + 600}`) }])
      expect((await ask(scene.port('push'), { method: 'POST', path, headers, body })).status).toBe(404);
    const missing = await ask(scene.port('push'), {
      method: 'POST',
      path: '/kf/repositories/s-1/none/collection',
      headers: keeper,
      body,
    });
    expect([missing.status, missing.body.toString()]).toEqual([404, expect.stringContaining('NAME_UNKNOWN')]);
    expect(existsSync(linkOf('_layers'))).toBe(true);
  });
});

test('the keeper can count references, list blobs and free space at once', async () => {
  const post = async (path: string, body: object): Promise<unknown> =>
    JSON.parse((await ask(scene.port('push'), { method: 'POST', path, headers: keeper, body: JSON.stringify(body) })).body.toString());
  expect(await post('/kf/references', { digests: [digest, 'f'.repeat(64)] })).toEqual({ counts: { [digest]: 2, ['f'.repeat(64)]: 0 } });
  const lost = 'a'.repeat(64);
  mkdirSync(root('blobs/sha256/aa', lost), { recursive: true });
  writeFileSync(root('blobs/sha256/aa', lost, 'data'), 'garbage');
  expect(await post('/kf/sweep', {})).toEqual({ blobs: 1, bytes: 7 });
  const content = await ask(scene.port('push'), { path: `/kf/repositories/${repository}`, headers: keeper });
  expect(JSON.parse(content.body.toString())).toEqual({
    blobs: [
      { digest, bytes: 0 },
      { digest, bytes: 0 },
    ],
  });
});
