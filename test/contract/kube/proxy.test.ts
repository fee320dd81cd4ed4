import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { connect } from '../../../src/lib/kube/client.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';
import type { Handler, KubeconfigParts, ServerOptions } from '../../support/apiserver.ts';
import { CertificateAuthority } from '../../support/certificates.ts';
import { ConnectProxy } from '../../support/connect-proxy.ts';
import type { ProxyOptions } from '../../support/connect-proxy.ts';

const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(options: ServerOptions, proxyOptions: ProxyOptions): Promise<{ server: ScriptedApiServer; proxy: ConnectProxy }> {
  const server = await ScriptedApiServer.start(options);
  const proxy = await ConnectProxy.start(proxyOptions);
  closers.push(
    () => server.stop(),
    () => proxy.stop(),
  );
  server.on('GET /api/v1/pods', (call) => call.json({ metadata: { resourceVersion: '1' }, items: [] }));
  return { server, proxy };
}

async function open(server: ScriptedApiServer, parts: KubeconfigParts): Promise<Cluster> {
  const cluster = await connect({ kubeconfig: server.kubeconfig(parts), env: {} });
  closers.push(() => cluster.close());
  return cluster;
}

const inline = (pem: string): string => Buffer.from(pem).toString('base64');

describe('a proxy before the API server', () => {
  test('carries TLS in a tunnel, with the credentials of its URL, and its connections are kept', async () => {
    const authority = new CertificateAuthority();
    const { server, proxy } = await start({ authority }, { credentials: 'me:p@ss' });
    const me = authority.client('jane');
    const user = { 'client-certificate-data': inline(me.cert), 'client-key-data': inline(me.key) };
    const cluster = await open(server, { cluster: { 'proxy-url': `http://me:p%40ss@127.0.0.1:${String(proxy.port)}` }, user });
    await cluster.list(podType);
    await cluster.list(podType);
    expect(proxy.tunnels).toEqual([`127.0.0.1:${String(server.port)}`]);
    expect(server.calls.map(({ clientName }) => clientName)).toEqual(['jane', 'jane']);
  });

  test("lets an API server that is addressed by IP be verified by that address, not by the proxy's name", async () => {
    const authority = new CertificateAuthority();
    const { server, proxy } = await start({ authority, names: ['127.0.0.1'] }, {});
    await (await open(server, { cluster: { 'proxy-url': `http://localhost:${String(proxy.port)}` } })).list(podType);
    expect(proxy.tunnels).toHaveLength(1);
  });

  test('may speak TLS itself, signed by the authority of the kubeconfig', async () => {
    const authority = new CertificateAuthority();
    const { server, proxy } = await start({ authority }, { authority });
    await (await open(server, { cluster: { 'proxy-url': proxy.url } })).list(podType);
    expect(proxy.tunnels).toHaveLength(1);
  });

  test('also leads to a server without TLS', async () => {
    const { server, proxy } = await start({}, {});
    await (await open(server, { cluster: { 'proxy-url': proxy.url } })).list(podType);
    expect(proxy.tunnels).toHaveLength(1);
  });

  test("that requires a password is named, and its refusal is not taken for the API server's", async () => {
    const { server, proxy } = await start({ authority: new CertificateAuthority() }, { credentials: 'me:secret' });
    const cluster = await open(server, { cluster: { 'proxy-url': `http://me:wrong@127.0.0.1:${String(proxy.port)}` } });
    await expect(cluster.list(podType)).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/through the proxy http:\/\/127\.0\.0\.1:\d+ .*asks for a user and a password/) as string,
    });
  });

  test('that is away is named', async () => {
    const { server, proxy } = await start({ authority: new CertificateAuthority() }, {});
    await proxy.stop();
    closers.pop();
    const cluster = await open(server, { cluster: { 'proxy-url': proxy.url } });
    await expect(cluster.list(podType)).rejects.toThrow(/the proxy http:\/\/127\.0\.0\.1:\d+ cannot be reached/);
  });

  test('that inspects the traffic works if the kubeconfig trusts its authority, and the caller sees that it cuts large bodies', async () => {
    const inspector = new CertificateAuthority('proxy authority');
    const { server, proxy } = await start({ authority: new CertificateAuthority() }, { inspectWith: inspector, maxBodyBytes: 1_000_000 });
    server.on('PATCH /upload', (call) => call.text(String(call.body.length)));
    const cluster = await open(server, { cluster: { 'proxy-url': proxy.url, 'certificate-authority-data': inline(inspector.cert) } });
    await cluster.list(podType);
    expect((await cluster.raw({ method: 'PATCH', path: '/upload', body: Buffer.alloc(900_000, 'x') })).status).toBe(200);
    const cut = await cluster.raw({ method: 'PATCH', path: '/upload', body: Buffer.alloc(4_000_000, 'x') }).then(
      ({ status }) => status,
      (error: unknown) => (error as { code: string }).code,
    );
    expect([413, 'unreachable']).toContain(cut);
    expect(server.callsOf('PATCH /upload')).toHaveLength(1);
    await cluster.list(podType);
  });

  test('with its own authority carries API, watch, logs and upload, also when the token is renewed in between', async () => {
    const inspector = new CertificateAuthority('proxy authority');
    const { server, proxy } = await start({ authority: new CertificateAuthority() }, { inspectWith: inspector });
    const dir = mkdtempSync(join(tmpdir(), 'kf-proxy-'));
    closers.push(() => rmSync(dir, { recursive: true }));
    const tokenFile = join(dir, 'token');
    writeFileSync(tokenFile, 'token 0');
    let valid = 0;
    const guarded =
      (handler: Handler): Handler =>
      (call) =>
        call.headers.authorization === `Bearer token ${String(valid)}` ? handler(call) : call.fail(401, 'Unauthorized', 'Unauthorized');
    server.on(
      'GET /api/v1/pods',
      guarded((call) => call.json({ metadata: {}, items: [] })),
    );
    server.on(
      'GET /api/v1/configmaps',
      guarded(async (call) => {
        await call.events({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } });
        call.end();
      }),
    );
    server.on(
      'GET .*/log',
      guarded((call) => call.text('hello\n')),
    );
    server.on(
      'PUT /upload',
      guarded((call) => call.text(String(call.body.length))),
    );
    const cluster = await open(server, {
      cluster: { 'proxy-url': proxy.url, 'certificate-authority-data': inline(inspector.cert) },
      user: { tokenFile },
    });
    const ways = [
      () => cluster.list(podType),
      async () => {
        const events: unknown[] = [];
        for await (const event of cluster.watch(configMapType)) events.push(event);
        expect(events).toHaveLength(1);
      },
      async () => expect(String(await cluster.logs('ns', 'p').then((stream) => stream.toArray()))).toBe('hello\n'),
      async () => expect((await cluster.raw({ method: 'PUT', path: '/upload', body: Buffer.alloc(100_000, 'x') })).status).toBe(200),
    ];
    for (const way of ways) {
      await way();
      valid++;
      writeFileSync(tokenFile, `token ${String(valid)}`);
    }
    expect(server.failures).toEqual([]);
    // Each request except the first met an expired token, and was repeated once.
    expect(server.calls).toHaveLength(7);
  });

  test('that breaks connections in the middle of a request does not break a command', async () => {
    const { server, proxy } = await start({ authority: new CertificateAuthority() }, {});
    let asked = 0;
    server.on('GET /api/v1/pods', (call) => {
      asked += 1;
      if (asked % 2 === 1) proxy.breakTunnels();
      else call.json({ metadata: { resourceVersion: '1' }, items: [] });
    });
    const cluster = await open(server, { cluster: { 'proxy-url': proxy.url } });
    for (let index = 0; index < 6; index++) await cluster.list(podType);
    expect([asked, proxy.tunnels.length]).toEqual([12, 7]);
  });
});
