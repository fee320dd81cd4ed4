// Every option of `kf setup`, as flag and as key of setup.yaml, with the objects that it changes, and the changes.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import Setup from '../../src/commands/setup.ts';
import { createAuthority, issueServerCertificate } from '../../src/controller/certificates/x509.ts';
import { knownKeys } from '../../src/lib/ops/install/settings-schema.ts';
import { auditEnd, auditFrom, writesOfKf } from '../support/audit.ts';
import { differing, named, type Objects, type Printed } from './setup-objects.ts';
import { kf } from './kf.ts';
import { kubectl, makeNamespace, makeStorageClass, removeKinds, type Answer } from './kubectl.ts';
import { ofOutside, options, traefikPorts, type Option, type Settings } from './setup-option-table.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-options-'));
const file = path.join(folder, 'setup.yaml');
const everyRun = { storageClass: 'any' };

beforeAll(async () => {
  for (const name of ['any', 'fast']) await makeStorageClass(name);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function dryRun(settings: Settings, flags: string[] = []): Promise<Answer> {
  writeFileSync(file, stringify({ ...everyRun, ...settings }));
  return kf('setup', '-f', file, '--dry-run', '-o', 'yaml', ...flags);
}

/** The objects of the dry run. */
async function planned(settings: Settings, flags: string[] = []): Promise<Objects> {
  const { code, stdout, stderr } = await dryRun(settings, flags);
  expect(code, stderr).toBe(0);
  return Object.fromEntries(parseAllDocuments(stdout).map((document) => named(document.toJS() as Printed)));
}

/** Only the option's objects differ from those without it. */
function expectChanges(option: Option, without: Objects, got: Objects): void {
  const { key, value, adds = [], lacks = [] } = option;
  // The record of settings contains the option too, except for values that may contain passwords.
  const changes = key === 'buildEnv' ? option.changes : { ...option.changes, 'kf-setup': { [key]: value } };
  expect(got).toMatchObject(changes);
  expect(without).not.toMatchObject(changes);
  expect(differing(without, got)).toEqual([...Object.keys(changes), ...adds, ...lacks].sort());
  for (const name of lacks) expect(got).not.toHaveProperty([name]);
  for (const name of adds) expect(without).not.toHaveProperty([name]);
}

/** Sets the option in the file, and by flag with another value in the file. */
async function expectOption(option: Option, defaults?: Objects): Promise<void> {
  const { key, value, flag, other } = option;
  const beside = option.with ?? {};
  const without = option.with === undefined && defaults !== undefined ? defaults : await planned(beside);
  expectChanges(option, without, await planned({ ...beside, [key]: value }));
  if (flag !== undefined) expectChanges(option, without, await planned({ ...beside, [key]: other }, [flag, String(value)]));
}

describe('the option', () => {
  let defaults: Objects;

  beforeAll(async () => {
    defaults = await planned({});
  });

  test.each(options.map((option) => [`${option.key}: ${JSON.stringify(option.value)}`, option] as const))(
    '%s changes its fields and nothing else',
    (_, option) => expectOption(option, defaults),
  );

  test('has a test here, for every key of setup.yaml and every flag of kf setup', () => {
    const tried = [...options, ...Object.values(ofOutside)];
    expect(knownKeys.filter((known) => !tried.some(({ key }) => key === known))).toEqual([]);
    const flags = Object.keys(Setup.flags).filter((name) => !['file', 'dry-run', 'output'].includes(name));
    expect(flags.filter((name) => !tried.some(({ flag }) => flag === `--${name}`))).toEqual([]);
  });
});

describe('the entry point, when no option names one', () => {
  const namespace = 'kf-exposure';
  const isBalanced = async (): Promise<boolean> => 'Service kf-system/kf-gateway' in (await planned({ gatewayExposure: 'auto' }));

  beforeAll(() => makeNamespace(namespace));
  afterAll(() => kubectl(['delete', 'namespace', namespace, '--wait=false']));

  test('is ports of the nodes on a cluster without load balancers, also when an option asks for it', async () => {
    const unnamed = await planned({});
    expect(unnamed['Deployment kf-node/kf-gateway']).toMatchObject(
      traefikPorts({ name: 'web', containerPort: 8000, hostPort: 80 }, { name: 'websecure', containerPort: 8443, hostPort: 443 }),
    );
    expect(unnamed['Service kf-node/kf-gateway']).toMatchObject({ spec: { type: 'ClusterIP' } });
    expect(unnamed['Namespace kf-node']).toMatchObject({ metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } } });
    expect(await planned({ gatewayExposure: 'auto' })).toEqual(unnamed);
    expect(await planned({ gatewayExposure: 'hostport' })).toEqual(unnamed);
  });

  test('is a load balancer if a Service has got an address of one', async () => {
    const service = { type: 'LoadBalancer', ports: [{ port: 80 }] };
    await kubectl(['create', '-n', namespace, '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'balanced' }, spec: service },
    });
    expect(await isBalanced()).toBe(false);
    const status = JSON.stringify({ status: { loadBalancer: { ingress: [{ ip: '192.0.2.8' }] } } });
    await kubectl(['patch', 'service', 'balanced', '-n', namespace, '--subresource=status', '--type=merge', '-p', status]);
    expect(await isBalanced()).toBe(true);
    await kubectl(['delete', 'service', 'balanced', '-n', namespace]);
  });

  test('is a load balancer if a node belongs to a cloud', async () => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'kf-cloud-node' }, spec: { providerID: 'aws:///zone/i-1' } };
    await kubectl(['create', '-f', '-'], { input: node });
    const found = await isBalanced();
    await kubectl(['delete', 'node', 'kf-cloud-node']);
    expect(found).toBe(true);
  });
});

describe('a registry outside of the cluster', () => {
  const secrets = ['image-registry-credentials', 'kf-registry-push'];
  const remove = (): Promise<string> => kubectl(['delete', 'secret', '-n', 'cf', '--ignore-not-found', ...secrets]);

  beforeAll(() => makeNamespace('cf', { 'kf.cloudfoundry.org/managed-by': 'kf' }));
  afterEach(remove);

  test('is refused without its credentials, and the message names the missing ones', async () => {
    const { registry: option } = ofOutside;
    const none = await dryRun({}, ['--registry', String(option.value)]);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain(`Secret 'image-registry-credentials' and 'kf-registry-push' in namespace 'cf'`);
    await kubectl(['create', 'secret', 'generic', 'kf-registry-push', '-n', 'cf']);
    const one = await dryRun({ registry: option.value });
    expect(one.code).toBe(1);
    expect(one.stderr).toContain(`Secret 'image-registry-credentials' in namespace 'cf'`);
    expect(one.stderr).toContain(
      'kubectl create secret docker-registry image-registry-credentials -n cf --docker-server=registry.example.com',
    );
  });

  test('with its credentials replaces the one in the cluster, and may use plain HTTP', async () => {
    for (const name of secrets) await kubectl(['create', 'secret', 'generic', name, '-n', 'cf']);
    await expectOption(ofOutside.registry);
    await expectOption(ofOutside.insecureRegistry);
  });

  test('needs no StorageClass', async () => {
    for (const name of secrets) await kubectl(['create', 'secret', 'generic', name, '-n', 'cf']);
    const ran = await kf('setup', '--dry-run', '--registry', 'registry.example.com');
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).not.toContain('PersistentVolumeClaim');
  });
});

describe('a certificate of the operator', () => {
  const day = 24 * 3_600_000;
  const period = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + 90 * day) };
  const authority = createAuthority('an authority of the operator', period);

  async function makeSecret(name: string, domain: string): Promise<void> {
    const { certificate, key } = issueServerCertificate(authority, domain, [`*.${domain}`], period);
    const stringData = { 'tls.crt': certificate, 'tls.key': key };
    const metadata = { name, namespace: 'infra' };
    await kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData },
    });
  }

  beforeAll(() => makeNamespace('infra'));

  test('is refused by the name of its Secret when that does not exist, or is for another domain', async () => {
    const missing = await dryRun({}, ['--tls-secret', 'infra/apps']);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain("The Secret 'infra/apps' for the domain 'apps.localhost' does not exist.");
    await makeSecret('apps', 'apps.localhost');
    const wrong = await dryRun({ tlsSecrets: { 'shop.localhost': 'infra/apps' } });
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('has a certificate for DNS:*.apps.localhost, which does not cover *.shop.localhost.');
  });

  test('is used for its domain, and the Gateway may use no other Secret of the namespace', async () => {
    await makeSecret('shop', 'shop.localhost');
    await expectOption(ofOutside.tlsSecrets);
    const { flag = '', ...option } = ofOutside.tlsSecret;
    await expectOption(option);
    expect(await planned({ ...option.with }, [flag, String(option.value)])).toEqual(
      await planned({ ...option.with, tlsSecret: option.value }),
    );
  });
});

describe('an issuer of cert-manager', () => {
  const group = 'cert-manager.io';
  const kindOf = (kind: string, scope: string): object => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.toLowerCase()}s.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural: `${kind.toLowerCase()}s` },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  });
  const kinds = [kindOf('Certificate', 'Namespaced'), kindOf('ClusterIssuer', 'Cluster')];

  afterAll(() => kubectl(['delete', '--ignore-not-found', '-f', '-'], { input: kinds }));

  test('is refused without cert-manager and when it does not exist, and changes only the right of the controller', async () => {
    const { key, flag = '', value } = ofOutside.tlsIssuer;
    expect((await dryRun({}, [flag, String(value)])).stderr).toContain('This cluster has no cert-manager');
    await kubectl(['apply', '-f', '-'], { input: kinds });
    await kubectl(['wait', '--for=condition=Established', '-f', '-', '--timeout=60s'], { input: kinds });
    expect((await dryRun({ [key]: value })).stderr).toContain(`There is no ClusterIssuer '${String(value)}'.`);
    const issuer = { apiVersion: `${group}/v1`, kind: 'ClusterIssuer', metadata: { name: value } };
    await kubectl(['apply', '-f', '-'], { input: issuer });
    await expectOption(ofOutside.tlsIssuer);
  });
});

describe('a gateway of the operator', () => {
  const kinds = path.join(import.meta.dirname, '../../manifests/gateway-api');
  const apiVersion = 'gateway.networking.k8s.io/v1';
  const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }];
  const objects = [
    { apiVersion, kind: 'GatewayClass', metadata: { name: 'edge' }, spec: { controllerName: 'example.com/edge' } },
    {
      apiVersion,
      kind: 'Gateway',
      metadata: { name: 'public', namespace: 'infra' },
      spec: { gatewayClassName: 'edge', listeners },
    },
  ];

  async function expectRefusals(): Promise<void> {
    const named = await dryRun({}, ['--gateway', 'infra/public']);
    expect(named.code).toBe(1);
    expect(named.stderr).toContain("There is no Gateway 'public' in namespace 'infra'.");
    const ofClass = await dryRun({}, ['--gateway-class', 'edge']);
    expect(ofClass.code).toBe(1);
    expect(ofClass.stderr).toContain("There is no GatewayClass 'edge'.");
  }

  beforeAll(() => makeNamespace('infra'));
  afterAll(async () => {
    await removeKinds(kinds);
    await kubectl(['delete', 'namespace', 'infra', '--wait=false']);
  });

  test('is refused by name if its kind does not exist', expectRefusals);

  test('is refused by name if only its kind exists, and then setup does not install the kind', async () => {
    await kubectl(['apply', '--server-side', '-f', kinds]);
    await kubectl(['wait', '--for=condition=Established', '-f', kinds, '--timeout=120s']);
    await expectRefusals();
    expect(Object.keys(await planned({})).filter((name) => name.endsWith('gateway.networking.k8s.io'))).toEqual([]);
  });

  test('that exists is used instead of Traefik', async () => {
    await kubectl(['apply', '--server-side', '-f', '-'], { input: objects });
    await expectOption(ofOutside.gateway);
    await expectOption(ofOutside.gatewayClass);
  });

  test.each(['public', 'infra/', 'a/b/c'])('given as %s is a usage error', async (value) => {
    const ran = await dryRun({}, ['--gateway', value]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain(`--gateway takes NAMESPACE/NAME, not '${value}'`);
  });
});

test("if Korifi's own controllers run, setup names them and writes nothing", async () => {
  await makeNamespace('korifi');
  await kubectl(['create', 'deployment', 'korifi-controllers-controller-manager', '-n', 'korifi', '--image=none']);
  try {
    const start = await auditEnd();
    const ran = await kf('setup', '--storage-class', 'any');
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain("Korifi's own controllers run in this cluster (namespace 'korifi'); kf installs nothing over them.");
    expect(writesOfKf(await auditFrom(start))).toEqual([]);
  } finally {
    await kubectl(['delete', 'deployment', 'korifi-controllers-controller-manager', '-n', 'korifi']);
    await kubectl(['delete', 'namespace', 'korifi', '--wait=false']);
  }
});
