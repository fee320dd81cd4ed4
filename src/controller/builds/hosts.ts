// Which hosts a build must reach beside the push port: registries of images, and what `buildEnv` names (mirrors, proxies).

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

/** `host` or `host:port`, where only a port that is named or belongs to the scheme is opened. */
function hostFrom(text: string, port: number): Host {
  const url = new URL(`http://${text}`);
  return { name: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? port : Number(url.port) };
}

/** Hosts of all URLs in a value, and that of a proxy, which may be written without a scheme. Values that name none give none. */
function hostsInVariable(name: string, value: string): Host[] {
  const urls = value.matchAll(/\b(https?|socks5|ftp):\/\/(?:[^\s/@,;|"']*@)?([^\s/,;|"'?#]+)/g);
  const found = [...urls].flatMap(([, scheme = '', host = '']) => tryHost(host, schemePorts[scheme] ?? 443));
  if (found.length > 0 || !/_proxy$/i.test(name) || /^no_proxy$/i.test(name)) return found;
  return tryHost(value.trim(), 80);
}

function tryHost(text: string, port: number): Host[] {
  try {
    return text === '' ? [] : [hostFrom(text, port)];
  } catch {
    return [];
  }
}

/** Everything that the installation names for builds. */
function hostsOf({ builder, registry }: KfInfo, env: Record<string, string>): Host[] {
  const plain = builder.insecureRegistries ?? [];
  // Of kf's own registry the policy opens the push port by its pods' label, and nothing beside it.
  const isOwn = namespaceOf(tryHost(registry.pushHost, 443)[0]?.name ?? '') === registry.namespace;
  const atRegistry = (host: string): Host[] => (plain.includes(host) ? [...tryHost(host, 80), ...tryHost(host, 443)] : tryHost(host, 443));
  const images = builder.runImage === undefined ? [] : [parseReference(builder.runImage).registry];
  const variables = Object.entries(env).flatMap(([name, value]) => hostsInVariable(name, value));
  return [...[...(isOwn ? [] : [registry.pushHost]), ...images, ...plain].flatMap(atRegistry), ...variables];
}

/** The namespace of a Service's name; undefined for other names. */
function namespaceOf(name: string): string | undefined {
  return /^[^.]+\.([^.]+)\.svc(\..*)?$/.exec(name)?.[1];
}

/** How long an answer of DNS is taken for true. */
const freshMs = 60_000;
/** A policy is not kept waiting for longer; the answer counts when it comes. */
const patienceMs = 2_000;

interface Answer {
  askedAt: number;
  addresses: string[] | undefined;
  pending: Promise<void> | undefined;
}

export type Resolve = (name: string) => Promise<string[]>;

const resolveName: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address).sort();

/** The hosts of builds as what a policy can say. Names are asked for at most once a minute, for all spaces together. */
export class BuildHosts {
  readonly #answers = new Map<string, Answer>();
  readonly #resolve: Resolve;
  #env: { revision: string; readAt: number; env: Record<string, string> } | undefined;

  constructor(resolve: Resolve = resolveName) {
    this.#resolve = resolve;
  }

  /**
   * @param readEnv gives the environment of every build; asked again when its revision changes, and once a minute
   */
  async targets(info: KfInfo, now: number, readEnv: () => Promise<Record<string, string>>): Promise<BuildTarget[]> {
    const hosts = hostsOf(info, await this.#environment(info.builder.envRevision, now, readEnv));
    await Promise.all(hosts.map(({ name }) => this.#ask(name, now)));
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

  async #ask(name: string, now: number): Promise<void> {
    if (isIP(name) > 0 || namespaceOf(name) !== undefined) return;
    const answer = this.#answers.get(name) ?? { askedAt: -freshMs, addresses: undefined, pending: undefined };
    this.#answers.set(name, answer);
    if (answer.pending === undefined && now - answer.askedAt >= freshMs) {
      answer.askedAt = now;
      answer.pending = this.#resolve(name)
        .then((addresses) => void (answer.addresses = addresses))
        // What was known stays; without any the name counts as one of the internet.
        .catch(() => undefined)
        .finally(() => (answer.pending = undefined));
    }
    if (answer.addresses === undefined && answer.pending !== undefined) await Promise.race([answer.pending, patience()]);
  }

  /** Of the internet a policy knows addresses only, and those of public hosts change: their port is opened to all of it. */
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

function patience(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, patienceMs).unref());
}
