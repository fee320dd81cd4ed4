// Attacker: the owner of the controller's pod, and so of its token. They must not get the rights of the cluster, the registry, or another account.

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { feed } from '../../support/feed.ts';
import { kubectl, ringEnv } from '../../support/kf.ts';
import type { Said } from '../../support/members.ts';

const space = ringEnv('KF_TEST_SPACE_GUID');
let org: string;
let folder: string;
let config: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-controller-'));
  config = path.join(folder, 'kubeconfig');
  const token = (await kubectl('create', 'token', 'kf-controller', '-n', 'kf-system')).trim();
  const text = parse(await readFile(ringEnv('KF_TEST_KUBECONFIG'), 'utf8')) as { users: { user: Record<string, unknown> }[] };
  for (const entry of text.users) entry.user = { token };
  await writeFile(config, stringify(text), { mode: 0o600 });
  org = await kubectl('get', 'namespace', space, '-o', String.raw`jsonpath={.metadata.labels.korifi\.cloudfoundry\.org/org-guid}`);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** kubectl with the controller's token and nothing else. */
function steal(args: string[], input?: object): Promise<Said> {
  return new Promise((resolve) => {
    const child = execFile('kubectl', args, { env: { ...process.env, KUBECONFIG: config } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, stdout, stderr });
    });
    feed(child, input === undefined ? '' : JSON.stringify(input));
  });
}

/** Every attempt is a dry run: the server checks it like a real one, and a successful attempt changes nothing. */
const attempt = (input: object): Promise<Said> => steal(['create', '--dry-run=server', '-f', '-'], input);

const rbac = 'rbac.authorization.k8s.io';
const self = { kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' };
const outsider = { apiGroup: rbac, kind: 'User', name: 'mallory' };
const binding = (role: string, namespace: string, subject: object, labels: Record<string, string> = {}, name = 'attempt') => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name, namespace, labels },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
  subjects: [subject],
});
const from = (parent: string) => ({ 'cloudfoundry.org/propagated-from': parent });
const pod = (namespace: string, spec: object, name = 'attempt') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace },
  spec: { containers: [{ name: 'c', image: 'i' }], automountServiceAccountToken: false, ...spec },
});
const job = (namespace: string, spec: object) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'attempt', namespace },
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }], ...spec } } },
});
const namespace = (labels: object) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: 'attempt',
    labels: { 'kf.cloudfoundry.org/managed-by': 'kf', 'korifi.cloudfoundry.org/org-guid': 'attempt', ...labels },
    annotations: { 'kf.cloudfoundry.org/owner-uid': 'u' },
  },
});
const refused = /forbidden|may not|may only|may make no/i;

describe('somebody with the token of the controller', () => {
  test('can do the work of the controller', async () => {
    expect(await attempt(binding('kf-controller-space', space, self, {}, 'kf-controller-space'))).toMatchObject({
      stderr: expect.stringContaining('already exists') as string,
    });
    expect(await attempt(binding('korifi-controllers-admin', space, outsider, from(org)))).toMatchObject({ code: 0 });
    expect(await attempt(namespace({ 'pod-security.kubernetes.io/enforce': 'restricted' }))).toMatchObject({ code: 0 });
  });

  const bindings: [string, () => object][] = [
    ['its own role in kf-node', () => binding('kf-controller-space', 'kf-node', self, {}, 'kf-controller-space')],
    ['its own role in kf-system', () => binding('kf-controller-space', 'kf-system', self, {}, 'kf-controller-space')],
    ['its own role in kube-system', () => binding('kf-controller-space', 'kube-system', self, {}, 'kf-controller-space')],
    ['its own role in the root namespace', () => binding('kf-controller-space', 'cf', self, {}, 'kf-controller-space')],
    ['space-developer to itself', () => binding('korifi-controllers-space-developer', space, self, from(org))],
    ['admin to itself', () => binding('korifi-controllers-admin', space, self, from(org))],
    [
      'admin to itself under its user name',
      () => binding('korifi-controllers-admin', space, { ...outsider, name: 'system:serviceaccount:kf-system:kf-controller' }, from(org)),
    ],
    [
      'admin to all accounts of kf-system',
      () => binding('korifi-controllers-admin', space, { ...outsider, kind: 'Group', name: 'system:serviceaccounts:kf-system' }, from(org)),
    ],
    [
      'space-developer to the account of apps',
      () =>
        binding('korifi-controllers-space-developer', space, { kind: 'ServiceAccount', name: 'korifi-app', namespace: space }, from(org)),
    ],
    ['admin to an outsider in the root namespace', () => binding('korifi-controllers-admin', 'cf', outsider, from('cf'))],
    ['a role that nobody handed down', () => binding('korifi-controllers-space-developer', space, outsider)],
  ];
  test.each(bindings)('cannot bind %s', async (_what, object) => {
    const said = await attempt(object());
    expect(said.stderr).toMatch(refused);
    expect(said.code).toBe(1);
  });

  const pods: [string, () => object][] = [
    [
      'a pod in kf-node',
      () => pod('kf-node', { hostPID: true, containers: [{ name: 'c', image: 'i', securityContext: { privileged: true } }] }),
    ],
    ['a pod of its own in a space', () => pod(space, {})],
    ['a Job in kf-node', () => job('kf-node', {})],
    ['a Job in kf-system', () => job('kf-system', {})],
    ['a Job whose pods get a token', () => job(space, { automountServiceAccountToken: true })],
    ['a pod in kf-system beside the one that reads the builder', () => pod('kf-system', {})],
    [
      'a pod that reads the key of the registry',
      () => pod('kf-system', { volumes: [{ name: 'k', secret: { secretName: 'kf-registry-key' } }] }, 'kf-builder-info'),
    ],
    [
      'a privileged pod under the name of the one that reads the builder',
      () => pod('kf-system', { containers: [{ name: 'c', image: 'i', securityContext: { privileged: true } }] }, 'kf-builder-info'),
    ],
    ['a namespace with PodSecurity privileged', () => namespace({ 'pod-security.kubernetes.io/enforce': 'privileged' })],
    ['a namespace without PodSecurity', () => namespace({})],
    [
      'a Secret that the cluster fills with a token',
      () => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'attempt', namespace: space, annotations: { 'kubernetes.io/service-account.name': 'korifi-app' } },
        type: 'kubernetes.io/service-account-token',
      }),
    ],
    ['another key of the registry', () => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'attempt', namespace: 'kf-system' } })],
    [
      'other programs for the controller and the gate',
      () => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'attempt', namespace: 'kf-system' },
      }),
    ],
  ];
  test.each(pods)('cannot make %s', async (_what, object) => {
    const said = await attempt(object());
    expect(said.stderr).toMatch(refused);
    expect(said.code).toBe(1);
  });

  test('cannot weaken an existing namespace or change its owner', async () => {
    for (const args of [
      ['label', 'namespace', space, 'pod-security.kubernetes.io/enforce=privileged', '--overwrite'],
      ['label', 'namespace', space, 'pod-security.kubernetes.io/enforce-version=v1.19', '--overwrite'],
      ['annotate', 'namespace', space, 'kf.cloudfoundry.org/owner-uid=other', '--overwrite'],
      ['label', 'namespace', 'kf-node', 'korifi.cloudfoundry.org/org-guid=x'],
      ['label', 'namespace', 'kube-system', 'kf.cloudfoundry.org/managed-by=kf', 'korifi.cloudfoundry.org/org-guid=x'],
    ]) {
      const said = await steal([...args, '--dry-run=server']);
      expect(said.stderr, args.join(' ')).toMatch(refused);
    }
  });

  test('has no rights that the controller does not need', async () => {
    const questions = [
      ...['get', 'list', 'update', 'delete'].map((verb) => [verb, 'secrets', '-n', 'kf-node']),
      ...['list', 'create', 'update', 'patch', 'delete'].map((verb) => [verb, 'secrets', '-n', 'kf-system']),
      ['get', 'secrets/kf-gateway', '-n', 'kf-system'],
      ['update', 'secrets/kf-registry-key', '-n', 'kf-system'],
      ...['list', 'create', 'update', 'delete'].map((verb) => [verb, 'secrets', '-n', 'cf']),
      ['get', 'secrets/other', '-n', 'cf'],
      ['create', 'serviceaccounts', '--subresource=token', '-n', 'kf-system'],
      ['create', 'serviceaccounts', '-n', 'kf-system'],
      ...['create', 'update', 'patch', 'delete'].map((verb) => [verb, 'deployments.apps', '-n', 'kf-system']),
      ...['create', 'update', 'patch', 'delete'].map((verb) => [verb, 'configmaps', '-n', 'kf-system']),
      ...['update', 'patch', 'delete'].map((verb) => [verb, 'configmaps/kf-info', '-n', 'cf']),
      ...['update', 'patch', 'delete'].map((verb) => [verb, 'leases.coordination.k8s.io', '-n', 'kf-system']),
      ...['patch', 'delete'].map((verb) => [verb, 'pods', '-n', 'kf-system']),
      ...['create', 'update'].map((verb) => [verb, 'services', '-n', 'kf-system']),
      ['create', 'pods', '-n', space],
      ['create', 'pods', '--subresource=exec', '-n', space],
      ['create', 'pods', '--subresource=attach', '-n', space],
      ['create', 'pods', '--subresource=portforward', '-n', space],
      ['patch', 'pods', '--subresource=ephemeralcontainers', '-n', space],
      ['create', 'persistentvolumeclaims', '-n', space],
      ['update', 'clusterrolebindings'],
      ['create', 'clusterroles'],
      ['create', 'validatingadmissionpolicies.admissionregistration.k8s.io'],
      ['delete', 'validatingadmissionpolicies.admissionregistration.k8s.io'],
      ['create', 'mutatingwebhookconfigurations.admissionregistration.k8s.io'],
      ['patch', 'customresourcedefinitions.apiextensions.k8s.io'],
      ['patch', 'nodes'],
      ['get', 'nodes', '--subresource=proxy'],
      ['impersonate', 'serviceaccounts'],
      ['approve', 'certificatesigningrequests.certificates.k8s.io'],
    ];
    const answers = await Promise.all(
      questions.map(async (question) => `${question.join(' ')}: ${(await steal(['auth', 'can-i', ...question])).stdout.trim()}`),
    );
    expect(answers).toEqual(questions.map((question) => `${question.join(' ')}: no`));
  });
});
