// The settings of https, and the Secrets that the operator gives.

import { expect, test } from 'vitest';
import { createAuthority, issueServerCertificate } from '../../../src/controller/certificates/x509.ts';
import { resolveHttps } from '../../../src/lib/ops/install/https.ts';
import { resolvePlan, type SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { settle } from '../../../src/lib/ops/install/kept-settings.ts';
import { faultOf } from '../../../src/lib/ops/install/tls-secrets.ts';
import { buildGateway } from '../../../src/templates/setup/gateway.ts';

const day = 24 * 3600 * 1000;
const domain = 'apps.example.com';

test('https is on by default, at port 443, and http is not redirected', () => {
  expect(resolveHttps({}, domain)).toEqual({ port: 443, secrets: [] });
});

test('the Secrets of domains are resolved, that of the default domain from its own key', () => {
  const request = { httpsPort: 8443, httpRedirect: 'on', tlsSecret: 'infra/apps', tlsSecrets: { 'shop.example': 'shop/tls' } };
  expect(resolveHttps(request, domain)).toEqual({
    port: 8443,
    redirect: true,
    secrets: [
      { domain, namespace: 'infra', name: 'apps' },
      { domain: 'shop.example', namespace: 'shop', name: 'tls' },
    ],
  });
});

test.each([
  ['letsencrypt', { name: 'letsencrypt' }],
  ['kf-node/own.ca', { namespace: 'kf-node', name: 'own.ca' }],
  ['off', undefined],
])('the issuer %s is resolved to %j', (tlsIssuer, issuer) => {
  expect(resolveHttps({ tlsIssuer }, domain)?.issuer).toEqual(issuer);
});

test('the issuer off is none, also where another was recorded', () => {
  const kept = { settings: { tlsIssuer: 'letsencrypt' }, from: 'record' } as const;
  expect(settle({ flags: {} }, kept)).toEqual({ tlsIssuer: 'letsencrypt' });
  expect(settle({ flags: { tlsIssuer: 'off' } }, kept)).toEqual({});
  expect(settle({ flags: { https: 'off' } }, kept)).toEqual({ https: 'off' });
});

test.each<[SetupRequest, string]>([
  [{ https: 'off', tlsSecret: 'a/b' }, "'tlsSecret' would have no effect: https is off."],
  [
    { gateway: 'infra/public', https: 'on', httpRedirect: 'on' },
    "'https', 'httpRedirect' would have no effect: the Gateway 'infra/public' is yours, and kf does not change its listeners.",
  ],
  [{ gatewayClass: 'x', httpRedirect: 'on' }, "'httpRedirect' needs the gateway that kf installs, and 'gatewayClass' names another one."],
  [{ tlsIssuer: 'a/b/c' }, "--tls-issuer takes the NAME of a ClusterIssuer, NAMESPACE/NAME of an Issuer, or off, not 'a/b/c'."],
  [{ https: 'off', tlsIssuer: 'a' }, "'tlsIssuer' would have no effect: https is off."],
  [{ tlsSecret: 'name' }, "--tls-secret takes NAMESPACE/NAME, not 'name'."],
  [
    { tlsSecrets: { 'Shop.Example': 'a/b' } },
    "The key 'tlsSecrets' names domains in lower case, such as apps.example.com, not 'Shop.Example'.",
  ],
  [{ tlsSecret: 'a/b', tlsSecrets: { [domain]: 'c/d' } }, `The domain '${domain}' has two Secrets: in 'tlsSecret' and in 'tlsSecrets'.`],
  [
    { tlsSecrets: Object.fromEntries(Array.from({ length: 61 }, (_, at) => [`d${at}.example`, 'a/b'])) },
    'kf takes Secrets for at most 60 domains, and there are 61.',
  ],
])('%j is refused', (request, message) => {
  expect(() => resolveHttps(request, domain)).toThrow(`Incorrect Usage: ${message}`);
});

test('a Gateway of the operator, and https that is switched off, leave out the settings for certificates', () => {
  const kept = { settings: { https: 'on', httpRedirect: 'on', tlsSecret: 'a/b', tlsSecrets: {}, httpsPort: 1 }, from: 'record' } as const;
  expect(settle({ flags: { gateway: 'infra/public' } }, kept)).toEqual({ gateway: 'infra/public' });
  expect(settle({ flags: { https: 'off' } }, kept)).toEqual({ https: 'off' });
});

test('every Secret gets its listener and may be used by the Gateway, and no other Secret may', () => {
  const plan = resolvePlan({ tlsSecrets: { 'shop.example': 'infra/shop', 'bar.example': 'infra/bar' } }, '0.1.0', 'hostport');
  const objects = buildGateway(plan) as { kind: string; metadata: { namespace: string }; spec: object }[];
  const certificate = (namespace: string, name: string): object => ({
    tls: { mode: 'Terminate', certificateRefs: [{ group: '', kind: 'Secret', namespace, name }] },
  });
  expect(objects.find(({ kind }) => kind === 'Gateway')?.spec).toMatchObject({
    listeners: [
      { name: 'http-apps', port: 8000, protocol: 'HTTP' },
      { name: 'https-apps', port: 8443, protocol: 'HTTPS', ...certificate('kf-system', 'kf-gateway-tls') },
      { name: 'https-bar.example', port: 8443, hostname: '*.bar.example', ...certificate('infra', 'bar') },
      { name: 'https-shop.example', port: 8443, hostname: '*.shop.example', ...certificate('infra', 'shop') },
    ],
  });
  const secret = (name: string): object => ({ group: '', kind: 'Secret', name });
  const from = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'kf-node' }];
  expect(objects.filter(({ kind }) => kind === 'ReferenceGrant')).toMatchObject([
    { metadata: { namespace: 'infra' }, spec: { from, to: [secret('bar'), secret('shop')] } },
    { metadata: { namespace: 'kf-system' }, spec: { from, to: [secret('kf-gateway-tls')] } },
  ]);
});

test('https can be switched on and off without another gateway pod behind a load balancer, and host ports are taken only while it is on', () => {
  const podOf = (exposure: 'loadbalancer' | 'hostport', https: 'on' | 'off'): unknown =>
    buildGateway(resolvePlan({ https }, '0.1.0', exposure)).find(({ kind }) => kind === 'Deployment');
  expect(podOf('loadbalancer', 'on')).toEqual(podOf('loadbalancer', 'off'));
  const hostPorts = (https: 'on' | 'off'): string[] => JSON.stringify(podOf('hostport', https)).match(/"hostPort":\d+/g) ?? [];
  expect([hostPorts('on'), hostPorts('off')]).toEqual([['"hostPort":80', '"hostPort":443'], ['"hostPort":80']]);
  const parts = (https: 'on' | 'off'): string =>
    JSON.stringify(
      buildGateway(resolvePlan({ https }, '0.1.0', 'loadbalancer')).filter(({ kind }) => ['Service', 'Gateway'].includes(kind ?? '')),
    );
  expect([parts('on').includes('8443'), parts('off').includes('8443')]).toEqual([true, false]);
});

const authority = createAuthority('CA', { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + 100 * day) });
const issue = (names: string[], days = 30) =>
  issueServerCertificate(authority, 'x', names, { notBefore: new Date(Date.now() - 9 * day), notAfter: new Date(Date.now() + days * day) });
const secretWith = (data: Record<string, string>) => ({
  metadata: { name: 's' },
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
});
const good = issue([`*.${domain}`]);

test('a Secret with a certificate for every host of the domain is accepted', () => {
  expect(faultOf(secretWith({ 'tls.crt': good.certificate, 'tls.key': good.key }), domain, Date.now())).toBeUndefined();
});

test.each([
  ['does not exist', undefined],
  ["has no 'tls.crt'", secretWith({ 'tls.key': good.key })],
  ["has no 'tls.key'", secretWith({ 'tls.crt': good.certificate })],
  ["has a key in 'tls.key' that is not its certificate's", secretWith({ 'tls.crt': good.certificate, 'tls.key': authority.key })],
  ['has no certificate with its key as PEM: ', secretWith({ 'tls.crt': 'text', 'tls.key': good.key })],
  [
    'has a certificate for DNS:apps.example.com, which does not cover *.apps.example.com',
    (({ certificate, key }) => secretWith({ 'tls.crt': certificate, 'tls.key': key }))(issue([domain])),
  ],
  [
    'has a certificate that ended on ',
    (({ certificate, key }) => secretWith({ 'tls.crt': certificate, 'tls.key': key }))(issue([`*.${domain}`], -1)),
  ],
])('a Secret that %s is refused', (fault, secret) => {
  expect(faultOf(secret, domain, Date.now())).toContain(fault);
});
