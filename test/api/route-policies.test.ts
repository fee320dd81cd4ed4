// Which users may write the objects that the gateway reads: checked with the real API server, with more rights than any role of kf gives.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace, makeSpaceLike, removeKinds } from './kubectl.ts';

const run = Date.now().toString(36);
const space = `space-${run}`;
const elsewhere = `elsewhere-${run}`;
const rbac = 'rbac.authorization.k8s.io';
const person = (name: string) => ({ apiGroup: rbac, kind: 'User', name: `${name}-${run}` });
const binding = (name: string, role: string, subject: string, namespace: string) => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name: `${name}-${run}`, namespace },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
  subjects: [person(subject)],
});
const gatewayKinds = join(import.meta.dirname, '../../manifests/gateway-api');
const everything = {
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRole',
  metadata: { name: `routes-${run}` },
  rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
};

const domain = (name: string, spec: object) => ({
  apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
  kind: 'CFDomain',
  metadata: { name: `${name}-${run}`, namespace: 'cf' },
  spec: { name: `${name}-${run}.example.com`, ...spec },
});

beforeAll(async () => {
  await installKinds();
  await kubectl(['apply', '--server-side', '-f', gatewayKinds]);
  await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=120s']);
  await installRoles();
  await installPolicies();
  await makeSpaceLike(space);
  await makeNamespace(elsewhere);
  await kubectl(['apply', '-f', '-'], { input: [domain('d', {}), domain('own', { org: space }), domain('theirs', { org: 'other-org' })] });
  await kubectl(['apply', '-f', '-'], { input: domain('shared', { org: 'other-org', sharedWith: ['third', space] }) });
  const input = [
    everything,
    binding('dev', 'korifi-controllers-space-developer', 'dev', space),
    // More than any role of kf grants, like an `edit` of the cluster that includes the Gateway API: every right in this one namespace.
    binding('edit', everything.metadata.name, 'edit', space),
    binding('edit', everything.metadata.name, 'edit', elsewhere),
    binding('operator', 'korifi-controllers-admin', 'operator', space),
    binding('operator', 'korifi-controllers-admin', 'operator', 'cf'),
    binding('user', 'korifi-controllers-root-namespace-user', 'dev', 'cf'),
  ];
  await kubectl(['apply', '-f', '-'], { input });
});

afterAll(async () => {
  await kubectl(['delete', 'clusterrole', everything.metadata.name]);
  await kubectl(['delete', 'cfdomain', '-n', 'cf', ...['d', 'own', 'theirs', 'shared'].map((name) => `${name}-${run}`)]);
  // Tests of setup check whether it installs these kinds if there are none.
  await removeKinds(gatewayKinds);
});

async function create(input: object, who: string): Promise<string> {
  const { code, stderr } = await ask(['create', '--dry-run=server', '-f', '-'], { input, as: `${who}-${run}` });
  return code === 0 ? 'accepted' : stderr;
}

const route = (host: string, annotations: Record<string, string> = {}, on = 'd', path = '') => ({
  apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
  kind: 'CFRoute',
  metadata: { name: on === 'd' ? `r-${run}` : `p-${run}`, namespace: space, annotations },
  spec: { host, path, domainRef: { name: `${on}-${run}`, namespace: 'cf' } },
});
const allowed = { 'kf.cloudfoundry.org/wildcard': 'allowed' };

describe('a route for every host of a domain', () => {
  test('can be created by an operator, and a developer is refused with the reason, whatever the annotations', async () => {
    expect(await create(route('shop'), 'dev')).toBe('accepted');
    const refusal = "A route for every host of a domain ('*') would take the requests of other spaces; only an operator";
    for (const who of ['dev', 'edit']) expect(await create(route('*', allowed), who), who).toContain(refusal);
    expect(await create(route('*'), 'dev')).toContain(refusal);
    expect(await create(route('*', allowed), 'operator')).toBe('accepted');
  });

  test('that existed before cannot be allowed by a developer', async () => {
    await kubectl(['create', '-f', '-'], { input: route('*') });
    const annotate = (who: string) =>
      ask(['annotate', 'cfroute', '-n', space, `r-${run}`, `${Object.keys(allowed).join('')}=allowed`, '--overwrite'], {
        as: `${who}-${run}`,
      });
    expect((await annotate('dev')).stderr).toContain("Annotation kf.cloudfoundry.org/wildcard is an operator's");
    expect((await annotate('operator')).code).toBe(0);
    const relabel = await ask(['label', 'cfroute', '-n', space, `r-${run}`, 'a=b'], { as: `dev-${run}` });
    expect(relabel.stderr).toBe('');
  });
});

describe('a route on a private domain', () => {
  test('is refused in a space of another org, also to an operator, until the domain is shared with it', async () => {
    const refusal = `Domain 'theirs-${run}.example.com' is private and not available in the organization of this space`;
    for (const who of ['dev', 'edit', 'operator']) expect(await create(route('www', {}, 'theirs'), who), who).toContain(refusal);
    for (const on of ['own', 'shared']) expect(await create(route('www', {}, on), 'dev'), on).toBe('accepted');
  });

  test("for every host can be created by a developer of the domain's org, without a path, and by no developer of an org it is shared with", async () => {
    expect(await create(route('*', {}, 'own'), 'dev')).toBe('accepted');
    const refusal = 'only an operator, who may create domains, makes one';
    expect(await create(route('*', {}, 'own', '/login'), 'dev')).toContain(refusal);
    expect(await create(route('*', {}, 'shared'), 'dev')).toContain(refusal);
    expect(await create(route('*', allowed, 'own'), 'dev')).toContain("is an operator's");
  });
});

describe('the objects that the gateway reads', () => {
  const httpRoute = (namespace: string) => ({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: `bank-${run}`, namespace },
    spec: { parentRefs: [{ namespace: 'kf-system', name: 'kf' }], hostnames: ['bank.apps.example.com'] },
  });
  const grant = {
    apiVersion: 'gateway.networking.k8s.io/v1beta1',
    kind: 'ReferenceGrant',
    metadata: { name: `grant-${run}`, namespace: space },
    spec: { from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: elsewhere }], to: [{ group: '', kind: 'Service' }] },
  };

  test("are not writable with a developer's rights", async () => {
    expect(await create(httpRoute(space), 'dev')).toContain('cannot create resource "httproutes"');
  });

  test('are refused in the namespaces of kf even to a user with every right there', async () => {
    const refusal = `What the gateway reads in namespace ${space} is written by kf's controller only`;
    expect(await create(httpRoute(space), 'edit')).toContain(refusal);
    expect(await create(grant, 'edit')).toContain(refusal);
    expect(await create(httpRoute(elsewhere), 'edit')).toBe('accepted');
  });
});

test('users can ask for the owner of a host by its name, and cannot list the names', async () => {
  const as = `dev-${run}`;
  expect((await ask(['get', 'lease', '-n', 'cf', 'n-none'], { as })).stderr).toContain('NotFound');
  expect((await ask(['get', 'leases', '-n', 'cf'], { as })).stderr).toContain('cannot list resource "leases"');
});

test.each(['dev', 'edit'])('a domain cannot be created by %s', async (who) => {
  const wanted = domain('x', {});
  expect(await create(wanted, who)).toContain('cannot create resource "cfdomains"');
  expect(await create({ ...wanted, metadata: { name: 'x', namespace: space } }, who)).not.toBe('accepted');
});
