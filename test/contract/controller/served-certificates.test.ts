// The certificate that the gateway shows for a domain, in the status of the domain.

import { createServer, type Server } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAuthority, issueServerCertificate } from '../../../src/controller/certificates/x509.ts';
import { servedCertificate } from '../../../src/controller/certificates/served.ts';
import { configMapType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { info, startScene, type BuildScene } from './build-scene.ts';

const hour = 3_600_000;
const period = { notBefore: new Date(Date.now() - hour), notAfter: new Date('2035-01-02T03:04:05Z') };
const authority = createAuthority('an authority', period);
const pairFor = (domain: string) => issueServerCertificate(authority, 'gateway', [`*.${domain}`], period);

let gateway: Server;
let address: string;
let scene: BuildScene | undefined;

beforeEach(async () => {
  const { certificate, key } = pairFor('apps.localhost');
  gateway = createServer({ cert: certificate, key });
  gateway.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  address = `https://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
});

afterEach(async () => {
  await scene?.stop();
  scene = undefined;
  gateway.close();
});

const ask = (name: string): ReturnType<typeof servedCertificate> => servedCertificate(address, name, AbortSignal.timeout(10_000));

test('names the authority and the end, if it is for hosts of the domain', async () => {
  await expect(ask('any.apps.localhost')).resolves.toEqual({ issuer: 'an authority', notAfter: '2035-01-02T03:04:05Z' });
  await expect(ask('any.shop.example')).resolves.toBeUndefined();
});

test('of a gateway that does not answer is an error', async () => {
  gateway.close();
  await expect(ask('any.apps.localhost')).rejects.toThrow('ECONNREFUSED');
});

async function start(https: object | undefined, status: object = {}): Promise<MemoryCluster> {
  const cluster = new MemoryCluster();
  scene = await startScene(cluster);
  const gatewayInfo = { ...info.gateway, ...(https === undefined ? {} : { https }) };
  await cluster.mergePatch(configMapType, 'cf', 'kf-info', {
    metadata: {},
    data: { 'info.json': JSON.stringify({ ...info, gateway: gatewayInfo }) },
  });
  for (const name of ['apps.localhost', 'shop.example']) {
    const made = await cluster.create(kinds.domain, {
      apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
      kind: 'CFDomain',
      metadata: { name, namespace: 'cf' },
      spec: { name },
    });
    const ready = { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const conditions = [{ ...ready, observedGeneration: made.metadata.generation ?? 1 }];
    await cluster.mergePatch(kinds.domain, 'cf', name, { metadata: {}, status: { conditions, ...status } }, { subresource: 'status' });
  }
  return cluster;
}

test('is in the status of the domains for which the gateway has one', async () => {
  const cluster = await start({ port: 443, secrets: [], internalAddress: address });
  await scene?.until(() =>
    expect(cluster.peek(kinds.domain, 'cf', 'apps.localhost')?.status?.certificate).toEqual({
      issuer: 'an authority',
      notAfter: '2035-01-02T03:04:05Z',
    }),
  );
  expect(cluster.peek(kinds.domain, 'cf', 'shop.example')?.status).not.toHaveProperty('certificate');
});

test('is removed from the status when https is switched off', async () => {
  const cluster = await start(undefined, { certificate: { issuer: 'former', notAfter: '2026-01-01T00:00:00Z' } });
  await scene?.until(() => expect(cluster.peek(kinds.domain, 'cf', 'apps.localhost')?.status).not.toHaveProperty('certificate'));
  expect(cluster.peek(kinds.domain, 'cf', 'apps.localhost')?.status?.conditions).toHaveLength(1);
});
