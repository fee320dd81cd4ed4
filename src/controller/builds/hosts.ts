// Finds the hosts that a build must reach besides the registry's push port: registries of images, and the mirrors and proxies that `buildEnv` names.

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { KfInfo } from '../../lib/api/kf-info.ts';
import { hostRange, isInside } from '../../lib/api/network-policy.ts';
import { parseReference } from '../../lib/oci/reference.ts';
import type { BuildTarget } from '../../templates/network-policies.ts';

interface Host {
  name: string;
  port: number;
}

const schemePorts: Record<string, number> = { http: 80, https: 443, socks5: 1080, ftp: 21 };

/** @param text `host` or `host:port` */
function hostFrom(text: string, defaultPort: number): Host {
  const url = new URL(`http://${text}`);
  // `url.port` is empty for `:80`, the default port of the scheme that stands before it here.
  const port = /:(\d+)$/.exec(text)?.[1];
  return { name: url.hostname.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) };
}

/** The hosts of all URLs in a variable's value. The value of a proxy variable may also be a host without a scheme. */
function hostsInVariable(name: string, value: string): Host[] {
  const urls = value.matchAll(/\b(https?|socks5|ftp):\/\/(?:[^\s/@,;|"']*@)?([^\s/,;|"'?#]+)/gi);
  const found = [...urls].flatMap(([, scheme = '', host = '']) => tryHost(host, schemePorts[scheme.toLowerCase()] ?? 443));
  if (found.length > 0 || !/_proxy$/i.test(name) || /^no_proxy$/i.test(name)) return found;
  return tryHost(value.trim(), 80);
}

/** {@link hostFrom}, or nothing for a text that is not a host. */
function tryHost(text: string, defaultPort: number): Host[] {
  try {
    return text === '' ? [] : [hostFrom(text, defaultPort)];
  } catch {
    return [];
  }
}

/** All hosts that the installation's settings name for builds. */
function hostsOf({ builder, registry }: KfInfo, env: Record<string, string>): Host[] {
  const insecure = builder.insecureRegistries ?? [];
  // Another rule of the policy opens the push port of kf's own registry, by the label of its pods. Nothing else of it is opened.
  const isOwn = namespaceOf(tryHost(registry.pushHost, 443)[0]?.name ?? '') === registry.namespace;
  const hostsOfRegistry = (host: string): Host[] =>
    insecure.includes(host) ? [...tryHost(host, 80), ...tryHost(host, 443)] : tryHost(host, 443);
  const images = builder.runImage === undefined ? [] : [parseReference(builder.runImage).registry];
  const variables = Object.entries(env).flatMap(([name, value]) => hostsInVariable(name, value));
  return [...[...(isOwn ? [] : [registry.pushHost]), ...images, ...insecure].flatMap(hostsOfRegistry), ...variables];
}

/** The namespace in the DNS name of a Service; undefined for other names. */
function namespaceOf(name: string): string | undefined {
  return /^[^.]+\.([^.]+)\.svc(\..*)?$/.exec(name)?.[1];
}

/** How long an answer of DNS, or the environment of builds, is used before it is read again. */
const freshMs = 60_000;
/** A policy waits no longer than this for DNS. The next policy uses an answer that comes later. */
const dnsWaitMs = 2_000;

interface Answer {
  askedAt: number;
  addresses: string[] | undefined;
  pending: Promise<void> | undefined;
}

export type Resolve = (name: string) => Promise<string[]>;

const resolveName: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address).sort();

/** The hosts that builds must reach, as targets of a NetworkPolicy. A name is resolved at most once a minute, for all spaces together. */
export class BuildHosts {
  readonly #answers = new Map<string, Answer>();
  readonly #resolve: Resolve;
  #env: { revision: string; readAt: number; env: Record<string, string> } | undefined;

  constructor(resolve: Resolve = resolveName) {
    this.#resolve = resolve;
  }

  /** @param readEnv reads the environment that all builds get. It is called when the revision in `info` has changed, and at most once a minute otherwise. */
  async targets(info: KfInfo, now: number, readEnv: () => Promise<Record<string, string>>): Promise<BuildTarget[]> {
    const hosts = hostsOf(info, await this.#environment(info.builder.envRevision, now, readEnv));
    await Promise.all(hosts.map(({ name }) => this.#resolved(name, now)));
    const targets = hosts.flatMap((host) => this.#targetsOf(host));
    return [...new Map(targets.map((target) => [JSON.stringify(target), target])).values()];
  }

  async #environment(
    revision: string | undefined,
    now: number,
    read: () => Promise<Record<string, string>>,
  ): Promise<Record<string, string>> {
    if (revision === undefined) return {};
    const known = this.#env;
    if (known?.revision === revision && now - known.readAt < freshMs) return known.env;
    const env = await read();
    this.#env = { revision, readAt: now, env };
    return env;
  }

  /** Ends when the name has an answer in `#answers`, or after {@link dnsWaitMs}. */
  async #resolved(name: string, now: number): Promise<void> {
    if (isIP(name) > 0 || namespaceOf(name) !== undefined) return;
    const answer = this.#answers.get(name) ?? { askedAt: -freshMs, addresses: undefined, pending: undefined };
    this.#answers.set(name, answer);
    if (answer.pending === undefined && now - answer.askedAt >= freshMs) {
      answer.askedAt = now;
      answer.pending = this.#resolve(name)
        .then((addresses) => void (answer.addresses = addresses))
        // The earlier addresses stay. A name without any counts as a host of the internet.
        .catch(() => undefined)
        .finally(() => (answer.pending = undefined));
    }
    if (answer.addresses === undefined && answer.pending !== undefined) await Promise.race([answer.pending, dnsWait()]);
  }

  /** A policy can name addresses only, and the addresses of public hosts change. So the port of a public host is opened to the whole internet. */
  #targetsOf({ name, port }: Host): BuildTarget[] {
    const namespace = namespaceOf(name);
    if (namespace !== undefined) return [{ to: { namespace } }];
    const addresses = isIP(name) > 0 ? [name] : (this.#answers.get(name)?.addresses ?? []);
    const inside = addresses.filter((address) => isInside(address));
    const isPublic = inside.length < addresses.length || addresses.length === 0;
    return [
      ...inside.map((address): BuildTarget => ({ to: { range: hostRange(address) }, port })),
      ...(isPublic ? [{ to: 'internet' as const, port }] : []),
    ];
  }
}

function dnsWait(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, dnsWaitMs).unref());
}
