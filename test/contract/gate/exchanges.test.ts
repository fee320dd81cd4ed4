// Clients that do not read, or do not continue to send, while the registry needs memory for each of them.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { patienceMs } from '../../support/until.ts';
import { ask, basic, now, openGate, type Scene } from './support.ts';

const piece = Buffer.alloc(64 * 1024);
let scene: Scene;
let sockets: Socket[];
/** Running requests at the registry, by the last part of their path. */
let atRegistry: Set<string>;
/** Also those that have left it. */
let cameToRegistry: Set<string>;
let mostAtOnce: number;
/** Pieces of blobs that the registry has sent. */
let piecesSent: number;

beforeEach(() => {
  piecesSent = 0;
  sockets = [];
  atRegistry = new Set();
  cameToRegistry = new Set();
  mostAtOnce = 0;
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await scene.close();
});

/** Blobs have no end, except `short…` with a megabyte; `wait…` sends nothing; a manifest is answered when it has arrived completely. */
function registry(request: IncomingMessage, response: ServerResponse): void {
  const name = /([^/:]+)$/.exec(request.url ?? '')?.[1] ?? '';
  if (name === '') {
    response.end('{}');
    return;
  }
  atRegistry.add(name);
  cameToRegistry.add(name);
  mostAtOnce = Math.max(mostAtOnce, atRegistry.size);
  response.on('close', () => atRegistry.delete(name));
  if (request.method === 'PUT' || request.method === 'HEAD') {
    request.resume().on('end', () => response.writeHead(201).end());
    return;
  }
  if (name.startsWith('short')) {
    response.end(Buffer.alloc(1024 * 1024));
    return;
  }
  response.writeHead(200).flushHeaders();
  if (name.startsWith('wait')) return;
  const send = (): void => {
    do piecesSent += 1;
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', send);
  send();
}

const open = async (exchanges: { open?: number; patienceMs?: number }): Promise<void> => {
  scene = await openGate({ upstream: registry, exchanges });
};
const authorization = (space: string): string => basic(`push.${space}.${now + 60}`);
const head = (space: string, name: string, method = 'GET', kind = 'blobs/sha256:'): string =>
  `${method} /v2/${space}/app-1-packages/${kind}${name} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization(space)}\r\n`;

/** A connection that sends a request and reads nothing. */
async function send(text: string): Promise<Socket> {
  const socket = connect(scene.port('push'), '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** It may leave at once. */
const arrives = (name: string): Promise<void> => expect.poll(() => [...cameToRegistry], { timeout: patienceMs }).toContain(name);

/**
 * Waits until no more bytes are sent: the gate and the kernel accept several MiB of an answer that nobody reads, and on a busy machine that takes a
 * while.
 */
async function stalls(): Promise<void> {
  for (let before = -1; before !== piecesSent; await sleep(200)) before = piecesSent;
}

/** Requests a blob, waits until the registry can send no more of it, and reads nothing. */
async function unread(space: string, name: string): Promise<Socket> {
  const socket = await send(`${head(space, name)}\r\n`);
  await arrives(name);
  await stalls();
  return socket;
}

/** Reads until this many bytes have arrived. */
async function read(socket: Socket, bytes: number): Promise<void> {
  for (let come = 0; come < bytes;) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) await once(socket, 'readable');
    else come += chunk.length;
  }
}

/** Reads the remaining bytes. If a connection is not reset, the kernel keeps unread bytes for as long as the client likes. */
async function wayOfEnding(socket: Socket): Promise<string> {
  const ended = new Promise<string>((resolve) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? ''));
    socket.once('end', () => resolve('end'));
  });
  socket.resume();
  return ended;
}

/** Longer than a test, so that only the share of a space ends an exchange. */
const longPatienceMs = 600_000;
/** Any answer that nobody reads: the kernel may accept a little more of an older one, which makes that one the last to have moved. */
const stalled = expect.stringMatching(/^x[0-2]$/) as string;

test('unread answers are limited for all spaces together, and another space is served', async () => {
  await open({ open: 6 });
  for (let count = 0; count < 5; count += 1)
    for (const space of ['space-1', 'space-2', 'space-3']) await send(`${head(space, `${space.at(-1)}x${count}`)}\r\n`);
  await unread('space-4', 'other');
  expect((await ask(scene.port('push'), { path: '/healthz' })).status).toBe(200);
  expect((await ask(scene.port('push'), { path: '/readyz' })).status).toBe(200);
  expect((await ask(scene.port('pull'), { path: '/v2/', headers: { authorization: basic(`pull.space-5.${now + 60}`) } })).status).toBe(200);
  expect(mostAtOnce).toBeLessThanOrEqual(7);
  await expect.poll(() => atRegistry.size, { timeout: patienceMs }).toBe(6);
});

test('a space keeps its share, however many requests others send', async () => {
  await open({ open: 4, patienceMs: longPatienceMs });
  await unread('space-1', 'mine');
  for (let count = 0; count < 3; count += 1) await unread('space-2', `x${count}`);
  for (let count = 3; count < 8; count += 1) await send(`${head('space-2', `x${count}`)}\r\n`);
  await unread('space-3', 'third');
  await expect.poll(() => [...atRegistry].toSorted(), { timeout: patienceMs }).toEqual(['mine', 'third', stalled, stalled]);
  expect([...cameToRegistry].toSorted()).toEqual(['mine', 'third', 'x0', 'x1', 'x2']);
});

test('an unread answer is reset before one that the client reads', async () => {
  await open({ open: 3, patienceMs: longPatienceMs });
  const reader = await unread('space-1', 'reader');
  for (const name of ['x1', 'x2']) {
    await unread('space-1', name);
    await read(reader, 64 * 1024 * 1024);
  }
  await unread('space-2', 'other');
  await expect.poll(() => [...atRegistry].toSorted(), { timeout: patienceMs }).toEqual(['other', 'reader', stalled]);
  await read(reader, 64 * 1024 * 1024);
});

test('a space with as many requests as any other waits, and a client that leaves is forgotten', async () => {
  await open({ open: 2 });
  const first = await unread('space-1', 'x1');
  await unread('space-1', 'x2');
  const gone = await send(`${head('space-1', 'gone')}\r\n`);
  await send(`${head('space-1', 'x3')}\r\n`);
  gone.resetAndDestroy();
  await expect.poll(() => scene.lines.filter(({ path }) => path.endsWith('gone')).length, { timeout: patienceMs }).toBe(1);
  first.resetAndDestroy();
  await arrives('x3');
  expect([...atRegistry].toSorted()).toEqual(['x2', 'x3']);
});

test('an answer that the client does not read for a while is reset, and a slow answer of the registry is not', async () => {
  await open({ patienceMs: 100 });
  const patient = await unread('space-1', 'wait');
  const socket = await unread('space-1', 'x');
  await expect.poll(() => [...atRegistry], { timeout: patienceMs }).toEqual(['wait']);
  expect(await wayOfEnding(socket)).toBe('ECONNRESET');
  expect(patient.destroyed).toBe(false);
});

const answered = (name: string): Promise<void> =>
  expect
    .poll(() => scene.lines.filter(({ path, status }) => path.endsWith(name) && status === 200), { timeout: patienceMs })
    .toHaveLength(1);

test('an answer in the kernel buffer counts until the client has read it', async () => {
  await open({ open: 2 });
  const [first] = [await send(`${head('space-1', 'short1')}\r\n`), await send(`${head('space-1', 'short2')}\r\n`)];
  await answered('short1');
  await answered('short2');
  await send(`${head('space-1', 'x3')}\r\n`);
  for (let count = 0; count < 20; count += 1) expect((await ask(scene.port('push'), { path: '/readyz' })).status).toBe(200);
  expect([...atRegistry]).toEqual([]);
  await read(first, 1024 * 1024);
  await arrives('x3');
});

test('an answer in the kernel buffer is reset if the client does not read it', async () => {
  await open({ open: 1, patienceMs: 100 });
  const socket = await send(`${head('space-1', 'short')}\r\n`);
  await answered('short');
  await unread('space-1', 'x');
  expect(await wayOfEnding(socket)).toBe('ECONNRESET');
});

test('answers behind an unread answer are reset with it', async () => {
  await open({ patienceMs: 100 });
  await send(['x1', 'x2', 'x3'].map((name) => `${head('space-1', name)}\r\n`).join(''));
  await arrives('x3');
  await expect.poll(() => [...atRegistry], { timeout: patienceMs }).toEqual([]);
});

test('a client that closes its side before the answer gets a reset', async () => {
  await open({});
  const socket = await unread('space-1', 'x');
  socket.end();
  await expect.poll(() => [...atRegistry], { timeout: patienceMs }).toEqual([]);
  expect(await wayOfEnding(socket)).toBe('ECONNRESET');
});

test('manifests that the client does not finish count too', async () => {
  await open({ open: 2, patienceMs: 100 });
  const put = (name: string): Promise<Socket> =>
    send(`${head('space-1', name, 'PUT', 'manifests/')}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`);
  for (const name of ['m1', 'm2', 'm3', 'm4']) await put(name);
  await arrives('m4');
  expect(mostAtOnce).toBeLessThanOrEqual(2);
  await expect.poll(() => [...atRegistry], { timeout: patienceMs }).toEqual([]);
});

test.each(['content-length', 'transfer-encoding'])('a manifest of more than 512 KiB is refused (%s)', async (header) => {
  await open({});
  const body = Buffer.alloc(600 * 1024, ' ');
  const length = header === 'content-length' ? String(body.length) : 'chunked';
  const path = '/v2/space-1/app-1-packages/manifests/m';
  const answer = await ask(scene.port('push'), {
    method: 'PUT',
    path,
    headers: { authorization: authorization('space-1'), 'content-type': 'application/json', [header]: length },
    body,
  });
  expect([answer.status, answer.body.toString()]).toEqual([413, expect.stringContaining('"MANIFEST_INVALID"')]);
});
