// Setup on a control plane without storage, Gateway API and kf.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { auditEnd, auditFrom, writesOfKf } from '../support/audit.ts';
import { kf, kfWith } from './kf.ts';
import { kubectl, kubectlJson, makeNamespace, makeStorageClass } from './kubectl.ts';

beforeAll(() => makeStorageClass('any'));

test('setup without a StorageClass says that the registry needs a volume, and names alternatives', async () => {
  const ran = await kf('setup', '--dry-run');
  expect(ran.code).toBe(1);
  expect(ran.stdout).toMatch(/FAILED\n$/);
  expect(ran.stderr).toContain('no default StorageClass');
  expect(ran.stderr).toContain('kf setup --registry HOST/PREFIX');
});

test('a StorageClass that does not exist is reported with those that exist', async () => {
  const ran = await kf('setup', '--storage-class', 'other');
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringMatching(/There is no StorageClass 'other'\.[^]*any/)]);
});

test('a user with only half of the rights gets the missing ones before anything is written', async () => {
  const rules = [
    { apiGroups: [''], resources: ['*'], verbs: ['*'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list'] },
    {
      apiGroups: ['apps', 'storage.k8s.io', 'apiextensions.k8s.io', 'gateway.networking.k8s.io', 'korifi.cloudfoundry.org'],
      resources: ['*'],
      verbs: ['*'],
    },
  ];
  const name = 'half-an-admin';
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name } };
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }];
  await kubectl(['apply', '--server-side', '-f', '-'], {
    input: [
      { ...rbac, kind: 'ClusterRole', rules },
      { ...rbac, kind: 'ClusterRoleBinding', roleRef, subjects },
    ],
  });
  interface Config {
    users: { user: Record<string, unknown> }[];
  }
  const config = await kubectlJson<Config>(['config', 'view', '--raw', '--flatten']);
  for (const { user } of config.users) user['as'] = name;
  const folder = mkdtempSync(path.join(tmpdir(), 'kf-half-'));
  const file = path.join(folder, 'kubeconfig');
  writeFileSync(file, JSON.stringify(config));
  const start = await auditEnd();
  const ran = await kfWith(file, ['setup', '--storage-class', 'any']);
  rmSync(folder, { recursive: true });
  expect(ran.code).toBe(1);
  expect(ran.stderr).toMatch(/So would \d+ more\. Nothing was written\./);
  expect(ran.stderr).toMatch(/half-an-admin|clusterroles|validatingadmissionpolicies|cfdomains/);
  const writes = writesOfKf(await auditFrom(start));
  expect(writes.filter(({ requestURI }) => !/dryRun=All/.test(requestURI))).toEqual([]);
});

test('setup waits for an object that is being deleted instead of writing to it', async () => {
  const finalizers = ['example.com/stays'];
  await makeNamespace('kf-system');
  await kubectl(['apply', '--server-side', '-f', '-'], {
    input: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kf-registry', namespace: 'kf-system', finalizers } },
  });
  await kubectl(['delete', 'configmap', '-n', 'kf-system', 'kf-registry', '--wait=false']);
  const ran = await kf('setup', '--storage-class', 'any');
  await kubectl(['patch', 'configmap', '-n', 'kf-system', 'kf-registry', '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('ConfigMap kf-system/kf-registry is being deleted')]);
  expect(ran.stderr).toContain('kubectl wait --for=delete configmap/kf-registry -n kf-system');
});

test('setup installs the Gateway API if there is none', async () => {
  const ran = await kf('setup', '--dry-run', '--storage-class', 'any');
  expect(ran.stderr).not.toContain('FAILED');
  expect(ran.code).toBe(0);
  expect(ran.stdout).toContain('name: httproutes.gateway.networking.k8s.io');
  expect(ran.stdout).toContain('name: cfapps.korifi.cloudfoundry.org');
});

test('images of a mirror are used by prefix', async () => {
  const ran = await kf('setup', '--dry-run', '--storage-class', 'any', '--image-prefix', 'mirror.example.com/all');
  expect(ran.stdout).toMatch(/image: mirror\.example\.com\/all\/library\/node:24/);
  expect(ran.stdout).not.toContain('image: docker.io/');
});

test('on a cluster without kf a command names the command that installs it', async () => {
  const ran = await kf('target', '-o', 'none');
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain('kf setup');
});
