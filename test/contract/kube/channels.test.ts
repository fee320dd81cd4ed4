// Commands in containers and ports of pods, over WebSockets from a real server: streams, exit codes, ends, and the connection.

import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { connect } from '../../../src/lib/kube/client.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { attach, exec } from '../../../src/lib/kube/exec.ts';
import { portForward } from '../../../src/lib/kube/port-forward.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';
import type { KubeconfigParts, ServerOptions } from '../../support/apiserver.ts';
import { CertificateAuthority } from '../../support/certificates.ts';
import { ConnectProxy } from '../../support/connect-proxy.ts';
import type { ProxyOptions } from '../../support/connect-proxy.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Peer {
  socket: WebSocket;
  request: IncomingMessage;
  clientName: string | undefined;
}

interface PeerOptions {
  /** The selected one of the offered subprotocols. */
  protocol?: string;
  autoPong?: boolean;
}

const requests: IncomingMessage[] = [];

/** An API server whose upgrades are handled by `serve`. */
async function serving(
  serve: (peer: Peer) => void,
  { protocol = 'v5.channel.k8s.io', autoPong = true }: PeerOptions = {},
  options: ServerOptions = {},
): Promise<ScriptedApiServer> {
  requests.length = 0;
  const server = await ScriptedApiServer.start(options);
  closers.push(() => server.stop());
  const sockets = new WebSocketServer({
    noServer: true,
    autoPong,
    handleProtocols: (offered) => (offered.has(protocol) ? protocol : false),
  });
  return server.onUpgrade((request, duplex, head) => {
    requests.push(request);
    const peer = (duplex as Partial<TLSSocket>).getPeerCertificate?.();
    const clientName = peer?.subject?.CN as string | undefined;
    sockets.handleUpgrade(request, duplex, head, (socket) => serve({ socket, request, clientName }));
  });
}

async function open(server: ScriptedApiServer, parts: KubeconfigParts = {}, env: Record<string, string> = {}): Promise<Cluster> {
  const cluster = await connect({ kubeconfig: server.kubeconfig(parts), env });
  closers.push(() => cluster.close());
  return cluster;
}

const send = (socket: WebSocket, channel: number, data: string | Buffer): void =>
  socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(data)]), () => undefined);
const success = JSON.stringify({ kind: 'Status', status: 'Success' });
const exitWith = (code: number): string =>
  JSON.stringify({ status: 'Failure', reason: 'NonZeroExitCode', details: { causes: [{ reason: 'ExitCode', message: String(code) }] } });
const end = (socket: WebSocket, status: string): void => {
  send(socket, 3, status);
  socket.close(1000);
};
const command = { ns: 'space', pod: 'app-0', container: 'application', command: ['sh', '-c', 'echo a & b'] };

describe('a command in a container', () => {
  test('has its output on two streams, and an exit code', async () => {
    const server = await serving(({ socket }) => {
      for (const part of ['o', 'ut']) send(socket, 1, part);
      send(socket, 2, 'err');
      end(socket, exitWith(3));
    });
    const { stdin, stdout, stderr, exitCode } = await exec(await open(server), command);
    expect(await Promise.all([text(stdout), text(stderr), exitCode])).toEqual(['out', 'err', 3]);
    expect(stdin).toBeUndefined();
    const url = new URL(requests[0]?.url ?? '', 'http://x');
    expect(url.pathname).toBe('/api/v1/namespaces/space/pods/app-0/exec');
    expect(url.searchParams.getAll('command')).toEqual(command.command);
    expect(Object.fromEntries([...url.searchParams].filter(([key]) => key !== 'command'))).toEqual({
      ...{ container: 'application', stdin: 'false', stdout: 'true', stderr: 'true', tty: 'false' },
    });
    expect(requests[0]?.headers['sec-websocket-protocol']).toBe('v5.channel.k8s.io,v4.channel.k8s.io');
  });

  test('gets its input to the end, however large', async () => {
    const size = 5_000_000;
    const server = await serving(({ socket }) => {
      let read = 0;
      socket.on('message', (data) => {
        const message = data as Buffer;
        if (message[0] === 0) read += message.length - 1;
        if (message.length !== 2 || message[0] !== 255) return;
        send(socket, 1, `channel ${String(message[1])} closed after ${read}`);
        end(socket, success);
      });
    });
    const { stdin, stdout, exitCode } = await exec(await open(server), { ...command, stdin: true });
    stdin?.end(Buffer.alloc(size, 'x'));
    expect([await text(stdout), await exitCode]).toEqual([`channel 0 closed after ${size}`, 0]);
  });

  test('runs also without v5 of the protocol, but its input has no end', async () => {
    const seen: number[][] = [];
    const server = await serving(
      ({ socket }) => {
        socket.on('message', (data) => {
          const message = data as Buffer;
          seen.push([...message]);
          send(socket, 1, message.subarray(1));
          end(socket, success);
        });
      },
      { protocol: 'v4.channel.k8s.io' },
    );
    const { stdin, stdout, exitCode } = await exec(await open(server), { ...command, stdin: true });
    stdin?.end('x');
    expect([await text(stdout), await exitCode]).toEqual(['x', 0]);
    expect(seen).toEqual([[0, 120]]);
  });

  test('gets the size of its terminal', async () => {
    const server = await serving(({ socket }) => {
      socket.on('message', (data) => {
        const message = data as Buffer;
        send(socket, 1, `${String(message[0])} ${message.subarray(1).toString()}`);
        end(socket, success);
      });
    });
    const { stdout, resize } = await attach(await open(server), { ns: 'space', pod: 'app-0', tty: true, stdin: true });
    await resize({ columns: 80, rows: 24 });
    expect(await text(stdout)).toBe('4 {"Width":80,"Height":24}');
    expect(requests[0]?.url).toBe('/api/v1/namespaces/space/pods/app-0/attach?stdin=true&stdout=true&stderr=false&tty=true');
  });

  test('that cannot be started is reported with the text of the runtime', async () => {
    const message = 'exec: "nano": executable file not found in $PATH';
    const server = await serving(({ socket }) =>
      end(socket, JSON.stringify({ status: 'Failure', reason: 'InternalError', code: 500, message })),
    );
    const { exitCode } = await exec(await open(server), command);
    await expect(exitCode).rejects.toMatchObject({ code: 'failed', message: `Error from Kubernetes: ${message}`, status: 500 });
  });

  test('whose output is not read is paused, and continues when it is read', async () => {
    const [chunk, chunks] = [Buffer.alloc(64 * 1024, 'x'), 400];
    let sent = 0;
    const server = await serving(({ socket }) => {
      const next = (): void => {
        if (sent === chunks) end(socket, success);
        else socket.send(Buffer.concat([Buffer.from([1]), chunk]), () => (sent++, next()));
      };
      next();
    });
    const { stdout, exitCode } = await exec(await open(server), command);
    const before = await stableCount(() => sent);
    expect(before).toBeLessThan(chunks);
    expect((await text(stdout)).length).toBe(chunks * chunk.length);
    expect(await exitCode).toBe(0);
  });
});

/** A count that has stopped growing. */
async function stableCount(look: () => number): Promise<number> {
  let last = -1;
  await expect
    .poll(
      () => {
        const now = look();
        const isStable = now === last && now > 0;
        last = now;
        return isStable;
      },
      { interval: 200, timeout: 20_000 },
    )
    .toBe(true);
  return last;
}

describe('a connection that ends without a result', () => {
  test('because it was cut is reported, on the streams and as the outcome', async () => {
    const server = await serving(({ socket }) => {
      send(socket, 1, 'half');
      socket.on('message', () => server.dropConnections());
    });
    const { stdin, stdout, exitCode } = await exec(await open(server), { ...command, stdin: true });
    stdout.once('data', () => stdin?.write('x'));
    await expect(text(stdout)).rejects.toMatchObject({ code: 'unreachable' });
    await expect(exitCode).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('in order but without a status is not a success', async () => {
    const server = await serving(({ socket }) => socket.close(1000));
    const { exitCode } = await exec(await open(server), command);
    await expect(exitCode).rejects.toMatchObject({
      code: 'unreachable',
      cause: expect.objectContaining({ message: 'the connection ended before the command did' }) as Error,
    });
  });

  test('is lost if the server answers no ping', async () => {
    const server = await serving(() => undefined, { autoPong: false });
    const { exitCode } = await exec(await open(server), { ...command, pingMs: 50 });
    await expect(exitCode).rejects.toMatchObject({
      code: 'unreachable',
      cause: expect.objectContaining({ message: 'no answer to a ping within 50 ms' }) as Error,
    });
  });

  test('may be silent for long if the server answers pings', async () => {
    let pings = 0;
    const server = await serving(({ socket }) => {
      (socket as unknown as NodeJS.EventEmitter).on('ping', () => {
        pings += 1;
        if (pings === 5) end(socket, success);
      });
    });
    // Enough time for an answer on a busy machine, because a late one ends the command.
    const { exitCode } = await exec(await open(server), { ...command, pingMs: 500 });
    expect(await exitCode).toBe(0);
  });

  test('ends when the command is interrupted, while it is opened and later', async () => {
    const early = new AbortController();
    const server = await ScriptedApiServer.start();
    closers.push(() => server.stop());
    server.onUpgrade(() => early.abort());
    await expect(exec(await open(server), { ...command, signal: early.signal })).rejects.toMatchObject({ code: 'interrupted' });

    const later = new AbortController();
    const running = await serving(({ socket }) => send(socket, 1, 'x'));
    const { stdout, exitCode } = await exec(await open(running), { ...command, signal: later.signal });
    stdout.once('data', () => later.abort());
    await expect(exitCode).rejects.toMatchObject({ code: 'interrupted' });
  });

  test('causes no error if the caller closed it', async () => {
    const closed = Promise.withResolvers<number>();
    const server = await serving(({ socket }) => socket.on('close', (code) => closed.resolve(code)));
    const { stdout, close } = await exec(await open(server), command);
    close();
    expect([await text(stdout), await closed.promise]).toEqual(['', 1000]);
  });
});

describe('the connection to a container', () => {
  async function through(
    proxyOptions: ProxyOptions,
    parts: (proxy: ConnectProxy) => KubeconfigParts,
    options: ServerOptions,
  ): Promise<[Peer[], ConnectProxy]> {
    const peers: Peer[] = [];
    const server = await serving(
      (peer) => {
        peers.push(peer);
        end(peer.socket, success);
      },
      {},
      options,
    );
    const proxy = await ConnectProxy.start(proxyOptions);
    closers.push(() => proxy.stop());
    const { exitCode } = await exec(await open(server, parts(proxy)), command);
    expect(await exitCode).toBe(0);
    expect(proxy.tunnels).toEqual([`127.0.0.1:${String(server.port)}`]);
    return [peers, proxy];
  }

  test('uses a proxy, with its credentials, and shows the client certificate inside of the tunnel', async () => {
    const authority = new CertificateAuthority();
    const me = authority.client('jane');
    const inline = (pem: string): string => Buffer.from(pem).toString('base64');
    const user = { 'client-certificate-data': inline(me.cert), 'client-key-data': inline(me.key) };
    const cluster = (proxy: ConnectProxy): object => ({ 'proxy-url': `http://me:p%40ss@127.0.0.1:${String(proxy.port)}` });
    const [peers] = await through({ credentials: 'me:p@ss' }, (proxy) => ({ cluster: cluster(proxy), user }), { authority });
    expect(peers.map(({ clientName }) => clientName)).toEqual(['jane']);
  });

  test('uses a proxy that speaks TLS itself', async () => {
    const authority = new CertificateAuthority();
    await through({ authority }, (proxy) => ({ cluster: { 'proxy-url': proxy.url } }), { authority });
  });

  test('names a proxy that refuses', async () => {
    const server = await serving(() => undefined);
    const proxy = await ConnectProxy.start({ credentials: 'me:secret' });
    closers.push(() => proxy.stop());
    const cluster = await open(server, { cluster: { 'proxy-url': proxy.url } });
    await expect(exec(cluster, command)).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('asks for a user and a password') as string,
    });
  });

  test("is refused if the server's authority is not the one of the kubeconfig", async () => {
    const server = await serving(() => undefined, {}, { authority: new CertificateAuthority() });
    const ca = Buffer.from(new CertificateAuthority().cert).toString('base64');
    const cluster = await open(server, { cluster: { 'certificate-authority-data': ca } });
    await expect(exec(cluster, command)).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('sends the token, and a renewed one after a refusal', async () => {
    const server = await serving(({ socket }) => end(socket, success));
    const take = server.onUpgrade.bind(server);
    const tokens: (string | undefined)[] = [];
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'v5.channel.k8s.io' });
    take((request, duplex, head) => {
      tokens.push(request.headers.authorization);
      if (request.headers.authorization === 'Bearer token-1') {
        const body = JSON.stringify({ kind: 'Status', status: 'Failure', reason: 'Unauthorized', message: 'Unauthorized', code: 401 });
        duplex.end(`HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
        return;
      }
      sockets.handleUpgrade(request, duplex, head, (socket) => end(socket, success));
    });
    const plugin = { apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Never', ...tokenPlugin() };
    const { exitCode } = await exec(await open(server, { user: { exec: plugin } }, { PATH: process.env['PATH'] ?? '' }), command);
    expect(await exitCode).toBe(0);
    expect(tokens).toEqual(['Bearer token-1', 'Bearer token-2']);
  });

  test('reports a missing right as any other request does', async () => {
    const server = await ScriptedApiServer.start();
    closers.push(() => server.stop());
    server.on('GET /readyz', (call) => call.text('ok'));
    const message = 'pods "app-0" is forbidden: User "jane" cannot create resource "pods/exec" in API group "" in the namespace "space"';
    const body = JSON.stringify({ kind: 'Status', status: 'Failure', reason: 'Forbidden', message, code: 403 });
    server.onUpgrade((_, duplex) =>
      duplex.end(`HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
    );
    await expect(exec(await open(server), command)).rejects.toMatchObject({
      code: 'forbidden',
      missingRight: { user: 'jane', verb: 'create', resource: 'pods/exec', ns: 'space' },
    });
  });

  test('names a server in between that removes the upgrade from the request', async () => {
    const server = await ScriptedApiServer.start();
    closers.push(() => server.stop());
    server.onUpgrade((_, duplex) => duplex.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    await expect(exec(await open(server), command)).rejects.toThrow(/does not take WebSockets: it answered 200 instead of an upgrade\.$/);
  });
});

/** An exec plugin that returns another token each time. */
function tokenPlugin(): { command: string; args: string[] } {
  const count = `/tmp/kf-token-${process.pid}-${Date.now()}`;
  closers.push(async () => (await import('node:fs/promises')).rm(count, { force: true }));
  const script = `n=$(( $(cat ${count} 2>/dev/null || echo 0) + 1 )); echo $n > ${count}
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"token-%s"}}' $n`;
  return { command: 'sh', args: ['-c', script] };
}

describe('a port of a pod', () => {
  const place = { ns: 'space', pod: 'app-0', port: 8080 };
  const port = Buffer.from([8080 & 0xff, 8080 >> 8]);
  const v4 = { protocol: 'v4.channel.k8s.io' };

  test('is one stream in both directions', async () => {
    const server = await serving(({ socket }) => {
      for (const channel of [0, 1]) send(socket, channel, port);
      socket.on('message', (data) => {
        const message = data as Buffer;
        send(socket, 0, `${String(message[0])}:${message.subarray(1).toString()}`);
        socket.close(1000);
      });
    }, v4);
    const stream = await portForward(await open(server), place);
    stream.write('ping');
    expect(await text(stream)).toBe('0:ping');
    expect(requests[0]?.url).toBe('/api/v1/namespaces/space/pods/app-0/portforward?ports=8080');
  });

  test('without a listener fails with the text of the node', async () => {
    const server = await serving(({ socket }) => {
      for (const channel of [0, 1]) send(socket, channel, port);
      send(socket, 1, 'connection refused');
    }, v4);
    const stream = await portForward(await open(server), place);
    await expect(text(stream)).rejects.toThrow('Error from Kubernetes: port 8080 of pod space/app-0: connection refused');
  });

  test('carries more data than fits into memory while its reader is slow', async () => {
    const size = 20_000_000;
    const server = await serving(({ socket }) => {
      for (const channel of [0, 1]) send(socket, channel, port);
      const next = (left: number): void => {
        if (left === 0) socket.close(1000);
        else socket.send(Buffer.concat([Buffer.from([0]), Buffer.alloc(100_000)]), () => next(left - 100_000));
      };
      next(size);
    }, v4);
    let read = 0;
    for await (const chunk of await portForward(await open(server), place)) read += (chunk as Buffer).length;
    expect(read).toBe(size);
  });

  test('that is cut ends with an error', async () => {
    const server = await serving(({ socket }) => {
      for (const channel of [0, 1]) send(socket, channel, port);
      socket.on('message', () => server.dropConnections());
    }, v4);
    const stream = await portForward(await open(server), place);
    stream.write('x');
    await expect(text(stream)).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('is closed together with its stream', async () => {
    const closed = Promise.withResolvers<number>();
    const server = await serving(({ socket }) => socket.on('close', (code) => closed.resolve(code)), v4);
    const stream = await portForward(await open(server), place);
    stream.destroy();
    expect(await closed.promise).toBe(1000);
  });
});
