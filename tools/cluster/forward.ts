// Program: forwards TCP connections from the host's loopback to a cluster. Started by `up`, ended by `down`.
// usage: node forward.ts CLUSTER PORT TARGET-ADDRESS TARGET-PORT   (prints "listening" when it does)
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';

import { joinProgramCgroup } from './cgroups.ts';

const [cluster, port, address, targetPort] = process.argv.slice(2);

function forward(incoming: Socket): void {
  const outgoing = connect({ host: address ?? '', port: Number(targetPort), allowHalfOpen: true });
  incoming.setNoDelay(true);
  outgoing.setNoDelay(true);
  incoming.pipe(outgoing).pipe(incoming);
  // If either side disconnects, the other is closed; the peer's own error tells it why.
  incoming.on('error', () => outgoing.destroy()).on('close', () => outgoing.destroy());
  outgoing.on('error', () => incoming.resetAndDestroy()).on('close', () => incoming.destroy());
}

function listen(host: string, onError: (error: Error) => void, onListening: () => void): void {
  createServer({ allowHalfOpen: true }, forward).on('error', onError).listen(Number(port), host, onListening);
}

// `down` finds this process by the cluster's cgroup, even if `up` was killed before it recorded the pid.
joinProgramCgroup(cluster ?? '');
listen(
  '127.0.0.1',
  (error) => {
    console.error(error.message);
    process.exit(1);
  },
  () => {
    console.log('listening');
  },
);
// Names below localhost resolve to both loopback addresses; a machine without IPv6 has only the first.
listen(
  '::1',
  (error) => {
    console.error(`not on ::1: ${error.message}`);
  },
  () => undefined,
);
