// The certificate of the gateway: made for the installation's domains, kept, and made again when it has to be.

import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isGoodCertificate } from '../../../src/controller/certificates/gateway-certificate.ts';
import { createAuthority, issueServerCertificate } from '../../../src/controller/certificates/x509.ts';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { HttpsSettings } from '../../../src/lib/api/kf-info.ts';
import { ensureCertificateSecrets } from '../../../src/lib/ops/install/tls-secrets.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { info, startScene, type BuildScene } from './build-scene.ts';

const day = 24 * 3600 * 1000;
const api = 'korifi.cloudfoundry.org/v1alpha1';
let cluster: MemoryCluster;
let scene: BuildScene | undefined;

beforeEach(() => (cluster = new MemoryCluster()));
afterEach(async () => {
  await scene?.stop();
  scene = undefined;
});

/** As after a setup; the controller runs. */
async function start(https: HttpsSettings | undefined = { port: 443, secrets: [] }): Promise<BuildScene> {
  scene = await startScene(cluster);
  const data = { 'info.json': JSON.stringify({ ...info, gateway: { ...info.gateway, ...(https === undefined ? {} : { https }) } }) };
  await ensureCertificateSecrets(cluster);
  if (cluster.peek(configMapType, 'cf', 'kf-ca-certificate') === undefined)
    await cluster.create(configMapType, { metadata: { name: 'kf-ca-certificate', namespace: 'cf' } });
  await cluster.mergePatch(configMapType, 'cf', 'kf-info', { metadata: {}, data });
  return scene;
}

const pem = (name: string, field: string): string =>
  Buffer.from(cluster.peek(secretType, 'kf-system', name)?.data?.[field] ?? '', 'base64').toString('utf8');
const gatewayCertificate = (): X509Certificate => new X509Certificate(pem('kf-gateway-tls', 'tls.crt'));
const published = (): string | undefined => cluster.peek(configMapType, 'cf', 'kf-ca-certificate')?.data?.['ca.crt'];
const namesOf = (certificate: X509Certificate): string[] => (certificate.subjectAltName ?? '').split(', ');
const isMade = (): void => expect(pem('kf-gateway-tls', 'tls.crt')).toContain('BEGIN CERTIFICATE');

async function addDomain(name: string, status: 'True' | 'False' = 'True', settings: { internal?: boolean } = {}): Promise<void> {
  const made = await cluster.create(kinds.domain, {
    apiVersion: api,
    kind: 'CFDomain',
    metadata: { name: `guid-${name}`, namespace: 'cf' },
    spec: { name, ...settings },
  });
  const { generation = 1 } = made.metadata;
  const conditions = [{ type: 'Ready', status, reason: 'Ready', message: '', lastTransitionTime: '', observedGeneration: generation }];
  await cluster.mergePatch(kinds.domain, 'cf', `guid-${name}`, { metadata: {}, status: { conditions } }, { subresource: 'status' });
}

describe('the certificate of the gateway', () => {
  test('is signed by an authority whose certificate everybody can read, for every host of the default domain', async () => {
    await (await start()).until(isMade);
    const authority = new X509Certificate(published() ?? '');
    const certificate = gatewayCertificate();
    expect(authority.subject).toMatch(/^CN=kf CA [0-9a-f]{8} apps\.localhost$/);
    expect(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)).toBe(true);
    expect(namesOf(certificate)).toEqual(['DNS:*.apps.localhost', 'DNS:apps.localhost']);
    expect(pem('kf-gateway-tls', 'ca.crt')).toBe(published());
    expect(published()).not.toContain('PRIVATE KEY');
    const years = (authority.validToDate.getTime() - Date.now()) / (365 * day);
    expect(years).toBeCloseTo(10, 1);
    expect((certificate.validToDate.getTime() - Date.now()) / day).toBeCloseTo(365, 0);
  });

  test('is made again with the names of further domains, except internal ones and those with a Secret of the operator, and by the same authority', async () => {
    await (await start({ port: 443, secrets: [{ domain: 'own.example', namespace: 'infra', name: 'own' }] })).until(isMade);
    const before = published();
    await addDomain('apps.internal', 'True', { internal: true });
    await addDomain('shop.example');
    await addDomain('own.example');
    await addDomain('overlaps.example', 'False');
    await scene?.until(() => expect(namesOf(gatewayCertificate())).toContain('DNS:*.shop.example'));
    expect(namesOf(gatewayCertificate())).toEqual(['DNS:*.apps.localhost', 'DNS:apps.localhost', 'DNS:*.shop.example', 'DNS:shop.example']);
    expect(published()).toBe(before);
  });

  test('keeps the names of a domain whose settings change, before the domain was looked at again', async () => {
    await (await start()).until(isMade);
    await addDomain('shop.example');
    await scene?.until(() => expect(namesOf(gatewayCertificate())).toContain('DNS:*.shop.example'));
    await cluster.mergePatch(kinds.domain, 'cf', 'guid-shop.example', { metadata: {}, spec: { sharedWith: ['an-org'] } });
    await addDomain('later.example');
    await scene?.until(() => expect(namesOf(gatewayCertificate())).toContain('DNS:*.later.example'));
    expect(namesOf(gatewayCertificate())).toContain('DNS:*.shop.example');
  });

  test('stays when the controller starts again', async () => {
    await (await start()).until(isMade);
    const before = [pem('kf-ca', 'tls.key'), pem('kf-gateway-tls', 'tls.crt')];
    await scene?.stop();
    await start();
    // Written after the certificate was looked at.
    await cluster.mergePatch(configMapType, 'cf', 'kf-ca-certificate', { metadata: {}, data: { 'ca.crt': '' } });
    await scene?.stop();
    await start();
    await scene?.until(() => expect(published()).toContain('BEGIN CERTIFICATE'));
    expect([pem('kf-ca', 'tls.key'), pem('kf-gateway-tls', 'tls.crt')]).toEqual(before);
  });

  test('is made again with a new authority when an operator deletes the authority and runs setup', async () => {
    await (await start()).until(isMade);
    const before = published();
    await scene?.stop();
    const { uid = '' } = cluster.peek(secretType, 'kf-system', 'kf-ca')?.metadata ?? {};
    await cluster.delete(secretType, 'kf-system', 'kf-ca', { uid });
    await start();
    await scene?.until(() => {
      expect(published()).not.toBe(before);
      expect(gatewayCertificate().verify(new X509Certificate(published() ?? '').publicKey)).toBe(true);
    });
  });

  test('is made again when its Secret holds something else', async () => {
    await start();
    await scene?.until(isMade);
    const key = pem('kf-gateway-tls', 'tls.key');
    await scene?.stop();
    await cluster.mergePatch(secretType, 'kf-system', 'kf-gateway-tls', {
      metadata: {},
      data: { 'tls.key': Buffer.from('no key').toString('base64') },
    });
    await start();
    await scene?.until(() => expect(pem('kf-gateway-tls', 'tls.key')).toContain('PRIVATE KEY'));
    expect(pem('kf-gateway-tls', 'tls.key')).not.toBe(key);
  });
});

describe('a certificate is renewed', () => {
  const now = Date.now();
  const authority = createAuthority('kf CA test', { notBefore: new Date(now - day), notAfter: new Date(now + 3650 * day) });
  const parsed = new X509Certificate(authority.certificate);
  const names = ['*.a.example', 'a.example'];
  const issued = (left: number, total = 300): X509Certificate => {
    const period = { notBefore: new Date(now + (left - total) * day), notAfter: new Date(now + left * day) };
    return new X509Certificate(issueServerCertificate(authority, 'kf gateway', names, period).certificate);
  };

  test.each([
    [200, true],
    [101, true],
    [99, false],
    [-1, false],
    [301, false],
  ])('when a third of its time is left, or it does not count yet: with %s of 300 days left it can stay: %s', (left, good) => {
    expect(isGoodCertificate(issued(left), parsed, names, now)).toBe(good);
  });

  test('when the domains change, and when another authority of the same name signs', () => {
    expect(isGoodCertificate(issued(200), parsed, ['*.a.example'], now)).toBe(false);
    const other = createAuthority('kf CA test', { notBefore: new Date(now - day), notAfter: new Date(now + 3650 * day) });
    expect(isGoodCertificate(issued(200), new X509Certificate(other.certificate), names, now)).toBe(false);
  });
});
