// The value of `ssh -L`.

import { incorrectUsage } from './usage.ts';

interface PortSpec {
  local: { host: string; port: number };
  remote: { host: string; port: number };
}

const mostPort = 65_535;
const pattern = /^(?:(?<bind>\[[^\]]+\]|[^:[\]]*):)?(?<port>\d+):(?<host>\[[^\]]+\]|[^:[\]]+):(?<remotePort>\d+)$/;
const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');

/** `[bind:]port:host:port`; an IPv6 address is in brackets. Local port 0 is a free one. @throws KfError `usage` */
export function parsePortSpec(text: string): PortSpec {
  const { bind = '', port = '', host = '', remotePort = '' } = pattern.exec(text)?.groups ?? {};
  const local = { host: bind === '' ? 'localhost' : bind === '*' ? '0.0.0.0' : bare(bind), port: Number(port) };
  const remote = { host: bare(host), port: Number(remotePort) };
  if (remote.port < 1 || Math.max(local.port, remote.port) > mostPort) {
    throw incorrectUsage(`Bad local forwarding specification '${text}': [BIND_ADDRESS:]PORT:HOST:HOST_PORT is expected`);
  }
  return { local, remote };
}
