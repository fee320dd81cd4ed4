import { describe, expect, test } from 'vitest';
import { sha224 } from '../../../src/lib/api/names.ts';
import { cfRoles, subjectOf } from '../../../src/lib/api/roles.ts';
import type { KubeObject, Stored } from '../../../src/lib/api/object.ts';
import { buildApp, buildEnvSecret, buildProcess } from '../../../src/templates/app.ts';
import { buildBuild, buildBuildEnvSecret, buildPackage } from '../../../src/templates/build.ts';
import { buildDestination, buildRoute } from '../../../src/templates/route.ts';
import { buildAppBinding, buildCredentialsSecret, buildUserProvidedInstance } from '../../../src/templates/service.ts';
import { buildDomain, buildOrg, buildRoleBinding, buildSpace } from '../../../src/templates/tenancy.ts';
import { asStored } from '../../support/stored.ts';

const author = { changedBy: 'alice', now: new Date('2026-08-07T10:16:20Z') };
const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
const seen = <T extends KubeObject>(object: T): Stored<T> =>
  asStored({ ...object, metadata: { ...object.metadata, uid: `uid-${object.metadata.name}` } });
const app = seen(buildApp({ guid: 'app', namespace: 'space', displayName: 'shop', lifecycle, pushId: 'push' }, author));
const domain = buildDomain({ guid: 'domain', rootNamespace: 'cf', name: 'Apps.Example.com' }, author);
const instance = seen(
  buildUserProvidedInstance({ guid: 'instance', namespace: 'space', displayName: 'db', secretName: 'secret', tags: ['sql'] }, author),
);
const build = seen(
  buildBuild(
    { guid: 'build', app, packageGuid: 'package', lifecycle, stagingMemoryMB: 1024, stagingDiskMB: 4096, buildKey: 'key' },
    author,
  ),
);

test('every object names its maker and the version of the contract, and has its index labels', () => {
  const made: KubeObject[] = [
    app,
    domain,
    instance,
    build,
    buildOrg({ guid: 'org', rootNamespace: 'cf', displayName: 'acme' }, author),
    buildSpace({ guid: 'space', orgGuid: 'org', displayName: 'dev' }, author),
    buildProcess({ app, type: 'web', memoryMB: 256, diskQuotaMB: 1024 }, author),
    buildPackage({ guid: 'package', app, type: 'bits', image: 'registry/x@sha256:0' }, author),
    buildRoute({ guid: 'route', namespace: 'space', host: 'shop', domain }, author),
    buildAppBinding({ guid: 'binding', app, instance }, author),
  ];
  for (const { metadata } of made) {
    expect(metadata.annotations).toMatchObject({
      'korifi.cloudfoundry.org/creation-version': 'v0.18.0',
      'kf.cloudfoundry.org/changed-by': 'alice',
    });
    expect(metadata.labels).toMatchObject({
      'korifi.cloudfoundry.org/guid': metadata.name,
      'korifi.cloudfoundry.org/created_at': '2026-08-07T10-16-20',
    });
  }
});

describe('an app', () => {
  test('starts stopped at revision 0, with the id of the push that makes it', () => {
    expect(app.spec).toEqual({ displayName: 'shop', desiredState: 'STOPPED', lifecycle, envSecretName: 'app-env' });
    expect(app.metadata.annotations).toMatchObject({
      'korifi.cloudfoundry.org/app-rev': '0',
      'kf.cloudfoundry.org/push-id': 'push',
      'kf.cloudfoundry.org/push-started': '2026-08-07T10:16:20.000Z',
    });
    expect(app.metadata.finalizers).toBeUndefined();
  });

  test('owns its environment, but does not control it', () => {
    const secret = buildEnvSecret(app, { GREETING: 'grüezi' }, author);
    expect(secret.metadata.name).toBe('app-env');
    expect(secret.metadata.labels).toEqual({ 'korifi.cloudfoundry.org/app-guid': 'app' });
    expect(secret.metadata.ownerReferences).toEqual([
      { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFApp', name: 'app', uid: 'uid-app' },
    ]);
    expect(Buffer.from(secret.data?.['GREETING'] ?? '', 'base64').toString()).toBe('grüezi');
  });

  test('has one web instance with a port check unless told otherwise, and none of other types', () => {
    const size = { memoryMB: 256, diskQuotaMB: 1024 };
    const web = buildProcess({ app, type: 'web', ...size }, author).spec;
    const worker = buildProcess({ app, type: 'worker', ...size }, author).spec;
    expect([web.desiredInstances, web.healthCheck.type]).toEqual([1, 'port']);
    expect([worker.desiredInstances, worker.healthCheck.type]).toEqual([0, 'process']);
    expect(buildProcess({ app, type: 'web', instances: 0, ...size }, author).spec.desiredInstances).toBe(0);
  });

  test('leaves out fields that were not given', () => {
    expect(Object.keys(buildProcess({ app, type: 'web', memoryMB: 1, diskQuotaMB: 1, command: undefined }, author).spec)).not.toContain(
      'command',
    );
  });
});

test('package and build have the hashes that decide whether work can be skipped', () => {
  const pkg = buildPackage({ guid: 'package', app, type: 'bits', image: 'r/x@sha256:0', contentHash: 'hash', pushId: 'push' }, author);
  expect(pkg.metadata.annotations).toMatchObject({ 'kf.cloudfoundry.org/content-hash': 'hash', 'kf.cloudfoundry.org/push-id': 'push' });
  expect(build.metadata.annotations).toMatchObject({ 'kf.cloudfoundry.org/build-key': 'key' });
  expect(build.metadata.labels).toMatchObject({
    'korifi.cloudfoundry.org/app-guid': 'app',
    'korifi.cloudfoundry.org/package-guid': 'package',
    'korifi.cloudfoundry.org/droplet-guid': 'build',
  });
  expect(build.metadata.ownerReferences?.[0]).toMatchObject({ kind: 'CFApp', controller: true });
});

test('the environment of a build is written once and deleted with the build', () => {
  const secret = buildBuildEnvSecret(build, { BP: '1' }, author);
  expect(secret).toMatchObject({
    immutable: true,
    metadata: { name: 'build-env', ownerReferences: [{ kind: 'CFBuild', uid: 'uid-build' }] },
  });
});

test('a route names its domain, its apps and that it is mapped', () => {
  const destinations = [buildDestination({ guid: 'd1', appGuid: 'app' }), buildDestination({ guid: 'd2', appGuid: 'other', port: 9000 })];
  const route = buildRoute({ guid: 'route', namespace: 'space', host: 'shop', path: '/v1', domain, destinations }, author);
  expect(route.spec.domainRef).toEqual({ name: 'domain', namespace: 'cf' });
  expect(route.metadata.annotations?.['korifi.cloudfoundry.org/app-guids']).toBe('app\nother');
  expect(route.metadata.labels).toMatchObject({
    'korifi.cloudfoundry.org/domain-guid': 'domain',
    'korifi.cloudfoundry.org/route-host': 'shop',
    'korifi.cloudfoundry.org/route-path': sha224('/v1'),
    'korifi.cloudfoundry.org/unmapped': 'false',
  });
});

test('a route for every host carries the mark of an operator, unless the domain belongs to the org of its space', () => {
  const org = seen(buildOrg({ guid: 'org', rootNamespace: 'cf', displayName: 'org' }, author));
  const own = buildDomain({ guid: 'own', rootNamespace: 'cf', name: 'team.example.com', org }, author);
  const mark = (more: object) =>
    buildRoute({ guid: 'route', namespace: 'space', host: '*', domain: own, ...more }, author).metadata.annotations?.[
      'kf.cloudfoundry.org/wildcard'
    ];
  expect(mark({ org: 'org' })).toBeUndefined();
  expect([mark({ org: 'other' }), mark({}), mark({ org: 'org', path: '/login' }), mark({ org: 'org', domain })]).toEqual(
    Array.from({ length: 4 }, () => 'allowed'),
  );
});

test('a domain is stored in lower case', () => {
  expect(domain.spec.name).toBe('apps.example.com');
});

test('credentials are one JSON object that belongs to its instance', () => {
  const secret = buildCredentialsSecret(instance, { uri: 'postgres://x', port: 5432 }, author);
  expect(secret.metadata).toMatchObject({ name: 'secret', labels: { 'korifi.cloudfoundry.org/service-instance-guid': 'instance' } });
  expect(JSON.parse(Buffer.from(secret.data?.['credentials'] ?? '', 'base64').toString())).toEqual({ uri: 'postgres://x', port: 5432 });
});

test('a binding connects app and instance and is marked as a provisioned service', () => {
  const binding = buildAppBinding({ guid: 'binding', app, instance, displayName: 'main-db' }, author);
  expect(binding.metadata.labels).toMatchObject({
    'servicebinding.io/provisioned-service': 'true',
    'korifi.cloudfoundry.org/app-guid': 'app',
    'korifi.cloudfoundry.org/service-instance-guid': 'instance',
    'korifi.cloudfoundry.org/display-name': sha224('main-db'),
  });
  expect(binding.metadata.annotations).toMatchObject({ 'korifi.cloudfoundry.org/service-instance-type': 'user-provided' });
});

describe('a role', () => {
  test('of a person is one binding named after role and person', () => {
    const binding = buildRoleBinding({ role: cfRoles.spaceDeveloper, subject: subjectOf('alice'), namespace: 'space', guid: 'role' });
    expect(binding.metadata.name).toBe('cf-397993fd2409784578b04d93893ccaa4c33899a29ca9e93027b9c960a9cdddfb');
    expect(binding.roleRef.name).toBe('korifi-controllers-space-developer');
    expect(binding.metadata.annotations).toEqual({ 'cloudfoundry.org/propagate-cf-role': 'false' });
  });

  test('of a service account names the account, not a user', () => {
    const subject = subjectOf('system:serviceaccount:ci:deployer');
    const binding = buildRoleBinding({ role: cfRoles.organizationManager, subject, namespace: 'org', guid: 'role' });
    expect(binding.subjects).toEqual([{ kind: 'ServiceAccount', namespace: 'ci', name: 'deployer' }]);
    expect(binding.metadata.annotations).toEqual({ 'cloudfoundry.org/propagate-cf-role': 'true' });
  });
});
