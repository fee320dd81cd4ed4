// The network of the nodes: devices and routes in their namespaces, the link of the first node to the host, and those of the others to the first.
import { existsSync, readFileSync } from 'node:fs';

import { bridge, firstNode, hostLink, nodeDevice, podRangeOfCluster } from './addresses.ts';
import type { NodePlace } from './addresses.ts';
import { runInside } from './namespaces.ts';
import { run, tryRun } from './process.ts';
import type { ProcessMark } from './process.ts';

/** The commands that give a node its loopback and the bridge of its pods. @param index the node's number, for the address of the bridge */
function devicesOfNode({ address }: NodePlace, index: number): string[] {
  return [
    'ip link set lo up',
    `ip link add ${bridge} type bridge`,
    // A fixed address: a bridge uses the lowest one of its ports, which changes with every pod.
    `ip link set ${bridge} address 0a:58:0a:f4:${index.toString(16).padStart(2, '0')}:01`,
    `ip address add ${address}/24 dev ${bridge}`,
    `ip link set ${bridge} up`,
    'echo 1 >/proc/sys/net/ipv4/ip_forward',
    // Traffic from a pod through a Service to a pod of the same node passes only the bridge; kube-proxy must see the answer to translate it back.
    'if [ -e /proc/sys/net/bridge ]; then echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables; fi',
    // Nobody outside of the cluster knows the way back to a pod.
    `iptables -t nat -A POSTROUTING -s ${podRangeOfCluster} ! -d ${podRangeOfCluster} -j MASQUERADE`,
  ];
}

/** Creates the devices of the first node: loopback, the link to the host, the bridge of the pods. */
export async function connectToHost(init: ProcessMark, clusterNumber: number, folder: string): Promise<void> {
  const { device, hostAddress, clusterAddress } = hostLink(clusterNumber);
  await removeLink(device, folder);
  await run('ip', ['link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(init.pid)]);
  await run('ip', ['address', 'add', `${hostAddress}/30`, 'dev', device]);
  await run('ip', ['link', 'set', device, 'up', 'alias', linkOwner(folder)]);
  const inside = [
    `ip address add ${clusterAddress}/30 dev eth0`,
    'ip link set eth0 up',
    `ip route add default via ${hostAddress}`,
    ...devicesOfNode(firstNode, 0),
  ];
  await runInside(init, ['/bin/sh', '-ec', inside.join('\n')]);
}

/**
 * Creates the devices of a further node. A cable leads from it to the first node, whose bridge is its way to everything else. Both ends have the
 * address of their node, so that what a node sends to the other always comes from there.
 */
export async function connectToFirstNode(first: ProcessMark, init: ProcessMark, place: NodePlace, index: number): Promise<void> {
  const device = nodeDevice(index);
  const ends = [
    'link',
    'add',
    'name',
    device,
    'netns',
    String(first.pid),
    'type',
    'veth',
    'peer',
    'name',
    'eth0',
    'netns',
    String(init.pid),
  ];
  await tryRun('nsenter', ['--target', String(first.pid), '--net', '--', 'ip', 'link', 'delete', device]);
  await run('ip', ends);
  const onNode = [
    ...devicesOfNode(place, index),
    `ip address add ${place.address}/32 dev eth0`,
    'ip link set eth0 up',
    `ip route add ${firstNode.address} dev eth0 src ${place.address}`,
    `ip route add default via ${firstNode.address} dev eth0 src ${place.address}`,
  ];
  const onFirst = [
    `ip address add ${firstNode.address}/32 dev ${device}`,
    `ip link set ${device} up`,
    `ip route add ${place.podRange} via ${place.address} dev ${device} onlink src ${firstNode.address}`,
  ];
  await runInside(init, ['/bin/sh', '-ec', onNode.join('\n')]);
  await runInside(first, ['/bin/sh', '-ec', onFirst.join('\n')]);
}

/** The alias of a link: the path of the state folder, within the kernel's limit of 255 characters. */
function linkOwner(folder: string): string {
  return folder.slice(-200);
}

/** Removes the host's end of a link unless it belongs to another cluster, whose state is in another folder. */
export async function removeLink(device: string, folder: string): Promise<void> {
  const file = `/sys/class/net/${device}/ifalias`;
  const owner = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (owner === '' || owner === linkOwner(folder)) await tryRun('ip', ['link', 'delete', device]);
}
