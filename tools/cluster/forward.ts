// Program: forwards TCP connections from the host's loopback to a cluster. Started by `up`, ended by `down`.
// usage: node forward.ts CLUSTER TARGET-ADDRESS PORT=TARGET-PORT...   (prints "listening" when it listens at all ports)
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';

import { joinProgramCgroup } from './cgroups.ts';

const [cluster, address, ...ports] = process.argv.slice(2);

function forward(incoming: Socket, targetPort: number): void {
  const outgoing = connect({ host: address ?? '', port: targetPort, allowHalfOpen: true });
  incoming.setNoDelay(true);
  outgoing.setNoDelay(true);
  incoming.pipe(outgoing).pipe(incoming);
  // If either side disconnects, the other is closed; the peer's own error tells it why.
  incoming.on('error', () => outgoing.destroy()).on('close', () => outgoing.destroy());
  outgoing.on('error', () => incoming.resetAndDestroy()).on('close', () => incoming.destroy());
}

function listen(host: string, [port = 0, targetPort = 0]: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    createServer({ allowHalfOpen: true }, (incoming) => forward(incoming, targetPort))
      .on('error', reject)
      .listen(port, host, resolve);
  });
}

// `down` finds this process by the cluster's cgroup, even if `up` was killed before it recorded the pid.
joinProgramCgroup(cluster ?? '');
const pairs = ports.map((pair) => pair.split('=').map(Number));
try {
  await Promise.all(pairs.map((pair) => listen('127.0.0.1', pair)));
  console.log('listening');
} catch (error) {
  console.error(String(error));
  process.exit(1);
}
// Names below localhost resolve to both loopback addresses; a machine without IPv6 has only the first.
for (const pair of pairs) listen('::1', pair).catch((error: unknown) => console.error(`not on ::1: ${String(error)}`));
