// Keys and certificates of a cluster, made by openssl, and the kubeconfigs that use them.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { stringify } from 'yaml';

import { apiPort, apiServiceAddress, firstNode, hostLink } from './addresses.ts';
import type { NodePlace } from './addresses.ts';
import { run } from './process.ts';
import type { ClusterPaths, NodePaths } from './state.ts';

interface CertificateRequest {
  name: string;
  authority: 'ca' | 'front-proxy-ca';
  subject: string;
  names?: string[];
  /** Of all certificates of its authority; the name when left out. */
  serial?: string;
}

const validDays = '3650';
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function requests(clusterNumber: number): CertificateRequest[] {
  const { clusterAddress } = hostLink(clusterNumber);
  const apiNames = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'localhost'];
  const apiAddresses = ['127.0.0.1', apiServiceAddress, firstNode.address, clusterAddress];
  return [
    {
      name: 'apiserver',
      authority: 'ca',
      subject: '/CN=kube-apiserver',
      names: [...apiNames.map((n) => `DNS:${n}`), ...apiAddresses.map((a) => `IP:${a}`)],
    },
    { name: 'apiserver-kubelet', authority: 'ca', subject: '/O=system:masters/CN=kube-apiserver-kubelet-client' },
    { name: 'admin', authority: 'ca', subject: '/O=system:masters/CN=kf-admin' },
    { name: 'controller-manager', authority: 'ca', subject: '/CN=system:kube-controller-manager' },
    { name: 'scheduler', authority: 'ca', subject: '/CN=system:kube-scheduler' },
    { name: 'proxy', authority: 'ca', subject: '/CN=system:kube-proxy' },
    requestOfNode(firstNode),
    // The aggregation layer needs an authority that signs nothing else: its client certificate allows its owner to impersonate everybody.
    { name: 'front-proxy', authority: 'front-proxy-ca', subject: '/CN=front-proxy-client' },
  ];
}

function requestOfNode({ name, address }: NodePlace): CertificateRequest {
  const subject = `/O=system:nodes/CN=system:node:${name}`;
  return { name: 'node', authority: 'ca', subject, names: [`DNS:${name}`, `IP:${address}`], serial: name };
}

/** Creates all keys, certificates and kubeconfigs of a cluster, once; existing ones stay. */
export async function makePki(paths: ClusterPaths, clusterName: string, clusterNumber: number): Promise<void> {
  if (existsSync(paths.pki)) return;
  const folder = `${paths.pki}.tmp`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await Promise.all(['ca', 'front-proxy-ca'].map((name) => makeAuthority(folder, name)));
  await Promise.all([makeServiceAccountKey(folder), ...requests(clusterNumber).map((request) => makeCertificate(folder, request))]);
  for (const user of ['admin', 'controller-manager', 'scheduler', 'proxy', 'node']) {
    writeKubeconfig(join(folder, `${user}.kubeconfig`), kubeconfig(folder, user, 'kf', firstNode.address));
  }
  const outside = kubeconfig(folder, 'admin', `kf-${clusterName}`, hostLink(clusterNumber).clusterAddress);
  writeKubeconfig(paths.adminKubeconfig, outside);
  renameSync(folder, paths.pki);
}

/** Gives a further node what it needs of the keys, once: a certificate of its own, and what its programs log in with. */
export async function makeNodePki(cluster: ClusterPaths, node: NodePaths, place: NodePlace): Promise<void> {
  if (existsSync(node.pki)) return;
  const folder = `${node.pki}.tmp`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const file of ['ca.crt', 'proxy.kubeconfig', 'admin.kubeconfig']) copyFileSync(join(cluster.pki, file), join(folder, file));
  await makeCertificate(folder, requestOfNode(place), cluster.pki);
  writeKubeconfig(join(folder, 'node.kubeconfig'), kubeconfig(folder, 'node', 'kf', firstNode.address));
  renameSync(folder, node.pki);
}

async function makeAuthority(folder: string, name: string): Promise<void> {
  const out = ['-keyout', join(folder, `${name}.key`), '-out', join(folder, `${name}.crt`)];
  await run('openssl', ['req', '-x509', ...newKey, ...out, '-days', validDays, '-subj', `/CN=kf-test-${name}`]);
}

async function makeServiceAccountKey(folder: string): Promise<void> {
  const key = join(folder, 'service-account.key');
  await run('openssl', ['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', key]);
  await run('openssl', ['pkey', '-in', key, '-pubout', '-out', join(folder, 'service-account.pub')]);
}

/** @param authorities the folder with the keys of the authorities */
async function makeCertificate(folder: string, request: CertificateRequest, authorities = folder): Promise<void> {
  const base = join(folder, request.name);
  const authority = join(authorities, request.authority);
  await run('openssl', ['req', ...newKey, '-keyout', `${base}.key`, '-out', `${base}.csr`, '-subj', request.subject]);
  const names = request.names ?? [`DNS:${request.name}`];
  writeFileSync(`${base}.ext`, `subjectAltName=${names.join(',')}\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=digitalSignature\n`);
  // Each has its own serial number, because several are signed at the same time.
  const serial = `0x${Buffer.from(request.serial ?? request.name)
    .toString('hex')
    .slice(0, 36)}`;
  const sign = ['-CA', `${authority}.crt`, '-CAkey', `${authority}.key`, '-set_serial', serial, '-days', validDays];
  await run('openssl', ['x509', '-req', '-in', `${base}.csr`, ...sign, '-out', `${base}.crt`, '-extfile', `${base}.ext`]);
}

function kubeconfig(folder: string, user: string, context: string, address: string): object {
  const base64 = (file: string): string => readFileSync(join(folder, file)).toString('base64');
  const login = { 'client-certificate-data': base64(`${user}.crt`), 'client-key-data': base64(`${user}.key`) };
  const server = { server: `https://${address}:${String(apiPort)}`, 'certificate-authority-data': base64('ca.crt') };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: context, cluster: server }],
    users: [{ name: `${context}-${user}`, user: login }],
    contexts: [{ name: context, context: { cluster: context, user: `${context}-${user}` } }],
    'current-context': context,
  };
}

function writeKubeconfig(file: string, content: object): void {
  writeFileSync(file, stringify(content));
  chmodSync(file, 0o600);
}
