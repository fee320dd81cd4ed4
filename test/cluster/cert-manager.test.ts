// Certificates of a real cert-manager: kf's own serve until they are issued, and again afterwards, and no request fails in between.

import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CertManager } from '../support/cert-manager.ts';
import { getSecurely, securePort } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const issuer = 'an-authority';
const shop = 'shop.example.test';
const app = 'issued-app';
const host = `${app}.apps.localhost`;
/** A cold build of cert-manager. */
const buildMs = 900_000;
const certificate = ['-n', 'kf-node', 'certificates.cert-manager.io'];
let manager: CertManager;
let admin: Kf;
let kfCa: string;

beforeAll(async () => {
  [manager, admin] = [await CertManager.build(), await Kf.create('admin')];
  await admin.ok('push', app, '-o', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`, '-m', '64M');
  kfCa = (await admin.ok('ca-certificate')).stdout;
}, buildMs);

afterAll(async () => {
  await manager.stop();
  await admin.run(['delete', app, '-r', '-f']);
  await admin.run(['delete-shared-domain', shop, '-f']);
  await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
  await manager.removeKinds();
  await admin.remove();
});

/** The certificate that the gateway shows for a host, whoever signed it. */
function shownFor(name: string): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: securePort(), servername: name, rejectUnauthorized: false }, () => {
      const shown = socket.getPeerX509Certificate();
      socket.destroy();
      if (shown === undefined) reject(new Error('no certificate'));
      else resolve(shown);
    });
    socket.on('error', reject);
  });
}

const isBy = async (name: string, authority: string): Promise<boolean> => {
  const shown = await shownFor(name);
  return shown.checkHost(name) !== undefined && shown.verify(new X509Certificate(authority).publicKey);
};

/** Sends requests with https while `act` runs, and at least eleven; returns the failures. */
async function badAnswersDuring(ca: string[], act: () => Promise<unknown>): Promise<unknown[]> {
  const answers: unknown[] = [];
  let isDone = false;
  const ask = async (): Promise<void> => {
    while (!isDone || answers.length <= 10) {
      answers.push(await getSecurely(host, { ca }).then(({ status }) => status, String));
      await sleep(50);
    }
  };
  await Promise.all([ask(), act().finally(() => (isDone = true))]);
  expect(answers.length).toBeGreaterThan(10);
  return answers.filter((answer) => answer !== 200);
}

const gatewayPods = async (): Promise<string> =>
  kubectl(
    'get',
    'pods',
    '-n',
    'kf-node',
    '-o',
    'jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount}{end}',
  );

test('setup refuses an issuer without cert-manager, one that does not exist, and one in another namespace', async () => {
  const dryRun = (name: string) => admin.run(['setup', '--tls-issuer', name, '--dry-run']);
  const without = await dryRun(issuer);
  expect(without.code).toBe(1);
  expect(without.stderr).toContain('This cluster has no cert-manager: the kind certificates.cert-manager.io and the kind');
  expect(without.stderr).toContain('Install cert-manager');
  await manager.installKinds();
  const missing = await dryRun(issuer);
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining(`There is no ClusterIssuer '${issuer}'.`) as string });
  expect(missing.stderr).toContain('kubectl get clusterissuers');
  expect((await dryRun(`kf-node/${issuer}`)).stderr).toContain(`There is no Issuer '${issuer}' in namespace 'kf-node'.`);
  expect((await dryRun(`infra/${issuer}`)).stderr).toContain(`kf setup --tls-issuer kf-node/${issuer}`);
});

test('while cert-manager has not issued a certificate, that of kf serves, and domains and why say so', async () => {
  await manager.addAuthority(issuer);
  const failed = await badAnswersDuring([kfCa], async () => {
    await admin.ok('setup', '--tls-issuer', issuer);
    await until('the Certificate', async () => (await kubectl('get', ...certificate, '-o', 'name')) !== '');
    await until('the problem in kf domains', async () => (await admin.ok('domains')).stderr.includes('has not issued'));
  });
  expect(failed).toEqual([]);
  const { stderr } = await admin.ok('domains');
  expect(stderr).toMatch(/^Certificate of apps\.localhost: by kf CA /m);
  expect(stderr).toMatch(
    /cert-manager has not issued the certificate of apps\.localhost \(Certificate kf-node\/kf-domain-\S+\).*\. Meanwhile the gateway shows a certificate of kf\./,
  );
  const why = await admin.run(['why', '--route', host]);
  expect(why.stdout).toContain('cert-manager has not issued the certificate of apps.localhost');
  expect(why.stdout).toContain('kubectl -n kf-node describe certificate kf-domain-');
});

test('when it is issued, the gateway shows it without a restart, and no request fails', async () => {
  const pods = await gatewayPods();
  manager.start();
  const authority = await until('the authority', () => manager.authority(issuer));
  const failed = await badAnswersDuring([kfCa, authority], () =>
    until('the certificate of cert-manager', async () => {
      const { stderr } = await admin.ok('domains');
      return stderr.includes(`Certificate of apps.localhost: by ${issuer},`) && !stderr.includes('has not');
    }),
  );
  expect(failed).toEqual([]);
  await until('a certificate of kf for no domain', async () => {
    const own = await kubectl('get', 'secret', 'kf-gateway-tls', '-n', 'kf-system', '-o', 'jsonpath={.data.tls\\.crt}');
    return new X509Certificate(Buffer.from(own, 'base64')).subjectAltName === 'DNS:kf.invalid';
  });
  for (let round = 0; round < 20; round += 1) expect(await isBy(`host-${round}.apps.localhost`, authority)).toBe(true);
  expect((await admin.run(['why', '--route', host])).stdout).toContain('The gateway has loaded the route.');

  const before = (await shownFor(host)).serialNumber;
  const [name = ''] = (await kubectl('get', ...certificate, '-o', 'jsonpath={.items[*].metadata.name}')).split(' ');
  const again = { type: 'Issuing', status: 'True', reason: 'ManuallyTriggered', message: '', lastTransitionTime: new Date().toISOString() };
  const { status } = await kubectlJson<{ status: { conditions: object[] } }>('get', ...certificate, name);
  const patch = JSON.stringify({ status: { conditions: [...status.conditions, again] } });
  const renewed = await badAnswersDuring([authority], async () => {
    await kubectl('patch', ...certificate, name, '--subresource=status', '--type=merge', '-p', patch);
    await until('the renewed certificate', async () => (await shownFor(host)).serialNumber !== before);
  });
  expect(renewed).toEqual([]);
  expect(await isBy(host, authority)).toBe(true);
  expect(await gatewayPods()).toBe(pods);
});

test('a new domain gets its certificate without another setup, and a deleted one loses it', async () => {
  const authority = await manager.authority(issuer);
  await admin.ok('create-shared-domain', shop);
  await until('the certificate of the new domain', () => isBy(`x.${shop}`, authority));
  await admin.ok('delete-shared-domain', shop, '-f');
  await until('one Certificate', async () => (await kubectl('get', ...certificate, '-o', 'name')).trim().split('\n').length === 1);
});

test('the controller may use no other Secret for a Certificate, and change nothing else of the Gateway', async () => {
  const as = ['--as', 'system:serviceaccount:kf-system:kf-controller', '--dry-run=server'];
  const [name = ''] = (await kubectl('get', ...certificate, '-o', 'jsonpath={.items[*].metadata.name}')).split(' ');
  const change = (what: string[], patch: object): Promise<string> =>
    kubectl('patch', ...what, ...as, '--type=merge', '-p', JSON.stringify(patch)).catch(String);
  const folder = await mkdtemp(path.join(tmpdir(), 'kf-certificate-'));
  const create = async (secretName: string): Promise<string> => {
    const file = path.join(folder, 'certificate.json');
    const { apiVersion, kind, spec } = await kubectlJson<{ apiVersion: string; kind: string; spec: object }>('get', ...certificate, name);
    const metadata = { name: 'kf-domain-other', namespace: 'kf-node' };
    await writeFile(file, JSON.stringify({ apiVersion, kind, metadata, spec: { ...spec, secretName } }));
    return kubectl('create', '-f', file, ...as).catch(String);
  };
  expect(await create('kf-domain-other')).toContain('created');
  expect(await create('kf-registry-key')).toContain('Secrets of their own');
  await rm(folder, { recursive: true });
  const gateway = ['-n', 'kf-node', 'gateways.gateway.networking.k8s.io', 'kf'];
  const { spec } = await kubectlJson<{ spec: { listeners: { name: string; port: number }[] } }>('get', ...gateway);
  const listeners = spec.listeners.map((one) => (one.name === 'https-apps' ? { ...one, hostname: '*.elsewhere.test' } : one));
  expect(await change(gateway, { spec: { listeners } })).toContain('may only change the listeners');
  const without = spec.listeners.filter((one) => one.name !== 'https-apps.localhost');
  expect(await change(gateway, { spec: { listeners: without } })).toContain('patched');
});

test('kf makes the certificates again when setup is told so, and no request fails', async () => {
  const authority = await manager.authority(issuer);
  const failed = await badAnswersDuring([kfCa, authority], () => admin.ok('setup', '--tls-issuer', 'off'));
  expect(failed).toEqual([]);
  await until('the certificate of kf', () => isBy(host, kfCa));
  for (let round = 0; round < 20; round += 1) expect(await isBy(`host-${round}.apps.localhost`, kfCa)).toBe(true);
  expect(await kubectl('get', ...certificate, '-o', 'name')).toBe('');
  const left = await kubectl('get', 'secrets,rolebindings', '-n', 'kf-node', '-o', 'name');
  expect(left).not.toMatch(/kf-domain-|kf-controller-certificates/);
  const { spec } = await kubectlJson<{ spec: { listeners: { name: string }[] } }>('get', '-n', 'kf-node', 'gateway', 'kf');
  expect(spec.listeners.map(({ name }) => name)).toEqual(['http-apps', 'https-apps']);
  expect((await admin.ok('domains')).stderr).not.toContain('cert-manager');
});
