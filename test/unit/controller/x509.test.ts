// Certificates that kf makes, as Node's TLS and OpenSSL see them.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { connect, createServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createAuthority, issueServerCertificate, type Period } from '../../../src/controller/certificates/x509.ts';

const day = 24 * 3600 * 1000;
const days = (from: number, to: number): Period => ({
  notBefore: new Date(Date.now() + from * day),
  notAfter: new Date(Date.now() + to * day),
});
const authority = createAuthority('kf CA test', days(-1, 3650));
const names = ['*.apps.example.com', 'apps.example.com'];
const server = issueServerCertificate(authority, 'kf gateway', names, days(-1, 365));

const opened: { close: () => unknown }[] = [];
afterEach(() => opened.splice(0).forEach((one) => one.close()));

/** The error of a client that trusts only `ca` and asks for `name`; undefined when it accepts the certificate. */
async function clientError(pair: { certificate: string; key: string }, ca: string, name: string): Promise<string | undefined> {
  const listening = createServer({ cert: pair.certificate, key: pair.key });
  listening.on('tlsClientError', () => undefined);
  opened.push(listening);
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const { port } = listening.address() as AddressInfo;
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', servername: name, ca }, () => {
      socket.end();
      resolve(undefined);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

test('a certificate of the authority is accepted for its names by a client that trusts the authority', async () => {
  await expect(clientError(server, authority.certificate, 'shop.apps.example.com')).resolves.toBeUndefined();
  await expect(clientError(server, authority.certificate, 'apps.example.com')).resolves.toBeUndefined();
});

test('it is refused for other names, and by a client that trusts another authority of the same name', async () => {
  await expect(clientError(server, authority.certificate, 'a.b.apps.example.com')).resolves.toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  const other = createAuthority('kf CA test', days(-1, 3650));
  await expect(clientError(server, other.certificate, 'apps.example.com')).resolves.toMatch(
    /UNABLE_TO_VERIFY|CERT_SIGNATURE_FAILURE|ISSUER/,
  );
});

test('it is refused after its end', async () => {
  const old = issueServerCertificate(authority, 'kf gateway', names, days(-20, -1));
  await expect(clientError(old, authority.certificate, 'apps.example.com')).resolves.toBe('CERT_HAS_EXPIRED');
});

test('a certificate of a server cannot sign others', async () => {
  const forged = issueServerCertificate(server, 'kf gateway', ['bank.example'], days(-1, 30));
  await expect(clientError(forged, server.certificate, 'bank.example')).resolves.toBeDefined();
});

test('names its subject, its issuer, its period and its key', () => {
  const ca = new X509Certificate(authority.certificate);
  const leaf = new X509Certificate(server.certificate);
  expect(ca).toMatchObject({ subject: 'CN=kf CA test', issuer: 'CN=kf CA test', ca: true });
  expect(leaf).toMatchObject({ subject: 'CN=kf gateway', issuer: 'CN=kf CA test', ca: false });
  expect(leaf.subjectAltName).toBe('DNS:*.apps.example.com, DNS:apps.example.com');
  expect(leaf.checkIssued(ca)).toBe(true);
  expect(leaf.verify(ca.publicKey)).toBe(true);
  expect(leaf.checkPrivateKey(createPrivateKey(server.key))).toBe(true);
  expect(leaf.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
  expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  expect(leaf.validToDate.getTime() - leaf.validFromDate.getTime()).toBe(366 * day);
});
