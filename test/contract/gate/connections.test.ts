import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { registryPassword } from '../../../src/lib/api/registry-credentials.ts';
import { ask, basic, key, now, openGate, type Scene } from './support.ts';

const user = `push.space-one.${now + 3_600}`;
const password = registryPassword(key, user);
let scene: Scene;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await scene.close();
});

/** A connection from an address of this machine that sends `text` and waits. */
async function hold(from: string, text: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: scene.port('push'), localAddress: from });
  sockets.push(socket);
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
  socket.write(text);
  return socket;
}

const endless = `GET /v2/ HTTP/1.1\r\nHost: gate\r\nX-Long: ${'x'.repeat(4_000)}`;
const alive = (): number => sockets.filter((socket) => !socket.destroyed && !socket.closed).length;
const version = async (): Promise<number> =>
  (await ask(scene.port('push'), { path: '/v2/', headers: { authorization: basic(user) } })).status;

describe('connections that send headers without an end', () => {
  test('from one address are limited, and other clients are served', async () => {
    scene = await openGate({ connections: { strangersPerAddress: 8 } });
    for (let count = 0; count < 60; count += 1) await hold('127.0.0.2', endless);
    await expect.poll(alive).toBe(8);
    expect(await version()).toBe(200);
  });

  test('from many addresses close the oldest one of the address with the most', async () => {
    scene = await openGate({ connections: { strangersPerAddress: 8, strangers: 20 } });
    for (let host = 1; host <= 12; host += 1) for (let count = 0; count < 6; count += 1) await hold(`127.0.1.${host}`, endless);
    await expect.poll(alive).toBe(20);
    expect(await version()).toBe(200);
    expect(await version()).toBe(200);
  });
});

test('a space has a limited number of connections, independent of other spaces', async () => {
  scene = await openGate({ connections: { perSpace: 2 } });
  const request = (name: string, secret: string): string =>
    `GET /v2/ HTTP/1.1\r\nHost: gate\r\nAuthorization: Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}\r\n\r\n`;
  const answered = async (name: string, secret: string): Promise<string> => {
    const socket = await hold('127.0.0.1', request(name, secret));
    const text = await new Promise<string>((resolve) => socket.once('data', (data: Buffer) => resolve(data.toString())));
    return text.slice(9, 12);
  };
  expect([await answered(user, password), await answered(user, password)]).toEqual(['200', '200']);
  expect(await answered(user, password)).toBe('429');
  const other = `push.space-two.${now + 3_600}`;
  expect(await answered(other, registryPassword(key, other))).toBe('200');
  sockets[0]?.destroy();
  await expect.poll(() => answered(user, password)).toBe('200');
});

describe('a connection that does not wait for answers', () => {
  const line = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: gate\r\nAuthorization: ${basic(user, password)}\r\n\r\n`;

  test('is closed, and the registry sees few of its requests', async () => {
    let asked = 0;
    scene = await openGate({ upstream: () => void (asked += 1) });
    const socket = await hold('127.0.0.1', line('/v2/').repeat(5_000));
    await expect.poll(() => socket.destroyed).toBe(true);
    expect(asked).toBeLessThanOrEqual(8);
  });

  test.each(['/healthz', '/readyz'])('is closed also if it requests %s, which needs no credential', async (path) => {
    scene = await openGate();
    const socket = await hold('127.0.0.1', `GET ${path} HTTP/1.1\r\nHost: gate\r\n\r\n`.repeat(50_000));
    await expect.poll(() => socket.destroyed).toBe(true);
  });

  test('stays if it waits for each answer', async () => {
    scene = await openGate();
    const socket = await hold('127.0.0.1', '');
    let answers = 0;
    for (; answers < 50; answers += 1) {
      const answer = new Promise<string>((resolve) => socket.once('data', (data: Buffer) => resolve(data.toString())));
      socket.write(line('/v2/'));
      expect(await answer).toMatch(/^HTTP\/1.1 200 /);
    }
    expect(socket.destroyed).toBe(false);
  });
});
