// What the real API server accepts of domains that belong to an org, and from whom.

import { beforeAll, expect, test } from 'vitest';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace } from './kubectl.ts';

const run = Date.now().toString(36);
const org = `org-${run}`;
const rbac = 'rbac.authorization.k8s.io';
const binding = (role: string, subject: string, namespace: string) => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name: `${role.replace('korifi-controllers-', '')}-${subject}-${run}`, namespace },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
  subjects: [{ apiGroup: rbac, kind: 'User', name: `${subject}-${run}` }],
});
const domain = (name: string, spec: object) => ({
  apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
  kind: 'CFDomain',
  metadata: { name: `${name}-${run}`, namespace: 'cf' },
  spec: { name: `${name}-${run}.example.com`, ...spec },
});

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeNamespace(org);
  const input = [
    binding('korifi-controllers-admin', 'operator', 'cf'),
    binding('korifi-controllers-root-namespace-user', 'manager', 'cf'),
    binding('korifi-controllers-organization-manager', 'manager', org),
  ];
  await kubectl(['apply', '-f', '-'], { input });
});

const write = async (args: string[], who: string, input?: object): Promise<string> => {
  const { code, stderr } = await ask(args, { ...(input === undefined ? {} : { input }), as: `${who}-${run}` });
  return code === 0 ? 'accepted' : stderr;
};
const create = (object: object, who: string) => write(['create', '-f', '-'], who, object);
const change = (name: string, spec: object, who: string) =>
  write(['patch', 'cfdomain', '-n', 'cf', `${name}-${run}`, '--type=merge', '-p', JSON.stringify({ spec })], who);

test('a domain of an org is made and shared by an operator, and by nobody else', async () => {
  expect(await create(domain('mine', { org }), 'manager')).toContain('cannot create resource "cfdomains"');
  expect(await create(domain('team', { org }), 'operator')).toBe('accepted');
  expect(await change('team', { sharedWith: ['other'] }, 'manager')).toContain('cannot patch resource "cfdomains"');
  expect(await change('team', { sharedWith: ['other'] }, 'operator')).toBe('accepted');
});

test('the org of a domain stays: it is neither changed, given nor taken away', async () => {
  expect(await create(domain('kept', { org }), 'operator')).toBe('accepted');
  expect(await create(domain('all', {}), 'operator')).toBe('accepted');
  const refusal = 'The org of a domain cannot be changed';
  expect(await change('kept', { org: 'other' }, 'operator')).toContain(refusal);
  expect(await change('kept', { org: null }, 'operator')).toContain(refusal);
  expect(await change('all', { org }, 'operator')).toContain(refusal);
  expect(await change('all', { httpRedirect: true }, 'operator')).toBe('accepted');
});
