// The controller of cert-manager, beside the ring's cluster: it works with the API server as it would in a pod.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { progressOutput } from '../../tools/cluster/build-progress.ts';
import { buildParts, partPath, partSets, type PartPaths } from '../../tools/cluster/parts.ts';
import { kubectl, ringEnv } from './kf.ts';
import { applyAsAdmin } from './members.ts';

const group = 'cert-manager.io/v1';
/** Of the Secrets of ClusterIssuers. */
const namespace = 'cert-manager';

export class CertManager {
  readonly #parts: PartPaths;
  #running: ChildProcess | undefined;

  private constructor(parts: PartPaths) {
    this.#parts = parts;
  }

  /** Its programs; they are built if the cache does not have them. */
  static async build(): Promise<CertManager> {
    return new CertManager(await buildParts(partSets.certManager, progressOutput(console.log)));
  }

  async installKinds(): Promise<void> {
    const folder = partPath(this.#parts, 'cert-manager-crds');
    await kubectl('apply', '--server-side', '-f', folder);
    await kubectl('wait', '--for=condition=Established', '-f', folder, '--timeout=60s');
  }

  async removeKinds(): Promise<void> {
    await kubectl('delete', '--ignore-not-found', '--wait=false', '-f', partPath(this.#parts, 'cert-manager-crds'));
    await kubectl('delete', 'namespace', namespace, '--ignore-not-found', '--wait=false');
  }

  /** A ClusterIssuer with an authority that it makes itself. */
  async addAuthority(name: string): Promise<void> {
    const issuerRef = { group: 'cert-manager.io', kind: 'ClusterIssuer', name: 'self-signed' };
    await applyAsAdmin(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
      { apiVersion: group, kind: 'ClusterIssuer', metadata: { name: 'self-signed' }, spec: { selfSigned: {} } },
      {
        apiVersion: group,
        kind: 'Certificate',
        metadata: { name, namespace },
        spec: { isCA: true, commonName: name, secretName: name, issuerRef, privateKey: { algorithm: 'ECDSA' } },
      },
      { apiVersion: group, kind: 'ClusterIssuer', metadata: { name }, spec: { ca: { secretName: name } } },
    );
  }

  /** The certificate of that authority. */
  async authority(name: string): Promise<string> {
    const text = await kubectl('get', 'secret', name, '-n', namespace, '-o', 'jsonpath={.data.tls\\.crt}');
    return Buffer.from(text, 'base64').toString();
  }

  start(): void {
    const flags = ['--kubeconfig', ringEnv('KF_TEST_KUBECONFIG'), '--cluster-resource-namespace', namespace];
    this.#running = spawn(partPath(this.#parts, 'cert-manager'), flags, { stdio: 'ignore' });
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined || running.exitCode !== null) return;
    const ended = once(running, 'exit');
    running.kill();
    await ended;
  }
}
