// The bundled controller as processes against the control plane of the api ring, each with the token of a pod, on a line that can be cut.

import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { HeldLine } from '../support/held-line.ts';
import { controllerAccount, infoOf, roleBinding } from './controller-scene.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace, makeSpaceLike } from './kubectl.ts';

/** Where the controllers of one test file work. */
export interface Scene {
  /** Unique part of the names. */
  run: string;
  space: string;
  root: string;
  /** For kubeconfigs. */
  folder: string;
}

export interface Replica {
  pod: string;
  line: HeldLine;
  process: ChildProcess;
}

const bindings = ({ run, space }: Scene): object[] =>
  ([['kf-controller'], ['kf-controller-system', 'kf-system'], ['kf-controller-space', space]] as const).map(([role, namespace]) =>
    roleBinding(role, controllerAccount, { suffix: run, namespace }),
  );

/** Kinds, roles and policies, a space and a root namespace with `kf-info`. */
export async function installScene(scene: Scene): Promise<void> {
  const { space, root } = scene;
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeSpaceLike(space);
  await makeNamespace(root);
  await ask(['create', 'serviceaccount', controllerAccount.name, '-n', controllerAccount.namespace]);
  await kubectl(['delete', 'lease,runnerinfo', '-n', 'kf-system', 'kf-controller', '--ignore-not-found']);
  const data = { 'info.json': JSON.stringify(infoOf(root)) };
  await kubectl(['create', '-f', '-'], {
    input: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kf-info', namespace: root }, data },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'env', namespace: space } },
      ...bindings(scene),
    ],
  });
}

/** Ends the controllers and removes what {@link installScene} made. */
export async function removeScene({ run, space, root }: Scene, replicas: readonly Replica[]): Promise<void> {
  for (const { process: child, line, pod } of replicas) {
    child.kill('SIGCONT');
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.kill('SIGKILL')) await ended;
    await line.close();
    await kubectl(['delete', 'pod', '-n', 'kf-system', pod, '--grace-period=0', '--force', '--wait=false']);
  }
  await kubectl(['delete', 'clusterrolebinding', `kf-controller-${run}`]);
  await kubectl(['delete', 'rolebinding', '-n', 'kf-system', `kf-controller-system-${run}`]);
  await kubectl(['delete', 'lease,runnerinfo', '-n', 'kf-system', 'kf-controller', '--ignore-not-found']);
  await kubectl(['delete', 'namespace', space, root, '--wait=false']);
}

/**
 * Starts a controller with the token of a pod of this name; no node runs the pod.
 * @param extra variables of its environment
 */
export async function startReplica(
  { folder, root }: Scene,
  pod: string,
  reconcilers: string,
  extra: Record<string, string> = {},
): Promise<Replica> {
  const spec = { serviceAccountName: controllerAccount.name, containers: [{ name: 'controller', image: 'none' }] };
  await kubectl(['create', '-f', '-'], { input: { apiVersion: 'v1', kind: 'Pod', metadata: { name: pod, namespace: 'kf-system' }, spec } });
  const boundTo = ['--bound-object-kind', 'Pod', '--bound-object-name', pod];
  const token = (await kubectl(['create', 'token', controllerAccount.name, '-n', controllerAccount.namespace, ...boundTo])).trim();
  const config = parse(readFileSync(process.env['KF_TEST_KUBECONFIG'] ?? '', 'utf8')) as {
    users: { user: object }[];
    clusters: { cluster: { server: string; 'tls-server-name'?: string } }[];
  };
  const line = await HeldLine.to(config.clusters[0]?.cluster.server ?? '');
  for (const { cluster } of config.clusters) Object.assign(cluster, { server: line.url, 'tls-server-name': 'kubernetes' });
  for (const user of config.users) user.user = { token };
  const file = join(folder, pod);
  writeFileSync(file, stringify(config), { mode: 0o600 });
  const program = join(import.meta.dirname, '../../dist/controller/controller.mjs');
  const child = spawn(process.execPath, [program, '--reconcilers', reconcilers], {
    env: { PATH: process.env['PATH'] ?? '', KUBECONFIG: file, KF_ROOT_NAMESPACE: root, KF_POD_NAME: pod, ...extra },
    stdio: ['ignore', process.env['KF_TEST_CONTROLLER_LOG'] === '1' ? 'inherit' : 'ignore', 'inherit'],
  });
  return { pod, line, process: child };
}
