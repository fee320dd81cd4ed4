// kubectl against the control plane of the api ring: the independent client that checks our writes.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { until } from '../support/until.ts';

export interface Answer {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Asked {
  /** Objects for `-f -`. */
  input?: object | object[];
  /** The user as whom the request is sent. */
  as?: string;
}

/** @throws Error when the ring was not started by its runner: a cluster that was not named is never touched */
function ringValue(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set: run this ring by \`npm run test:api\`.`);
  return value;
}

/** Runs kubectl; a refusal is an answer, not an error. */
export function ask(args: string[], { input, as }: Asked = {}): Promise<Answer> {
  const all = as === undefined ? args : [...args, `--as=${as}`, '--as-group=system:authenticated'];
  const env = { ...process.env, KUBECONFIG: ringValue('KF_TEST_KUBECONFIG') };
  return new Promise((resolve, reject) => {
    const child = spawn(ringValue('KF_CLUSTER_KUBECTL'), all, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const chunks = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (chunks.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (chunks.stderr += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? 1, ...chunks }));
    // A kubectl that has its answer may end before its empty input does.
    child.stdin.on('error', () => undefined);
    const objects = input === undefined ? [] : Array.isArray(input) ? input : [input];
    child.stdin.end(objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  });
}

/** Like {@link ask}, for requests that must succeed; returns stdout. */
export async function kubectl(args: string[], asked: Asked = {}): Promise<string> {
  const { code, stdout, stderr } = await ask(args, asked);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

export async function kubectlJson<T>(args: string[], asked: Asked = {}): Promise<T> {
  return JSON.parse(await kubectl([...args, '-o', 'json'], asked)) as T;
}

const manifests = join(import.meta.dirname, '../../manifests');

/** Applies kinds, roles and policies as `kf setup` does, and the two namespaces that they need. A second run changes nothing. */
export async function installKinds(): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', join(manifests, 'crds')]);
  await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=120s']);
  for (const name of ['cf', 'kf-system']) await makeNamespace(name, { 'kf.cloudfoundry.org/managed-by': 'kf' });
}

/** Deletes kinds, and waits until they are gone. */
export async function removeKinds(file: string): Promise<void> {
  await kubectl(['delete', '--ignore-not-found', '--wait=false', '-f', file]);
  await until(`the kinds of ${file} to be gone`, async () => {
    const left = await kubectl(['get', '--ignore-not-found', '-o', 'name', '-f', file]);
    if (left === '') return true;
    // The API server may have failed to list their objects. It tries again after minutes, or when the kind changes (lib/ops/install/parts/kinds.ts).
    await ask(['annotate', '--overwrite', '-f', file, `kf-test/looked=${Date.now()}`]);
    return false;
  });
}

export async function installRoles(): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', join(manifests, 'roles.generated.yaml')]);
}

/** Waits until the API server enforces the policies: a forged changed-by is refused. */
export async function installPolicies(): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', join(manifests, 'policies')]);
  const probe = {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFDomain',
    metadata: { name: 'policy-probe', namespace: 'kf-system' },
    spec: { name: 'probe.example.com' },
  };
  await until('the policies to be obeyed', async () => (await ask(['create', '--dry-run=server', '-f', '-'], { input: probe })).code !== 0);
}

/** A StorageClass that creates no volumes, and is not the default. */
export async function makeStorageClass(name: string): Promise<void> {
  const input = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name }, provisioner: 'example.com/none' };
  await kubectl(['apply', '--server-side', '-f', '-'], { input });
}

export async function makeNamespace(name: string, labels: Record<string, string> = {}): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', '-'], { input: { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } } });
}

/** A namespace in which all kinds can be created except orgs and domains, which a policy allows only in the root namespace. */
export async function makeSpaceLike(name: string): Promise<void> {
  const marks = { 'korifi.cloudfoundry.org/org-guid': name, 'korifi.cloudfoundry.org/space-guid': name };
  await makeNamespace(name, { 'kf.cloudfoundry.org/managed-by': 'kf', ...marks });
}
