// The programs of a node: containerd with runc and CNI, kubelet, kube-proxy; and its registry.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { stringify } from 'yaml';

import {
  bridge,
  dnsServiceAddress,
  nodePlace,
  nodeRegistry,
  podRangeOfCluster,
  privateRegistry,
  privateRegistryPort,
  privateRegistryUser,
  registryPort,
  serviceRange,
} from './addresses.ts';
import type { NodePlace } from './addresses.ts';
import { nodeCgroup } from './cgroups.ts';
import type { NodeProgram } from './namespaces.ts';
import { pauseImage } from './images/index.ts';
import { partPath } from './parts.ts';
import type { PartPaths } from './parts.ts';
import type { NodePaths } from './state.ts';

export const containerdSocket = '/run/containerd/containerd.sock';
const config = '/run/kf/config';

function writerIn(folder: string): (file: string, content: string) => void {
  return (file, content) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), content);
  };
}

/** Writes the configuration of the programs that every node has. @param index the number of the node */
export function writeWorkerConfig(paths: NodePaths, clusterName: string, index: number): void {
  const write = writerIn(paths.config);
  const node = nodePlace(index);
  write('containerd.toml', containerdConfig());
  for (const registry of [nodeRegistry, privateRegistry]) write(`certs.d/${registry}/hosts.toml`, `server = "http://${registry}"\n`);
  write('cni/10-kf.conflist', JSON.stringify(cniConfig(node), undefined, 2));
  // The cluster has no connection to the outside, so there is no other name server to ask.
  write('resolv.conf', '');
  write('kubelet.yaml', stringify(kubeletConfig(nodeCgroup(clusterName, index))));
  write('kube-proxy.yaml', stringify(proxyConfig(node)));
}

/** Writes the configuration of the registries, which the first node has. */
export function writeRegistryConfig(paths: NodePaths): void {
  const write = writerIn(paths.config);
  write('registry.yaml', stringify(registryConfig(registryPort)));
  write('private-registry.yaml', stringify(privateRegistryConfig()));
  write('htpasswd', `${privateRegistryUser.name}:${privatePasswordHash}\n`);
}

function containerdConfig(): string {
  return `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "${containerdSocket}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "${pauseImage}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "${config}/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  # Where the machine itself is confined, lowering the score below its own is refused and no sandbox would start.
  restrict_oom_score_adj = true
  # Samples that nobody reads, since the kubelet measures containers itself. By default it asks each shim once a second: a tenth of a busy machine.
  stats_collect_period = "60s"
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "${config}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
`;
}

function cniConfig(node: NodePlace): object {
  const ipam = { type: 'host-local', ranges: [[{ subnet: node.podRange }]], routes: [{ dst: '0.0.0.0/0' }] };
  return {
    cniVersion: '1.0.0',
    name: 'kf',
    plugins: [
      // Addresses of pods stay as they are on the way to another node, where policies compare them; network.ts replaces those that leave the cluster.
      { type: 'bridge', bridge, isGateway: true, ipMasq: false, hairpinMode: true, ipam },
      { type: 'portmap', capabilities: { portMappings: true }, snat: true },
    ],
  };
}

function kubeletConfig(cgroup: string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { x509: { clientCAFile: '/run/kf/pki/ca.crt' }, webhook: { enabled: true }, anonymous: { enabled: false } },
    authorization: { mode: 'Webhook' },
    // The machine may have no systemd, and kf's tool removes the cgroups: the plain driver in both versions.
    cgroupDriver: 'cgroupfs',
    failCgroupV1: false,
    // Two kubelets on one kernel must not take each other's pods for orphans.
    cgroupRoot: `/${cgroup}`,
    clusterDNS: [dnsServiceAddress],
    clusterDomain: 'cluster.local',
    containerRuntimeEndpoint: `unix://${containerdSocket}`,
    tlsCertFile: '/run/kf/pki/node.crt',
    tlsPrivateKeyFile: '/run/kf/pki/node.key',
    failSwapOn: false,
    address: '0.0.0.0',
    port: 10250,
    resolvConf: `${config}/resolv.conf`,
    maxPods: 240,
    serializeImagePulls: false,
    registryPullQPS: 0,
    eventRecordQPS: 0,
    // Images are imported, not pulled again, so none may be removed; and a small disk must not cause evictions.
    imageGCHighThresholdPercent: 100,
    evictionHard: { 'nodefs.available': '1%', 'imagefs.available': '1%', 'nodefs.inodesFree': '1%', 'memory.available': '100Mi' },
  };
}

function proxyConfig(node: NodePlace): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig: '/run/kf/pki/proxy.kubeconfig' },
    // Only the mode iptables serves NodePorts on 127.0.0.1, which image names of in-cluster registries need.
    mode: 'iptables',
    clusterCIDR: podRangeOfCluster,
    hostnameOverride: node.name,
    conntrack: { maxPerCore: 0 },
    iptables: { minSyncPeriod: '100ms' },
  };
}

function registryConfig(port: number): object {
  return {
    version: 0.1,
    log: { level: 'warn' },
    storage: { filesystem: { rootdirectory: '/var/lib/registry' }, delete: { enabled: true } },
    http: { addr: `:${String(port)}` },
  };
}

/** bcrypt of the user's password. */
const privatePasswordHash = '$2y$05$kfkfkfkfkfkfkfkfkfkfkOLXQG0faA96bfjm8gg3KunlghXHOxuX6';

function privateRegistryConfig(): object {
  const storage = { filesystem: { rootdirectory: '/var/lib/registry' }, maintenance: { readonly: { enabled: true } } };
  return { ...registryConfig(privateRegistryPort), storage, auth: { htpasswd: { realm: 'kf', path: `${config}/htpasswd` } } };
}

/** containerd, with its shim and runc in the PATH. */
export function containerd(parts: PartPaths): NodeProgram {
  const folders = ['containerd', 'containerd-shim-runc-v2', 'runc'].map((name) => dirname(partPath(parts, name)));
  const path = [...new Set(folders), '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(':');
  return { name: 'containerd', command: [partPath(parts, 'containerd'), '--config', `${config}/containerd.toml`], env: { PATH: path } };
}

export function kubelet(parts: PartPaths, node: NodePlace): NodeProgram {
  const command = [
    partPath(parts, 'kfnode'),
    'kubelet',
    `--config=${config}/kubelet.yaml`,
    '--kubeconfig=/run/kf/pki/node.kubeconfig',
    `--hostname-override=${node.name}`,
    `--node-ip=${node.address}`,
  ];
  return { name: 'kubelet', command };
}

export function kubeProxy(parts: PartPaths): NodeProgram {
  return { name: 'kube-proxy', command: [partPath(parts, 'kfnode'), 'kube-proxy', `--config=${config}/kube-proxy.yaml`] };
}

/** The program that enforces NetworkPolicies: it maintains iptables and ipsets of the cluster's own network namespace. */
export function networkPolicies(parts: PartPaths, node: NodePlace): NodeProgram {
  const flags = ['--kubeconfig=/run/kf/pki/admin.kubeconfig', `--node=${node.name}`, `--service-cidr=${serviceRange}`];
  return { name: 'netpol', command: [partPath(parts, 'netpol'), ...flags] };
}

/** The replacement of a public registry, anonymous, and of a private one. Both have plain HTTP and the same images. */
export function registries(parts: PartPaths): NodeProgram[] {
  return ['registry', 'private-registry'].map((name) => registryProgram(parts, name));
}

function registryProgram(parts: PartPaths, name: string): NodeProgram {
  return {
    name,
    command: [partPath(parts, 'registry'), 'serve', `${config}/${name}.yaml`],
    // Otherwise it would look for a trace collector on localhost and log that there is none.
    env: { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' },
  };
}
