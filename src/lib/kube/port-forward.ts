// Connects to a port of a pod, with one WebSocket per connection. Source: pkg/kubelet/server/portforward/websocket.go: data is on channel 0 and
// errors on channel 1, and the first message of each is the port.

import { Duplex } from 'node:stream';
import type { Readable } from 'node:stream';
import type { Cluster } from './cluster.ts';
import { KubeError } from './errors.ts';
import { queryString } from './paths.ts';
import { defined } from '../defined.ts';

const data = 0;
const errors = 1;
/** SPDY tunneled in a WebSocket (SPDY/3.1+portforward.k8s.io) could carry many connections; the API server also serves this simpler protocol. */
const protocols = ['v4.channel.k8s.io'];

export interface PortForwardOptions {
  ns: string;
  pod: string;
  port: number;
  signal?: AbortSignal;
  /** Interval between pings; default 20,000. */
  pingMs?: number;
}

/** Calls `take` with the bytes after the port number, which has two bytes. */
function afterPort(source: Readable, take: (bytes: Buffer) => void): void {
  let left = 2;
  source.on('data', (chunk: Buffer) => {
    const bytes = chunk.subarray(left);
    left -= Math.min(left, chunk.length);
    if (bytes.length > 0) take(bytes);
  });
}

/**
 * Connects to a port of a pod. If nobody listens on the port, the node's message ends the stream with a KubeError. The other side does not see the
 * end of our input, only the end of the whole connection.
 * @throws KubeError when the user may not, or when the pod does not exist
 */
export async function portForward(cluster: Cluster, { ns, pod, port, signal, pingMs }: PortForwardOptions): Promise<Duplex> {
  const path = `/api/v1/namespaces/${encodeURIComponent(ns)}/pods/${encodeURIComponent(pod)}/portforward${queryString({ ports: port })}`;
  const channels = await cluster.openChannels({ path, protocols, signal, ...defined({ pingMs }) });
  const [incoming, refusals] = [channels.readable(data), channels.readable(errors)];
  const stream = new Duplex({
    // The connection has one end for both directions.
    allowHalfOpen: false,
    read: () => void incoming.resume(),
    write: (chunk: Buffer, _encoding, done) => void channels.send(data, chunk).then(() => done(), done),
    destroy: (error, done) => {
      channels.close();
      done(error);
    },
  });
  afterPort(incoming, (bytes) => {
    if (!stream.push(bytes)) incoming.pause();
  });
  incoming.on('end', () => stream.push(null));
  incoming.on('error', (error) => stream.destroy(error));
  afterPort(refusals, (bytes) => {
    const message = `Error from Kubernetes: port ${String(port)} of pod ${ns}/${pod}: ${bytes.toString('utf8')}`;
    stream.destroy(new KubeError('failed', message, { status: 0, reason: 'PortForward' }));
  });
  return stream;
}
