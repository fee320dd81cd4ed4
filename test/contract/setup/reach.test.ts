// The message of setup about a URL that does not answer from here, with a command that works anyway.

import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createAuthority, issueServerCertificate } from '../../../src/controller/certificates/x509.ts';
import { configMapType } from '../../../src/lib/api/core.ts';
import { proveHttps, proveReach } from '../../../src/lib/ops/install/proofs.ts';
import { resolvePlan, type SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

async function gatewayThat(answers: (host: string | undefined) => number | undefined): Promise<number> {
  server = createServer((request, response) => {
    const status = answers(request.headers.host);
    if (status !== undefined) response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

const plan = (request: SetupRequest) => {
  const found = resolvePlan(request, '0.1.0', 'hostport');
  return { ...found, org: { ...found.org, guid: '0123456789abcdef' } };
};
const portForward = 'kubectl port-forward -n kf-node deployment/kf-gateway 8000';
const request = "curl -H 'Host: kf-setup-check-01234567.apps.localhost' http://127.0.0.1:8000/healthz";

test('a gateway that answers with the name of this installation is reachable', async () => {
  const port = await gatewayThat((host) => (host === 'kf-setup-check-01234567.apps.localhost' ? 200 : 404));
  expect(await proveReach(plan({ gatewayPort: port }), 1000)).toEqual({
    url: `http://kf-setup-check-01234567.apps.localhost:${port}`,
    reachable: true,
  });
});

test('the gateway of another cluster at the same address does not count', async () => {
  const port = await gatewayThat(() => 404);
  expect(await proveReach(plan({ gatewayPort: port }), 0)).toMatchObject({
    reachable: false,
    message: 'The gateway answers 404 for kf-setup-check-01234567.apps.localhost.',
    hints: ['kubectl get httproute -n kf-system kf-setup-check -o yaml'],
  });
});

test('a port without a listener is reported, with the way through the API server', async () => {
  const port = await gatewayThat(() => 200);
  await new Promise((resolve) => server?.close(resolve));
  const { message, hints } = await proveReach(plan({ gatewayPort: port }), 0);
  expect(message).toMatch(/^Nothing answers at the address and port of the gateway from this machine\. \(.*ECONNREFUSED/);
  expect(hints?.slice(0, 2)).toEqual([portForward, request]);
});

test('a gateway that does not answer is reported too', async () => {
  const port = await gatewayThat(() => undefined);
  const { message, hints } = await proveReach(plan({ gatewayPort: port }), 0);
  expect(message).toMatch(/^The gateway did not answer from this machine in time\./);
  expect(hints?.[0]).toBe(portForward);
});

test('an unknown host name is reported with the address to which it must point', async () => {
  const { message } = await proveReach(plan({ domain: 'apps.kf.invalid' }), 0);
  expect(message).toMatch(
    /^The name kf-setup-check-01234567\.apps\.kf\.invalid does not resolve here; point \*\.apps\.kf\.invalid at the gateway\./,
  );
});

test('for a gateway that setup did not install the hint shows its own object', async () => {
  const port = await gatewayThat(() => undefined);
  const { hints } = await proveReach(plan({ gatewayPort: port, gateway: 'infra/public' }), 0);
  expect(hints?.[0]).toBe('kubectl get gateway -n infra public -o yaml');
});

describe('https', () => {
  const day = 24 * 3_600_000;
  const period = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + 90 * day) };
  const authority = createAuthority('kf CA test', period);
  const server = issueServerCertificate(authority, 'kf gateway', ['*.apps.localhost'], period);

  /** The port of a gateway with this certificate. */
  async function secureGateway({ certificate, key } = server): Promise<number> {
    secure = createSecureServer({ cert: certificate, key }, (_, response) => response.writeHead(200).end());
    await new Promise<void>((resolve) => secure?.listen(0, '127.0.0.1', resolve));
    return (secure.address() as AddressInfo).port;
  }

  /** A cluster whose controller has published this certificate. */
  async function publishing(certificate: string): Promise<MemoryCluster> {
    const cluster = new MemoryCluster();
    await cluster.create(configMapType, { metadata: { name: 'kf-ca-certificate', namespace: 'cf' }, data: { 'ca.crt': certificate } });
    return cluster;
  }

  let secure: SecureServer | undefined;
  afterEach(() => {
    secure?.closeAllConnections();
    secure?.close();
    secure = undefined;
  });

  test('is reachable with a certificate of the published authority', async () => {
    const port = await secureGateway();
    expect(await proveHttps(await publishing(authority.certificate), plan({ httpsPort: port }), 1000)).toEqual({
      url: `https://kf-setup-check-01234567.apps.localhost:${port}`,
      reachable: true,
    });
  });

  test('is not reachable with a certificate of another authority, and the reason is named', async () => {
    const port = await secureGateway();
    const other = createAuthority('kf CA other', period);
    const { reachable, message, hints } = (await proveHttps(await publishing(other.certificate), plan({ httpsPort: port }), 0)) ?? {};
    expect(reachable).toBe(false);
    expect(message).toMatch(/^https:\/\/kf-setup-check-01234567\.apps\.localhost:\d+ does not answer from here: unable to verify/);
    expect(hints).toEqual(['kubectl get gateway -n kf-node kf -o yaml', 'kubectl get secret -n kf-system kf-gateway-tls']);
  });

  test('is not tried when it is off', async () => {
    expect(await proveHttps(new MemoryCluster(), plan({ https: 'off' }), 0)).toBeUndefined();
  });

  test('is what the check of http asks when http is redirected', async () => {
    const port = await secureGateway();
    expect(await proveReach(plan({ httpsPort: port, httpRedirect: 'on' }), 1000)).toEqual({
      url: `https://kf-setup-check-01234567.apps.localhost:${port}`,
      reachable: true,
    });
  });
});
