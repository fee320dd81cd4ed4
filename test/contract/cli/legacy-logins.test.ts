// Logins of old kubeconfigs, which client-node renews, with the part of it that is in the bundle.
import { chmodSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { CertificateAuthority } from '../../support/certificates.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';

const bundle = bundleForTests();
afterAll(() => bundle.remove());

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

async function listen(server: Server): Promise<number> {
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

const authority = new CertificateAuthority();
const authorityData = Buffer.from(authority.cert).toString('base64');

const part = (object: object): string => Buffer.from(JSON.stringify(object)).toString('base64url');
const idToken = (claims: object): string => `${part({ alg: 'none' })}.${part(claims)}.c2ln`;
const past = 1_000_000_000;

/** Runs `kf orgs` as a user with that auth provider. @returns the Authorization headers that the API server gets, and what kf prints */
async function orgsWith(cli: Cli, provider: object): Promise<{ seen: string[]; stderr: string }> {
  const seen: string[] = [];
  const port = await listen(
    createServer(authority.server(), (request, response) => {
      seen.push(request.headers.authorization ?? '');
      response.writeHead(401).end();
    }),
  );
  const authorityFile = path.join(cli.home, 'authority.pem');
  writeFileSync(authorityFile, authority.cert);
  const kubeconfig = path.join(cli.home, 'kubeconfig');
  const clusters = [{ name: 'c', cluster: { server: `https://127.0.0.1:${String(port)}`, 'certificate-authority-data': authorityData } }];
  const contexts = [{ name: 'c', context: { cluster: 'c', user: 'u' } }];
  const users = [{ name: 'u', user: { 'auth-provider': provider } }];
  writeFileSync(kubeconfig, JSON.stringify({ clusters, contexts, users, 'current-context': 'c' }));
  const { stderr } = await cli.run(['orgs'], { env: { KUBECONFIG: kubeconfig, NODE_EXTRA_CA_CERTS: authorityFile } });
  cli.remove();
  return { seen: [...new Set(seen)], stderr };
}

/** An OpenID Connect issuer on https, which exchanges a refresh token for a new ID token. */
async function issuer(): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  let url = '';
  // All tokens are of one second: kf asks for another one after a 401, and on a busy machine that is a second later.
  const iat = Math.floor(Date.now() / 1000);
  const answer: RequestListener = (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      asked.push(`${String(request.method)} ${String(request.url)} ${new URLSearchParams(body).get('refresh_token') ?? ''}`.trim());
      response.setHeader('content-type', 'application/json');
      const claims = { iss: url, sub: 'u', aud: 'kf', iat, exp: 4_102_444_800 };
      const token = { access_token: 'a', token_type: 'bearer', expires_in: 600, id_token: idToken(claims), refresh_token: 'second' };
      const discovery = { issuer: url, token_endpoint: `${url}/token`, id_token_signing_alg_values_supported: ['none'] };
      response.end(JSON.stringify(request.url === '/token' ? token : discovery));
    });
  };
  url = `https://127.0.0.1:${String(await listen(createServer(authority.server(), answer)))}`;
  return { url, asked };
}

describe('an expired login of an old kubeconfig', () => {
  it('oidc: gets a new token from the issuer', async () => {
    const { url, asked } = await issuer();
    const config = {
      ...{ 'client-id': 'kf', 'idp-issuer-url': url, 'id-token': idToken({ exp: past }), 'refresh-token': 'first' },
    };
    const { seen, stderr } = await orgsWith(new Cli(bundle.program), { name: 'oidc', config });
    expect(asked.slice(0, 2), stderr).toEqual(['GET /.well-known/openid-configuration', 'POST /token first']);
    const { exp } = JSON.parse(Buffer.from(seen[0]?.split('.')[1] ?? '', 'base64url').toString()) as { exp: number };
    expect([seen.length, exp]).toEqual([1, 4_102_444_800]);
  });

  it.each(['azure', 'gcp'])('%s: runs the command that prints a new token', async (name) => {
    const cli = new Cli(bundle.program);
    const command = path.join(cli.home, 'login');
    writeFileSync(command, `#!/bin/sh\necho '{"credential": {"token": "new", "expiry": "2099-01-01T00:00:00Z"}}'\n`);
    chmodSync(command, 0o755);
    const config = {
      ...{ 'cmd-path': command, 'token-key': '{.credential.token}', 'expiry-key': '{.credential.expiry}' },
      ...{ 'access-token': 'old', expiry: '2001-01-01T00:00:00Z' },
    };
    const { seen, stderr } = await orgsWith(cli, { name, config });
    expect([seen, stderr]).toEqual([['Bearer new'], expect.any(String)]);
  });
});
