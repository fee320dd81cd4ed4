// Checks the addresses to which a registry refers us. A hostile registry could refer to services that only we can reach: cloud metadata, nodes,
// other pods.

import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { KfError } from '../errors.ts';

const ranges: [kind: Kind, family: 'ipv4' | 'ipv6', net: string, bits: number][] = [
  ['link-local', 'ipv4', '169.254.0.0', 16],
  ['link-local', 'ipv6', 'fe80::', 10],
  // Metadata services of clouds that are not link-local.
  ['link-local', 'ipv4', '100.100.100.200', 32],
  ['link-local', 'ipv6', 'fd00:ec2::254', 128],
  ['loopback', 'ipv4', '127.0.0.0', 8],
  ['loopback', 'ipv4', '0.0.0.0', 8],
  ['loopback', 'ipv6', '::', 127],
  ['private', 'ipv4', '10.0.0.0', 8],
  ['private', 'ipv4', '172.16.0.0', 12],
  ['private', 'ipv4', '192.168.0.0', 16],
  ['private', 'ipv4', '100.64.0.0', 10],
  ['private', 'ipv4', '198.18.0.0', 15],
  ['private', 'ipv4', '224.0.0.0', 3],
  ['private', 'ipv6', 'fc00::', 7],
  ['private', 'ipv6', 'fec0::', 10],
  ['private', 'ipv6', 'ff00::', 8],
  // Addresses that are translated to IPv4 ones (NAT64, 6to4): the translator decides where they lead.
  ['private', 'ipv6', '64:ff9b::', 96],
  ['private', 'ipv6', '2002::', 16],
];

type Kind = 'public' | 'private' | 'loopback' | 'link-local';

const lists = new Map<Kind, BlockList>();
for (const [kind, family, net, bits] of ranges) {
  const list = lists.get(kind) ?? new BlockList();
  list.addSubnet(net, bits, family);
  lists.set(kind, list);
}

/** The kind of an IP address. An IPv4 address in IPv6 notation counts as that IPv4 address: `::ffff:10.0.0.1` is private. */
export function kindOfAddress(address: string): Kind {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  const plain = mapped ?? address;
  const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
  for (const kind of ['link-local', 'loopback', 'private'] as const) if (lists.get(kind)?.check(plain, family) === true) return kind;
  return 'public';
}

/**
 * Limits the addresses of one session with a registry. The registry itself may have any address except a link-local one, because the user chose
 * it. An address to which it refers us must be public, or one of its own.
 */
export class AddressGuard {
  readonly #registry: string;
  /** The addresses of the registry's own name. */
  readonly #own = new Set<string>();

  /** @param registry host name of the registry, without a port */
  constructor(registry: string) {
    this.#registry = registry.toLowerCase();
  }

  /** For a connection to `hostname`: resolves the name and refuses forbidden addresses. */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    systemLookup(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error) return callback(error, []);
      try {
        for (const { address } of found) this.check(hostname, address);
      } catch (refusal) {
        return callback(refusal as Error, []);
      }
      const [first] = found;
      if (options.all === true || first === undefined) return callback(null, found);
      return callback(null, first.address, first.family);
    });
  };

  /** A URL with an IP address as host causes no look-up, so it is checked here. @throws KfError */
  checkUrl(url: URL): void {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) !== 0) this.check(url.hostname, host);
  }

  /** @throws KfError `upload` naming the host and the kind of its address */
  check(hostname: string, address: string): void {
    const kind = kindOfAddress(address);
    const isRegistry = hostname.toLowerCase() === this.#registry;
    const may = kind === 'public' || (kind !== 'link-local' && (isRegistry || this.#own.has(address)));
    if (!may) {
      const what = isRegistry
        ? `The registry '${hostname}' is not asked`
        : `The registry '${this.#registry}' sends to '${hostname}', which is not asked`;
      throw new KfError('upload', `${what}: its address is ${kind}.`);
    }
    if (isRegistry) this.#own.add(address);
  }
}
