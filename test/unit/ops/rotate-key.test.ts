// A change of the registry's key while somebody replaces the Secrets of a space.

import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, places } from '../../../src/lib/api/group.ts';
import type { KfInfo } from '../../../src/lib/api/kf-info.ts';
import {
  pushSecretName,
  registryKeyFields,
  registryKeyId,
  registryKeySecretName,
  registryPassword,
} from '../../../src/lib/api/registry-credentials.ts';
import type { OpEvent } from '../../../src/lib/events.ts';
import type { HttpSend } from '../../../src/lib/oci/http.ts';
import { rotateRegistryKey, type RotateResult } from '../../../src/lib/ops/registry/rotate-key.ts';
import { renderRotation } from '../../../src/lib/views/rotation.ts';
import { pullSecret, pushSecret } from '../../../src/templates/registry-secret.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const info = {
  registry: {
    namespace: 'kf-system',
    service: 'kf-registry',
    port: 5000,
    pushHost: 'kf-registry.kf-system.svc:5000',
    pullPrefix: 'localhost:32500/',
  },
  controller: { version: '0.1.0', namespace: 'kf-system' },
  oldestCli: '0.1.0',
} as KfInfo;
let cluster: MemoryCluster;
let writing: NodeJS.Timeout;
let warnings: string[];
let outcome: RotateResult | Error | undefined;

async function currentKey(): Promise<Buffer> {
  const secret = await cluster.get(secretType, 'kf-system', registryKeySecretName);
  return Buffer.from(secret?.data?.[registryKeyFields.current] ?? '', 'base64');
}

/** Knows every key that the Secret has. */
async function status(): Promise<object> {
  const secret = await cluster.get(secretType, 'kf-system', registryKeySecretName);
  const [current, next] = [registryKeyFields.current, registryKeyFields.next].map((field) => secret?.data?.[field]);
  const keys = [current, next].filter((key) => key !== undefined).map((key) => registryKeyId(Buffer.from(key, 'base64')));
  return { now: Math.floor(Date.now() / 1000), keys, room: { total: 1, free: 1, nearlyFull: false } };
}

/** Writes both Secrets of a space as the controller does. */
async function writeSecrets(space: string): Promise<void> {
  const key = await currentKey();
  const credential = (username: string) => ({ username, password: registryPassword(key, username) });
  for (const secret of [
    pushSecret(space, credential(`push.${space}.9`)),
    pullSecret(space, 'localhost:32500/', credential(`pull.${space}.9`)),
  ]) {
    const live = await cluster.get(secretType, space, secret.metadata.name ?? '');
    if (live === undefined) await cluster.create(secretType, secret);
    else await cluster.replace(secretType, { ...live, ...secret, metadata: live.metadata });
  }
}

beforeEach(async () => {
  vi.useFakeTimers();
  [warnings, outcome] = [[], undefined];
  const raw: HttpSend = async () => ({ status: 200, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(await status()))]) });
  cluster = Object.assign(new MemoryCluster(), { raw });
  const data = { [registryKeyFields.current]: Buffer.from('a'.repeat(64)).toString('base64') };
  await cluster.create(secretType, { metadata: { name: registryKeySecretName, namespace: 'kf-system' }, data });
  for (const name of ['one', 'broken', 'two'])
    await cluster.create(kinds.space, { metadata: { name, namespace: 'org' }, spec: { displayName: `space ${name}` } });
});
afterEach(() => {
  clearInterval(writing);
  vi.useRealTimers();
});

/** @param written the spaces whose Secrets the controller brings up to date; those of the others have no data */
async function start(written: string[]): Promise<void> {
  for (const space of ['one', 'broken', 'two']) await writeSecrets(space);
  const write = async (): Promise<void> => {
    for (const space of written) await writeSecrets(space);
    if (!written.includes('broken'))
      await cluster.mergePatch(secretType, 'broken', pushSecretName, { data: { username: null, password: null } });
  };
  writing = setInterval(() => void write(), 4_000);
  const report = (event: OpEvent): void => void (event.type === 'warning' && warnings.push(event.message));
  rotateRegistryKey({ cluster, info, report, signal: new AbortController().signal, now: () => Date.now() }).then(
    (result) => (outcome = result),
    (error: unknown) => (outcome = error as Error),
  );
}

it('ends when all spaces have new credentials', async () => {
  await start(['one', 'broken', 'two']);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(outcome).toMatchObject({ spaces: 3, leftOut: [], key: registryKeyId(await currentKey()) });
  expect(warnings).toEqual([]);
});

it('ends for the others when the Secret of a space does not stay, and names it', async () => {
  await start(['one', 'two']);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(outcome).toBeUndefined();
  await vi.advanceTimersByTimeAsync(60_000);
  const secrets = [pushSecretName, places.pullSecret];
  expect(outcome).toMatchObject({ spaces: 2, leftOut: [{ space: 'space broken', guid: 'broken', secrets }] });
  expect(warnings).toEqual([
    expect.stringContaining("Space 'space broken' (namespace 'broken') has no new credentials: its Secrets 'kf-registry-push' and "),
  ]);
  expect(JSON.stringify(renderRotation(outcome as RotateResult))).toContain('space broken (namespace broken)');
});

it('counts a space whose Secrets were right once, however short', async () => {
  await start(['one', 'broken']);
  await vi.advanceTimersByTimeAsync(6_000);
  clearInterval(writing);
  await cluster.mergePatch(secretType, 'broken', pushSecretName, { data: { username: null, password: null } });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(outcome).toBeUndefined();
  await writeSecrets('two');
  await vi.advanceTimersByTimeAsync(5_000);
  expect(outcome).toMatchObject({ spaces: 3, leftOut: [] });
});

it('blames no space when the controller has ended meanwhile', async () => {
  const leader = { name: places.leaderRecord, namespace: places.systemNamespace };
  await cluster.create(kinds.runnerInfo, {
    metadata: { ...leader, annotations: { [annotations.leaderRenewed]: new Date().toISOString() } },
    spec: { runnerName: places.leaderRecord },
  });
  await start(['one', 'two']);
  await vi.advanceTimersByTimeAsync(299_000);
  expect([outcome, warnings]).toEqual([undefined, []]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(outcome).toMatchObject({ code: 'timeout', hints: expect.arrayContaining([expect.stringContaining('kf-controller')]) as string[] });
});

it('waits for the controller when it has renewed none, and then names the namespaces', async () => {
  await start([]);
  await vi.advanceTimersByTimeAsync(299_000);
  expect(outcome).toBeUndefined();
  await vi.advanceTimersByTimeAsync(5_000);
  expect((outcome as unknown as Error).message).toBe(
    "Waited 300 s for the controller to renew the credentials of all spaces; not renewed in 'one', 'broken', 'two'.",
  );
});
