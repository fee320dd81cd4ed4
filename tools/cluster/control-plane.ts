// The control plane: etcd, API server, controller manager, scheduler.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { stringify } from 'yaml';

import { apiPort, firstNode, podRangeOfCluster, serviceRange } from './addresses.ts';
import type { NodeProgram } from './namespaces.ts';
import { partPath } from './parts.ts';
import type { PartPaths } from './parts.ts';
import type { ClusterPaths } from './state.ts';

const pki = '/run/kf/pki';
const etcdAddress = 'http://127.0.0.1:2379';

/** Writes the audit policy: one line per finished request with user, verb, object and both times; no bodies. */
export function writeAuditPolicy(paths: ClusterPaths): void {
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived', 'ResponseStarted'],
    omitManagedFields: true,
    rules: [{ level: 'Metadata' }],
  };
  writeFileSync(join(paths.config, 'audit-policy.yaml'), stringify(policy));
}

function flags(values: Record<string, string>): string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

/** etcd, on loopback, without waiting for the disk: its data need not survive a crash of the machine. */
export function etcd(kfnode: string): NodeProgram {
  const values = {
    'data-dir': '/var/lib/etcd/data',
    'unsafe-no-fsync': 'true',
    'listen-client-urls': etcdAddress,
    'advertise-client-urls': etcdAddress,
    'listen-peer-urls': 'http://127.0.0.1:2380',
    'log-level': 'warn',
  };
  return { name: 'etcd', command: [kfnode, 'etcd', ...flags(values)] };
}

/** The API server, with audit log and aggregation layer. */
export function apiServer(kfnode: string): NodeProgram {
  const values = {
    'etcd-servers': etcdAddress,
    'bind-address': '0.0.0.0',
    'advertise-address': firstNode.address,
    'secure-port': String(apiPort),
    'service-cluster-ip-range': serviceRange,
    'client-ca-file': `${pki}/ca.crt`,
    'tls-cert-file': `${pki}/apiserver.crt`,
    'tls-private-key-file': `${pki}/apiserver.key`,
    'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
    'service-account-key-file': `${pki}/service-account.pub`,
    'service-account-signing-key-file': `${pki}/service-account.key`,
    'authorization-mode': 'Node,RBAC',
    'enable-admission-plugins': 'NodeRestriction',
    'allow-privileged': 'true',
    'kubelet-preferred-address-types': 'InternalIP',
    'kubelet-certificate-authority': `${pki}/ca.crt`,
    'kubelet-client-certificate': `${pki}/apiserver-kubelet.crt`,
    'kubelet-client-key': `${pki}/apiserver-kubelet.key`,
    'requestheader-client-ca-file': `${pki}/front-proxy-ca.crt`,
    'requestheader-allowed-names': 'front-proxy-client',
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-username-headers': 'X-Remote-User',
    'proxy-client-cert-file': `${pki}/front-proxy.crt`,
    'proxy-client-key-file': `${pki}/front-proxy.key`,
    'audit-policy-file': '/run/kf/config/audit-policy.yaml',
    'audit-log-path': '/run/kf/log/audit.log',
    'audit-log-maxsize': '1024',
    'audit-log-maxbackup': '1',
    // A stopped API server is started again at once; it need not wait for load balancers.
    'shutdown-delay-duration': '0s',
  };
  return { name: 'kube-apiserver', command: [kfnode, 'kube-apiserver', ...flags(values)] };
}

/** The controller manager; it signs certificate requests too. */
export function controllerManager(kfnode: string): NodeProgram {
  const values = {
    kubeconfig: `${pki}/controller-manager.kubeconfig`,
    'authentication-kubeconfig': `${pki}/controller-manager.kubeconfig`,
    'authorization-kubeconfig': `${pki}/controller-manager.kubeconfig`,
    'service-account-private-key-file': `${pki}/service-account.key`,
    'root-ca-file': `${pki}/ca.crt`,
    'cluster-signing-cert-file': `${pki}/ca.crt`,
    'cluster-signing-key-file': `${pki}/ca.key`,
    'use-service-account-credentials': 'true',
    'allocate-node-cidrs': 'true',
    'cluster-cidr': podRangeOfCluster,
    'leader-elect': 'false',
    // The defaults (20 and 30) make a machine with one node wait longer than a real cluster would.
    'kube-api-qps': '200',
    'kube-api-burst': '400',
  };
  return { name: 'kube-controller-manager', command: [kfnode, 'kube-controller-manager', ...flags(values)] };
}

export function scheduler(kfnode: string): NodeProgram {
  const kubeconfig = `${pki}/scheduler.kubeconfig`;
  const values = { kubeconfig, 'authentication-kubeconfig': kubeconfig, 'authorization-kubeconfig': kubeconfig, 'leader-elect': 'false' };
  return { name: 'kube-scheduler', command: [kfnode, 'kube-scheduler', ...flags(values)] };
}

/** kwok acts as the kubelet of the Node objects marked for it and of their pods, for tests of scale without containers. */
export function kwok(parts: PartPaths): NodeProgram {
  const stages = ['kwok-node', 'kwok-heartbeat', 'kwok-pod'].flatMap((name) => {
    const folder = partPath(parts, name);
    const files = readdirSync(folder).filter((file) => file !== 'kustomization.yaml');
    return files.map((file) => `--config=${join(folder, file)}`);
  });
  const values = {
    kubeconfig: `${pki}/admin.kubeconfig`,
    'manage-all-nodes': 'false',
    'manage-nodes-with-annotation-selector': 'kwok.x-k8s.io/node=fake',
    'node-lease-duration-seconds': '40',
  };
  return { name: 'kwok', command: [partPath(parts, 'kwok'), ...stages, ...flags(values)] };
}
