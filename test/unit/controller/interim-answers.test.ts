import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { ask } from '../../../src/controller/rollout/gateway-request.ts';
import { directConnection } from '../../../src/lib/oci/http.ts';
import { reachThroughGateway } from '../../../src/lib/ops/routes/http-probe.ts';

let server: Server | undefined;
afterEach(() => server?.close());

/** A server that sends interim answers as long as somebody reads them. `closed`: the client has left. */
async function startEndless(): Promise<{ port: number; closed: Promise<void> }> {
  let leave: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => (leave = resolve));
  const endless = createServer((socket) => {
    const more = (): void => {
      if (socket.destroyed) return;
      if (socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(100))) setImmediate(more);
      else socket.once('drain', more);
    };
    socket.on('error', () => undefined);
    socket.once('close', leave);
    socket.once('data', more);
  });
  server = endless;
  await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve));
  return { port: (endless.address() as AddressInfo).port, closed };
}

const refusal = /interim answers/;

test('a probe of the controller ends when an app sends interim answers without an end', async () => {
  const { port, closed } = await startEndless();
  const asked = ask({ base: `http://127.0.0.1:${port}`, host: 'a', path: '/', headers: {} }, new AbortController().signal);
  await expect(asked).rejects.toThrow(refusal);
  await closed;
});

test('a request to a registry ends when it sends interim answers without an end', async () => {
  const { port, closed } = await startEndless();
  const connection = directConnection(`127.0.0.1:${port}`);
  await expect(connection.send({ method: 'GET', path: '/v2/', headers: {} })).rejects.toThrow(refusal);
  await closed;
});

test('a command that asks an app ends when it sends interim answers without an end', async () => {
  const { port, closed } = await startEndless();
  const reached = await reachThroughGateway({ scheme: 'http', port, address: '127.0.0.1' }, 'a', '/', 60_000);
  expect(reached).toMatchObject({ ok: false, message: expect.stringMatching(refusal) as string });
  await closed;
});
