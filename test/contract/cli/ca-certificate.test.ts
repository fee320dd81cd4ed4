import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { createAuthority } from '../../../src/controller/certificates/x509.ts';
import { configMapType } from '../../../src/lib/api/core.ts';
import type { HttpsSettings, KfInfo } from '../../../src/lib/api/kf-info.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const notAfter = new Date('2036-01-02T03:04:05Z');
const pem = createAuthority('kf CA test', { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter }).certificate;
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

/** An installation with https, in which the controller has published this certificate. */
async function withHttps(certificate: string | undefined, secrets: HttpsSettings['secrets'] = []): Promise<void> {
  const { memory } = cluster;
  const info = JSON.parse(memory.peek(configMapType, 'cf', 'kf-info')?.data?.['info.json'] ?? '') as KfInfo;
  const gateway = { ...info.gateway, https: { port: 443, secrets } };
  await memory.mergePatch(configMapType, 'cf', 'kf-info', { metadata: {}, data: { 'info.json': JSON.stringify({ ...info, gateway }) } });
  const data = certificate === undefined ? {} : { data: { 'ca.crt': certificate } };
  await memory.create(configMapType, { metadata: { name: 'kf-ca-certificate', namespace: 'cf' }, ...data });
}

it('prints the certificate alone, so that it can be sent to a file', async () => {
  await withHttps(pem);
  expect(await cli.run(['ca-certificate'])).toMatchObject({ code: 0, stdout: pem, stderr: '' });
});

it('prints subject, end and fingerprint with --json', async () => {
  await withHttps(pem);
  const { code, stdout } = await cli.run(['ca-certificate', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    result: {
      certificate: pem,
      subject: 'CN=kf CA test',
      notAfter: notAfter.toISOString(),
      fingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/) as string,
      otherDomains: [],
    },
  });
});

it('says which domains have a certificate of another authority', async () => {
  await withHttps(pem, [{ domain: 'apps.example.com', namespace: 'infra', name: 'wildcard' }]);
  const { stdout, stderr } = await cli.run(['ca-certificate']);
  expect(stdout).toBe(pem);
  expect(stderr).toBe('Certificates of the operator, which this authority has not signed: apps.example.com\n');
});

it('fails before the controller has made the certificate, and names it', async () => {
  await withHttps(undefined);
  const { code, stderr } = await cli.run(['ca-certificate']);
  expect(code).toBe(1);
  expect(stderr).toContain("The controller has not made the certificate of the gateway's authority yet.");
  expect(stderr).toContain('kubectl -n kf-system get deployment kf-controller');
});

it('fails where kf has no certificates, and shows the Gateway', async () => {
  const { code, stdout, stderr } = await cli.run(['ca-certificate']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: 'FAILED\n' });
  expect(stderr).toContain('This installation has no certificates of kf: its operator switched https off, or runs its Gateway.');
  expect(stderr).toMatch(/kubectl get gateway -n \S+ \S+ -o yaml/);
});

it('refuses arguments', async () => {
  expect((await cli.run(['ca-certificate', 'apps.example.com'])).code).toBe(1);
});
