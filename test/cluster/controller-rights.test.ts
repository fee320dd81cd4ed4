// What the controller's own token cannot do: asked with reviews, and tried.

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { feed } from '../support/feed.ts';
import { kubectl, ringEnv } from '../support/kf.ts';

const space = ringEnv('KF_TEST_SPACE_GUID');
const foreign = 'kf-test-foreign';
let folder: string;
let config: string;

interface KubeConfig {
  users: { user: Record<string, unknown> }[];
}

interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

/** kubectl with the controller's token and nothing else. */
function asController(args: string[], input?: object): Promise<Said> {
  return new Promise((resolve) => {
    const child = execFile('kubectl', args, { env: { ...process.env, KUBECONFIG: config } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, stdout, stderr });
    });
    feed(child, input === undefined ? '' : JSON.stringify(input));
  });
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-controller-'));
  config = path.join(folder, 'kubeconfig');
  const token = (await kubectl('create', 'token', 'kf-controller', '-n', 'kf-system')).trim();
  const text = parse(await readFile(ringEnv('KF_TEST_KUBECONFIG'), 'utf8')) as KubeConfig;
  for (const entry of text.users) entry.user = { token };
  await writeFile(config, stringify(text), { mode: 0o600 });
  await kubectl('create', 'namespace', foreign);
});
afterAll(async () => {
  await kubectl('delete', 'namespace', foreign, '--wait=false');
  await rm(folder, { recursive: true, force: true });
});

const rbac = 'rbac.authorization.k8s.io';
const self = { kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' };
const binding = (role: string, namespace: string): object => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name: 'kf-test-attempt', namespace },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
  subjects: [self],
});
const configMap = (namespace: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kf-test-attempt', namespace },
});
const secret = (namespace: string): object => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'kf-test-attempt', namespace } });
const app = (namespace: string): object => ({
  apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
  kind: 'CFApp',
  metadata: { name: 'kf-test-attempt', namespace },
  spec: { displayName: 'a', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
});

describe("the controller's token", () => {
  test("is the controller's own, and works where it should", async () => {
    expect((await asController(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'])).stdout).toBe(
      'system:serviceaccount:kf-system:kf-controller',
    );
    expect((await asController(['create', '--dry-run=server', '-f', '-'], secret(space))).code).toBe(0);
  });

  test.each([
    ['a ConfigMap in a namespace that kf did not make', configMap(foreign)],
    ['a Secret in kube-system', secret('kube-system')],
    ['an object of its own kinds in a namespace that kf did not make', app(foreign)],
    ['cluster-admin bound to itself in a space', binding('cluster-admin', space)],
    ['a role of people bound where kf did not make the namespace', binding('korifi-controllers-space-developer', foreign)],
    ['its own role bound where kf did not make the namespace', binding('kf-controller-space', foreign)],
    ['edit bound in a space', binding('edit', space)],
    [
      'a role for the whole cluster',
      { ...binding('kf-controller-space', space), kind: 'ClusterRoleBinding', metadata: { name: 'kf-test-attempt' } },
    ],
    [
      'a role of its own making',
      {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRole',
        metadata: { name: 'kf-test-attempt' },
        rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
      },
    ],
    ['a namespace without the marks of an org or space', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kf-test-attempt' } }],
  ])('may not create %s', async (_what, object) => {
    const said = await asController(['create', '-f', '-'], object);
    expect(said.stderr).toMatch(/forbidden|may not|may only|can only|cannot/i);
    expect(said.code).toBe(1);
  });

  test.each([
    ['secrets of all namespaces', ['get', 'secrets', '-A']],
    ['secrets of a space', ['get', 'secrets', '-n', space]],
    ['a secret of a namespace that kf did not make', ['get', 'secret', 'any', '-n', foreign]],
  ])('may not read %s', async (_what, args) => {
    const said = await asController(args);
    expect(said.stderr).toMatch(/forbidden/i);
    expect(said.stdout).toBe('');
  });

  test('may not label, change or delete a namespace that kf did not make', async () => {
    const mark = ['label', 'namespace', foreign, 'kf.cloudfoundry.org/managed-by=kf', 'korifi.cloudfoundry.org/org-guid=x'];
    for (const args of [mark, ['annotate', 'namespace', foreign, 'a=b'], ['delete', 'namespace', foreign, '--wait=false']]) {
      const said = await asController(args);
      expect(said.stderr, args.join(' ')).toMatch(/forbidden|may only/i);
    }
    const left = await kubectl('get', 'namespace', foreign, '-o', 'jsonpath={.metadata.labels}{.status.phase}');
    expect(left).not.toContain('managed-by');
    expect(left).toContain('Active');
  });

  test('may delete the tasks of a space and read how many it may hold, but not change that number', async () => {
    const canI = async (...question: string[]): Promise<string> =>
      (await asController(['auth', 'can-i', ...question, '-n', space])).stdout.trim();
    expect(await canI('delete', 'cftasks.korifi.cloudfoundry.org')).toBe('yes');
    expect(await canI('list', 'resourcequotas')).toBe('yes');
    expect(await canI('delete', 'resourcequotas')).toBe('no');
    expect(await canI('deletecollection', 'cftasks.korifi.cloudfoundry.org')).toBe('no');
  });

  test('may not impersonate anybody, run commands in pods, or change objects that decide about rights', async () => {
    const questions = [
      ['create', 'serviceaccounts', '--subresource=token', '-n', space],
      ['impersonate', 'users'],
      ['create', 'pods', '--subresource=exec', '-n', foreign],
      ['create', 'pods', '--subresource=exec', '-n', space],
      ['list', 'secrets', '-n', space],
      ['watch', 'secrets', '-n', 'kf-system'],
      ['escalate', 'clusterroles'],
      ['bind', 'clusterroles/cluster-admin'],
      ['update', 'clusterroles'],
      ['update', 'validatingadmissionpolicies.admissionregistration.k8s.io'],
      ['delete', 'validatingadmissionpolicybindings.admissionregistration.k8s.io'],
      ['update', 'customresourcedefinitions.apiextensions.k8s.io'],
      ['create', 'persistentvolumes'],
      ['update', 'nodes'],
    ];
    const answers = await Promise.all(
      questions.map(async (question) => `${question.join(' ')}: ${(await asController(['auth', 'can-i', ...question])).stdout.trim()}`),
    );
    expect(answers).toEqual(questions.map((question) => `${question.join(' ')}: no`));
  });
});
