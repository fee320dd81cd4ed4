// What provokes causes of failures on a real cluster, for the tests and the bench of `kf why`.

import { execFileSync } from 'node:child_process';
import type { KubeObject } from '../../src/lib/api/object.ts';
import { kubectl, kubectlJson, ringEnv, type Kf } from './kf.ts';
import { applyAsAdmin } from './members.ts';

/** Makes an image index in the node's registry whose only image is for another kind of processor. @returns its reference for the nodes */
export function foreignImage(): string {
  const crane = (...args: string[]): string =>
    execFileSync(ringEnv('KF_CLUSTER_CRANE'), [...args, '--insecure'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const outside = (tag: string): string => `${ringEnv('KF_CLUSTER_REGISTRY')}/kf/sample:${tag}`;
  crane('mutate', outside('1'), '--set-platform', 'linux/s390x', '-t', outside('s390x'));
  crane('index', 'append', '-m', outside('s390x'), '-t', outside('foreign'));
  return `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:foreign`;
}

/** The start command of a server whose queue of connections is full before it takes the first one: it fills it, and then never gets to its events. */
export const fullQueue = `exec node -e '${[
  'const s = require("net").createServer();',
  's.listen({ port: +process.env.PORT, host: "0.0.0.0", backlog: 1 }, () => {',
  'for (let i = 0; i < 8; i++) require("net").connect(+process.env.PORT, "127.0.0.1");',
  'process.nextTick(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)); });',
].join(' ')}'`;

/** The GUID of the app that gets no name. */
export const refusedApp = '5ec0be00-0000-4000-8000-000000000001';

/** Makes an app that cannot end, and after its deletion another one with its name. @returns what lets the first one end */
export async function takenName(kf: Kf, space: string, name: string): Promise<() => Promise<unknown>> {
  await kf.ok('create-app', name);
  const guid = (await kf.ok('app', name, '--guid')).stdout.trim();
  const { metadata } = await kubectlJson<KubeObject>('get', 'cfapp', '-n', space, guid);
  const finalizers = (value: readonly string[]) =>
    kubectl('patch', 'cfapp', '-n', space, guid, '--type=merge', '-p', JSON.stringify({ metadata: { finalizers: value } }));
  await finalizers([...(metadata.finalizers ?? []), 'example.com/keep']);
  await kubectl('delete', 'cfapp', '-n', space, guid, '--wait=false');
  await applyAsAdmin({
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFApp',
    metadata: { name: refusedApp, namespace: space },
    spec: { displayName: name, desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  });
  return () => finalizers([]);
}

/** Makes a service whose credentials are in a Secret of its own, and deletes the Secret. */
export async function serviceWithoutSecret(kf: Kf, space: string, name: string): Promise<void> {
  const secret = `${name}-credentials`;
  await applyAsAdmin({ apiVersion: 'v1', kind: 'Secret', metadata: { name: secret, namespace: space }, stringData: { password: 'p' } });
  await kf.ok('cups', name, '--from-secret', secret);
  await kubectl('delete', 'secret', '-n', space, secret);
}
