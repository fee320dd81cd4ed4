// A setup keeps the settings of the previous one. The objects of one are put into the cluster, and the next one plans its objects.

import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { createAuthority, issueServerCertificate } from '../../../src/controller/certificates/x509.ts';
import { issuerTypeOf } from '../../../src/lib/api/cert-manager.ts';
import { configMapType, deploymentType, secretType, storageClassType } from '../../../src/lib/api/core.ts';
import { places } from '../../../src/lib/api/group.ts';
import type { KubeObject } from '../../../src/lib/api/object.ts';
import { kindNamed, kindOf } from '../../../src/lib/ops/install/kinds.ts';
import { type SettingsReport, type SetupOrder } from '../../../src/lib/ops/install/kept-settings.ts';
import { previewSetup } from '../../../src/lib/ops/install/setup.ts';
import type { SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { knownKeys } from '../../../src/lib/ops/install/settings-schema.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { recordEvents } from '../../support/reported.ts';

const period = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 3_600_000) };
const wildcard = issueServerCertificate(
  createAuthority('an authority of the operator', period),
  'wildcard',
  ['*.apps.example.com', '*.apps.localhost', '*.shop.example.com'],
  period,
);

async function cluster(): Promise<MemoryCluster> {
  const raw = ({ path }: { path: string }) => {
    const answer =
      path === '/version' ? { major: '1', minor: '36', gitVersion: 'v1.36.0' } : { resources: [{ name: 'mutatingadmissionpolicies' }] };
    return Promise.resolve({ status: 200, headers: {}, body: Readable.from([JSON.stringify(answer)]) });
  };
  const memory = Object.assign(new MemoryCluster(), { raw });
  for (const name of ['fast', 'standard']) {
    const annotations = name === 'standard' ? { 'storageclass.kubernetes.io/is-default-class': 'true' } : {};
    await memory.create(storageClassType, { metadata: { name, annotations }, provisioner: 'example.com/disk' });
  }
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  for (const name of ['apps', 'shop']) {
    const data = { 'tls.crt': base64(wildcard.certificate), 'tls.key': base64(wildcard.key) };
    await memory.create(secretType, { metadata: { name, namespace: 'infra' }, type: 'kubernetes.io/tls', data });
  }
  const crd = kindNamed('CustomResourceDefinition');
  for (const plural of ['certificates', 'clusterissuers']) await memory.create(crd, { metadata: { name: `${plural}.cert-manager.io` } });
  await memory.create(issuerTypeOf({ name: 'letsencrypt' }), { metadata: { name: 'letsencrypt' } });
  return memory;
}

interface Asked {
  objects: KubeObject[];
  report: SettingsReport;
  warnings: string[];
}

async function ask(memory: MemoryCluster, order: SetupOrder): Promise<Asked> {
  let settings: SettingsReport | undefined;
  const { report, warnings } = recordEvents();
  const context = { cluster: memory, report, version: '0.2.0', onSettings: (seen: SettingsReport) => void (settings = seen) };
  const { objects } = await previewSetup(context, order);
  if (settings === undefined) throw new Error('setup told nothing of its settings');
  return { objects, report: settings, warnings: warnings() };
}

async function install(memory: MemoryCluster, order: SetupOrder): Promise<KubeObject[]> {
  const { objects } = await ask(memory, order);
  for (const object of objects) await memory.apply(kindOf(object), structuredClone(object));
  return objects;
}

/** Everything that a file can contain together with a registry in the cluster. */
const file: SetupRequest = {
  domain: 'apps.example.com',
  gatewayExposure: 'loadbalancer',
  gatewayPort: 8080,
  gatewayAddress: '192.0.2.7',
  gatewayGuard: 'off',
  https: 'on',
  httpsPort: 8443,
  httpRedirect: 'off',
  tlsSecret: 'infra/apps',
  tlsSecrets: { 'shop.example.com': 'infra/shop' },
  tlsIssuer: 'letsencrypt',
  imagePrefix: 'mirror.example.com/all',
  images: { node: 'e.example.com/node:1', run: 'e.example.com/run:1' },
  nodePort: 32600,
  registrySize: '50Gi',
  registrySpaceQuotaMB: 100,
  storageClass: 'fast',
  insecureRegistries: ['plain.example.com:5000'],
  buildEnv: { NPM_CONFIG_REGISTRY: 'https://user:secret@npm.example.com/' },
  networkPolicies: 'off',
  appEgress: ['10.20.0.0/16'],
  appIngress: ['monitoring'],
  drainSeconds: 9,
  graceSeconds: 30,
  staging: { memoryMB: 2048 },
  processDefaults: { memoryMB: 512 },
  limits: { space: { pods: 9 } },
  tasksKeptPerApp: 5,
  controllerMemoryMB: 1000,
  org: 'acme',
  space: 'dev',
};
const outside: SetupRequest = { registry: 'registry.example.com/team/kf', insecureRegistry: true, gateway: 'infra/public' };

async function withOutside(memory: MemoryCluster): Promise<MemoryCluster> {
  for (const name of [places.pullSecret, places.pushSecret]) await memory.create(secretType, { metadata: { name, namespace: 'cf' } });
  const gateway = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata: { name: 'public', namespace: 'infra' } };
  await memory.create(kindOf(gateway), gateway);
  return memory;
}

/** By name, except kinds: those of the Gateway API are applied by the first setup only. */
function named(objects: KubeObject[]): Record<string, string> {
  const compared = objects.filter(({ kind }) => kind !== 'CustomResourceDefinition');
  return Object.fromEntries(
    compared.map((object) => [
      `${object.kind ?? ''} ${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`,
      JSON.stringify(object),
    ]),
  );
}

const recordIn = (memory: MemoryCluster): string | undefined => memory.peek(configMapType, 'kf-system', 'kf-setup')?.data?.['setup.yaml'];

test.each([
  ['all that a file may hold', file],
  ['a registry and a gateway outside', outside],
  ['http that is redirected', { httpRedirect: 'on' }],
  ['nothing', {}],
])('setup again without options would change nothing: %s', async (_, asked) => {
  const memory = await withOutside(await cluster());
  const objects = await install(memory, { file: asked, flags: {} });
  const again = await ask(memory, { flags: {} });
  expect(named(again.objects)).toEqual(named(objects));
  expect(again.report).toMatchObject({ from: 'record', changed: [] });
  expect(again.report.kept.toSorted()).toEqual(Object.keys(asked).toSorted());
});

test('this test covers every key of setup.yaml', () => {
  const tried = [...Object.keys(file), ...Object.keys(outside), 'gatewayClass', 'controllerImage'];
  expect(knownKeys.filter((key) => !tried.includes(key))).toEqual([]);
});

test('a flag changes only its own setting', async () => {
  const memory = await cluster();
  const objects = await install(memory, { file, flags: {} });
  const again = await ask(memory, { flags: { gatewayPort: 9090 } });
  const [before, after] = [named(objects), named(again.objects)];
  expect(Object.keys(after).filter((name) => after[name] !== before[name])).toEqual([
    'ConfigMap kf-system/kf-setup',
    'ConfigMap cf/kf-info',
  ]);
  expect(again.report.kept).not.toContain('gatewayPort');
  expect(again.report.changed).toEqual([{ key: 'gatewayPort', before: '8080', after: '9090' }]);
});

test('a flag replaces the settings that it excludes', async () => {
  const memory = await withOutside(await cluster());
  const gatewayClass = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass', metadata: { name: 'edge' } };
  await memory.create(kindOf(gatewayClass), gatewayClass);
  await install(memory, { file: outside, flags: {} });
  const again = await ask(memory, { flags: { gatewayClass: 'edge', registry: 'other.example.com' } });
  expect(again.report.changed.toSorted((one, other) => one.key.localeCompare(other.key))).toEqual([
    { key: 'gateway', before: 'infra/public', after: 'none' },
    { key: 'gatewayClass', before: 'none', after: 'edge' },
    { key: 'insecureRegistry', before: 'true', after: 'false' },
    { key: 'registry', before: 'registry.example.com/team/kf', after: 'other.example.com' },
  ]);
});

test('a file replaces all settings: missing ones return to the default, and the message has no secrets', async () => {
  const memory = await cluster();
  await install(memory, { file: { ...file, domain: 'apps.localhost' }, flags: {} });
  const { objects, report } = await ask(memory, { file: { gatewayPort: 8080, buildEnv: { B: 'new' } }, flags: {} });
  const fresh = await ask(await cluster(), { file: { gatewayPort: 8080, buildEnv: { B: 'new' } }, flags: {} });
  expect(Object.keys(named(objects))).toEqual(Object.keys(named(fresh.objects)));
  expect(report.kept).toEqual([]);
  const told = new Map(report.changed.map(({ key, before, after }) => [key, `${before} to ${after}`]));
  expect(told.get('images.node')).toBe('e.example.com/node:1 to docker.io/library/node:24-slim');
  expect(told.get('buildEnv.NPM_CONFIG_REGISTRY')).toBe('set to none');
  expect(told.get('buildEnv.B')).toBe('none to set');
  expect(told.get('staging.memoryMB')).toBe('2048 to 1024');
  expect(told.has('gatewayPort')).toBe(false);
  expect(JSON.stringify(report)).not.toContain('secret@');
});

test('the exposure of the gateway stays, whatever the cluster gets later', async () => {
  const memory = await cluster();
  const objects = await install(memory, { flags: {} });
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'balanced', namespace: 'x' } };
  await memory.create(kindOf(service), {
    ...service,
    ...{ spec: { type: 'LoadBalancer' }, status: { loadBalancer: { ingress: [{ ip: '192.0.2.8' }] } } },
  });
  expect(named((await ask(memory, { flags: {} })).objects)).toEqual(named(objects));
});

test('the record contains no environment of builds, which may contain passwords', async () => {
  const memory = await cluster();
  await install(memory, { file, flags: {} });
  expect(recordIn(memory)).toContain('imagePrefix: mirror.example.com/all\n');
  expect(recordIn(memory)).not.toMatch(/buildEnv|secret/);
});

test.each([
  ['future: true\n', "this kf does not know the key 'future'."],
  ['- a\n', 'it holds no map of settings.'],
  ['a: [\n', 'cannot be read'],
])('with a record that cannot be read (%j) setup asks for a file, and uses one', async (text, message) => {
  const memory = await cluster();
  await install(memory, { flags: {} });
  await memory.mergePatch(configMapType, 'kf-system', 'kf-setup', { data: { 'setup.yaml': text } });
  const refusal = ask(memory, { flags: {} });
  await expect(refusal).rejects.toThrow(message);
  await expect(refusal).rejects.toMatchObject({ code: 'failed', hints: expect.arrayContaining(['kf setup -f setup.yaml']) as string[] });
  expect((await ask(memory, { file: {}, flags: {} })).report).toMatchObject({ kept: [], changed: [] });
});

/** The state that a kf without the record leaves. */
async function withoutRecord(memory: MemoryCluster): Promise<void> {
  await memory.delete(configMapType, 'kf-system', 'kf-setup');
}

/** Everything except the record, which contains more if it was made from objects. */
const others = (objects: KubeObject[]): KubeObject[] => objects.filter(({ metadata }) => metadata.name !== 'kf-setup');

test.each([
  ['all that a file may hold', { ...file, networkPolicies: 'on' }],
  ['no policies', { networkPolicies: 'off' }],
  ['a mirror', { imagePrefix: 'mirror.example.com/all', storageClass: 'standard' }],
  ['another image for the programs', { controllerImage: 'e.example.com/node:24', storageClass: 'standard' }],
  ['no limit for a space', { registrySpaceQuotaMB: 0, storageClass: 'standard' }],
  ['http that is redirected', { httpRedirect: 'on', storageClass: 'standard' }],
  ['no https', { https: 'off', storageClass: 'standard' }],
  ['a registry and a gateway outside', outside],
])('an installation without a record is read from its objects: %s', async (_, asked: SetupRequest) => {
  const memory = await withOutside(await cluster());
  const objects = await install(memory, { file: asked, flags: {} });
  await withoutRecord(memory);
  const again = await ask(memory, { flags: {} });
  expect(named(others(again.objects))).toEqual(named(others(objects)));
  expect(again.report).toMatchObject({ from: 'objects', changed: [] });
});

test.each([
  ['text that is no JSON', '{"format": 1,', 'is not valid JSON: '],
  ['an object without a format', '{}', 'names no format.'],
  ['JSON without a map', 'null', 'names no format.'],
  ['one that lacks what every command needs', '{"format":1}', 'does not contain controller, registry'],
])('a broken description of the installation is written again, with a message: %s', async (_, broken, fault) => {
  const memory = await cluster();
  const objects = await install(memory, { file, flags: {} });
  await memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': broken } });
  const again = await ask(memory, { flags: {} });
  expect(named(again.objects)).toEqual(named(objects));
  expect(again.warnings).toHaveLength(1);
  expect(again.warnings[0]).toMatch(
    new RegExp(`^The installation's description \\(ConfigMap kf-info\\) ${fault}.* Setup writes it again\\.$`),
  );
});

test('if a broken description was the only record of the settings, setup asks for a file and uses it', async () => {
  const memory = await cluster();
  const objects = await install(memory, { file, flags: {} });
  await withoutRecord(memory);
  await memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': '{' } });
  await expect(ask(memory, { flags: {} })).rejects.toMatchObject({
    message: expect.stringMatching(/^This installation has no record of its settings\. .*kf-info\) is not valid JSON/) as string,
    hints: ['kf setup -f setup.yaml'],
  });
  expect(named((await ask(memory, { file, flags: {} })).objects)).toEqual(named(objects));
});

test("for an installation of kf 0.1.0 missing settings get today's defaults, and its images and mirrors stay", async () => {
  const memory = await cluster();
  await install(memory, { file: { images: { registry: 'e.example.com/registry:3' }, gatewayPort: 8080 }, flags: {} });
  await withoutRecord(memory);
  const map = memory.peek(configMapType, 'cf', 'kf-info');
  const { limits: _limits, network: _network, ...info } = JSON.parse(map?.data?.['info.json'] ?? '') as Record<string, unknown>;
  const registry = { ...(info['registry'] as Record<string, unknown>), spaceQuotaBytes: undefined };
  const builder = { ...(info['builder'] as Record<string, unknown>), env: { MIRROR: 'https://mirror.example.com' } };
  await memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': JSON.stringify({ ...info, registry, builder }) } });
  const { objects, report } = await ask(memory, { flags: {} });
  expect(report).toMatchObject({ from: 'objects', kept: ['images', 'gatewayPort', 'buildEnv'] });
  const next = objects.find(({ metadata }) => metadata.name === 'kf-info') as { data?: Record<string, string> } | undefined;
  expect(JSON.parse(next?.data?.['info.json'] ?? '')).toMatchObject({
    limits: {},
    network: {},
    registry: { spaceQuotaBytes: 4096 * 1024 * 1024 },
  });
  expect(JSON.stringify(objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'kf-registry'))).toContain(
    'e.example.com/registry:3',
  );
});

test('if the objects do not show the images setup asks for a file, and names what is missing', async () => {
  const memory = await cluster();
  await install(memory, { file, flags: {} });
  await withoutRecord(memory);
  await memory.delete(deploymentType, 'kf-system', 'kf-registry');
  await expect(ask(memory, { flags: {} })).rejects.toMatchObject({
    message:
      'This installation has no record of its settings. The object that names its images is missing: Deployment kf-system/kf-registry.',
    hints: ['kf setup -f setup.yaml'],
  });
  expect((await ask(memory, { file, flags: {} })).report.changed).toEqual([]);
});

test('a cluster without kf has no settings to keep', async () => {
  const { report } = await ask(await cluster(), { flags: { gatewayPort: 8080 } });
  expect(report).toEqual({ from: 'nothing', kept: [], changed: [] });
});
