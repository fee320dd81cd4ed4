// Certificates of cert-manager: one for each domain, a listener of the Gateway for each that was issued, and kf's own for all others.

import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wantedListeners } from '../../../src/controller/certificates/issued.ts';
import { certificateType, type Certificate } from '../../../src/lib/api/cert-manager.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { gatewayType, type Gateway, type Listener } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { HttpsSettings } from '../../../src/lib/api/kf-info.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFDomain } from '../../../src/lib/api/types.generated.ts';
import { ensureCertificateSecrets } from '../../../src/lib/ops/install/tls-secrets.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { info, startScene, type BuildScene } from './build-scene.ts';

const ns = 'kf-node';
const issuer = { name: 'an-authority' };
const allowedRoutes = { namespaces: { from: 'Selector' } };
const own: Listener = {
  name: 'https-apps',
  port: 8443,
  protocol: 'HTTPS',
  allowedRoutes,
  tls: { mode: 'Terminate', certificateRefs: [{ group: '', kind: 'Secret', name: 'kf-gateway-tls', namespace: 'kf-system' }] },
};
const setupListeners: Listener[] = [{ name: 'http-apps', port: 8000, protocol: 'HTTP', allowedRoutes }, own];
let cluster: MemoryCluster;
let scene: BuildScene;

async function setHttps(https: HttpsSettings): Promise<void> {
  const data = { 'info.json': JSON.stringify({ ...info, gateway: { ...info.gateway, https } }) };
  await cluster.mergePatch(configMapType, 'cf', 'kf-info', { metadata: {}, data });
}

beforeEach(async () => {
  cluster = new MemoryCluster();
  scene = await startScene(cluster);
  await ensureCertificateSecrets(cluster);
  const metadata = { name: 'kf', namespace: ns };
  await cluster.create(gatewayType, { metadata, spec: { gatewayClassName: 'x', listeners: setupListeners } });
});
afterEach(() => scene.stop());

async function addDomain(name: string, more: Partial<CFDomain['spec']> = {}): Promise<void> {
  const metadata = { name: `guid-${name}`, namespace: 'cf' };
  const made = await cluster.create(kinds.domain, {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFDomain',
    metadata,
    spec: { name, ...more },
  });
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'Ready',
    message: '',
    lastTransitionTime: '',
    observedGeneration: made.metadata.generation ?? 1,
  };
  await cluster.mergePatch(
    kinds.domain,
    'cf',
    `guid-${name}`,
    { metadata: {}, status: { conditions: [ready] } },
    { subresource: 'status' },
  );
}

const certificates = (): Certificate[] => cluster.all(certificateType);
const certificateOf = (domain: string): Stored<Certificate> | undefined => cluster.peek(certificateType, ns, `kf-domain-guid-${domain}`);
const listenerNames = (): string[] => (cluster.peek(gatewayType, ns, 'kf')?.spec?.listeners ?? []).map(({ name }) => name);
const conditionOf = (domain: string) =>
  findCondition(cluster.peek(kinds.domain, 'cf', `guid-${domain}`) ?? { metadata: {} }, 'CertificateIssued');
const ownNames = (): string | undefined => {
  const text = cluster.peek(secretType, 'kf-system', 'kf-gateway-tls')?.data?.['tls.crt'] ?? '';
  return new X509Certificate(Buffer.from(text, 'base64')).subjectAltName;
};

/** As cert-manager does. */
async function issue(domain: string, status: 'True' | 'False' = 'True', message = ''): Promise<void> {
  const live = certificateOf(domain);
  const ready = { type: 'Ready', status, reason: 'x', message, lastTransitionTime: '', observedGeneration: live?.metadata.generation ?? 1 };
  const patch = { metadata: {}, status: { conditions: [ready] } };
  await cluster.mergePatch(certificateType, ns, `kf-domain-guid-${domain}`, patch, { subresource: 'status' });
}

/** As the gateway does when it has loaded its listeners. */
async function load(): Promise<void> {
  const { spec, metadata } = cluster.peek(gatewayType, ns, 'kf') ?? { metadata: {} };
  const resolved = {
    type: 'ResolvedRefs',
    status: 'True',
    reason: 'x',
    message: '',
    lastTransitionTime: '',
    observedGeneration: metadata.generation,
  };
  const status = { listeners: (spec?.listeners ?? []).map(({ name }) => ({ name, conditions: [resolved] })) };
  await cluster.mergePatch(gatewayType, ns, 'kf', { metadata: {}, status }, { subresource: 'status' });
}

describe('with an issuer', () => {
  beforeEach(async () => {
    await addDomain('shop.example');
    await setHttps({ port: 443, secrets: [{ domain: 'own.example', namespace: 'infra', name: 'own' }], issuer });
    await scene.until(() => expect(certificates()).toHaveLength(1));
  });

  test('every domain at the gateway gets a Certificate for all its hosts, except those with a Secret of the operator', async () => {
    await addDomain('own.example');
    await addDomain('apps.internal', { internal: true });
    await addDomain('bar.example');
    await scene.until(() => expect(certificates()).toHaveLength(2));
    expect(certificateOf('shop.example')).toMatchObject({
      metadata: { labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } },
      spec: {
        secretName: 'kf-domain-guid-shop.example',
        dnsNames: ['*.shop.example', 'shop.example'],
        issuerRef: { group: 'cert-manager.io', kind: 'ClusterIssuer', name: 'an-authority' },
      },
    });
    await setHttps({ port: 443, secrets: [], issuer: { namespace: ns, name: 'other' } });
    await scene.until(() => expect(certificateOf('bar.example')?.spec.issuerRef).toMatchObject({ kind: 'Issuer', name: 'other' }));
  });

  test('the certificate of kf has the names of a domain until the gateway has loaded the one that was issued', async () => {
    await issue('shop.example', 'False', 'Waiting for the challenge.');
    await scene.until(() =>
      expect(conditionOf('shop.example')?.message).toBe(
        'cert-manager has not issued the certificate of shop.example (Certificate kf-node/kf-domain-guid-shop.example): Waiting for the challenge.',
      ),
    );
    expect(listenerNames()).toEqual(['http-apps', 'https-apps']);
    await issue('shop.example');
    await scene.until(() => expect(listenerNames()).toEqual(['http-apps', 'https-apps', 'https-shop.example']));
    await scene.until(() => expect(conditionOf('shop.example')).toMatchObject({ status: 'False', reason: 'NotLoaded' }));
    expect(ownNames()).toContain('*.shop.example');
    await load();
    await scene.until(() => expect(conditionOf('shop.example')).toMatchObject({ status: 'True', message: '' }));
    await scene.until(() => expect(ownNames()).not.toContain('shop.example'));
  });

  test('a change of the domain leaves its Certificate and listener, before the domain was looked at again', async () => {
    await issue('shop.example');
    await scene.until(() => expect(listenerNames()).toContain('https-shop.example'));
    await load();
    await scene.until(() => expect(conditionOf('shop.example')?.status).toBe('True'));
    const { uid } = certificateOf('shop.example')?.metadata ?? {};
    await cluster.mergePatch(kinds.domain, 'cf', 'guid-shop.example', { metadata: {}, spec: { sharedWith: ['an-org'] } });
    await addDomain('later.example');
    // Written at the end of a pass over all domains.
    await scene.until(() => expect(conditionOf('later.example')?.status).toBe('False'));
    expect(certificateOf('shop.example')?.metadata.uid).toBe(uid);
    expect(listenerNames()).toContain('https-shop.example');
    expect(conditionOf('shop.example')?.status).toBe('True');
  });

  test('without the issuer, the certificate of kf has the names again, and nothing is said of cert-manager', async () => {
    await issue('shop.example');
    await scene.until(() => expect(listenerNames()).toContain('https-shop.example'));
    await load();
    await scene.until(() => expect(ownNames()).not.toContain('shop.example'));
    await setHttps({ port: 443, secrets: [] });
    await scene.until(() => expect(ownNames()).toContain('*.shop.example'));
    await scene.until(() => expect(conditionOf('shop.example')).toBeUndefined());
  });
});

describe('a listener with a certificate of cert-manager', () => {
  const domain = { metadata: { name: 'g', namespace: 'cf', uid: 'u', resourceVersion: '1' }, spec: { name: 'shop.example' } };
  const names = (status: Certificate['status'], present: boolean, count = 1): string[] => {
    const domains = Array.from({ length: count }, (_, at) => ({
      ...domain,
      metadata: { ...domain.metadata, name: `g${at}` },
      spec: { name: `d${at}.example` },
    }));
    const made = (at: number): Stored<Certificate> =>
      ({ metadata: { ...domain.metadata, name: `kf-domain-g${at}`, generation: 1 }, spec: {}, status }) as unknown as Stored<Certificate>;
    const held = new Map(domains.map((_, at) => [`kf-domain-g${at}`, made(at)]));
    const before = { ...own, name: 'https-d0.example', tls: { certificateRefs: [{ name: 'kf-domain-g0' }] } };
    const gateway: Gateway = { metadata: {}, spec: { listeners: [...setupListeners, ...(present ? [before] : [])] } };
    return wantedListeners(gateway, { domains, certificates: held }, Date.parse('2026-06-01')).map(({ name }) => name);
  };
  const ready = (status: 'True' | 'False') => ({
    conditions: [{ type: 'Ready', status, reason: 'x', message: '', lastTransitionTime: '', observedGeneration: 1 }],
  });

  test.each([
    ['is made when it is ready', ready('True'), false, true],
    ['is not made before', ready('False'), false, false],
    [
      'stays while the certificate counts, even if it could not be renewed',
      { ...ready('False'), notAfter: '2026-06-02T00:00:00Z' },
      true,
      true,
    ],
    ['goes when it has ended, so that the one of kf serves', { ...ready('False'), notAfter: '2026-05-31T00:00:00Z' }, true, false],
  ])('%s', (_what, status, present, expected) => {
    expect(names(status, present).includes('https-d0.example')).toBe(expected);
  });

  test('is made for as many domains as a Gateway has room for', () => {
    expect(names(ready('True'), false, 70)).toHaveLength(64);
  });
});
