// Proxies in front of the API server: which one to use, and the tunnel (CONNECT) through it. kf makes the tunnel itself, because a proxy's refusal
// must not look like the API server's answer, and because proxy and API server trust different authorities.

import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AgentOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect as tlsConnect, getCACertificates } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { isIP } from 'node:net';
import { KfError } from '../errors.ts';

type Env = Readonly<Record<string, string | undefined>>;

function fromEnv(env: Env, name: string): string | undefined {
  const value = env[name] ?? env[name.toLowerCase()];
  return value === undefined || value === '' ? undefined : value;
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function ipv4Number(ip: string): number {
  return ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function inNetwork(host: string, network: string): boolean {
  const [base = '', bits = ''] = network.split('/');
  if (isIP(host) !== 4 || isIP(base) !== 4 || !/^\d+$/.test(bits)) return false;
  const size = 2 ** (32 - Number(bits));
  return Math.floor(ipv4Number(host) / size) === Math.floor(ipv4Number(base) / size);
}

/** One entry of NO_PROXY: `*`, a domain with its subdomains, an address, an IPv4 network; each with an optional port. */
function exempts(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return inNetwork(host, entry);
  const match = /^(.*):(\d+)$/.exec(entry);
  const bare = isIP(entry) === 6 || match === null ? entry : (match[1] ?? '');
  if (isIP(entry) !== 6 && match !== null && match[2] !== port) return false;
  const name = bare.replace(/^\[|\]$/g, '').replace(/^\*(?=\.)/, '');
  if (name === '') return false;
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`);
}

/**
 * The proxy for a server: kubeconfig's `proxy-url`, else HTTPS_PROXY or HTTP_PROXY unless NO_PROXY or loopback exempts the server.
 * The rules are those of Go's net/http, so that kf goes where kubectl goes.
 */
export function proxyFor(server: URL, proxyUrl: string | undefined, env: Env): URL | undefined {
  const host = hostOf(server);
  const port = server.port === '' ? (server.protocol === 'http:' ? '80' : '443') : server.port;
  let text = proxyUrl === '' ? undefined : proxyUrl;
  if (text === undefined) {
    const noProxy = (fromEnv(env, 'NO_PROXY') ?? '').split(/[\s,]+/).filter((entry) => entry !== '');
    if (isLoopback(host) || noProxy.some((entry) => exempts(entry.toLowerCase(), host, port))) return undefined;
    text = fromEnv(env, server.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY');
  }
  if (text === undefined) return undefined;
  const full = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(full)) throw new KfError('usage', `The proxy "${text}" is no URL.`);
  const proxy = new URL(full);
  if (proxy.protocol !== 'http:' && proxy.protocol !== 'https:') {
    throw new KfError(
      'usage',
      `The proxy ${withoutPassword(proxy)} is of a kind that kf cannot use; it can use http:// and https:// proxies.`,
    );
  }
  return proxy;
}

/** The proxy's URL for messages, without its password. */
export function withoutPassword(proxy: URL): string {
  return `${proxy.protocol}//${proxy.host}`;
}

function connectHeaders(proxy: URL): Record<string, string> {
  if (proxy.username === '' && proxy.password === '') return {};
  const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}

/**
 * Requests a tunnel from the proxy. For an https proxy, the trusted authorities are the system's, those of NODE_EXTRA_CA_CERTS, and the
 * kubeconfig's.
 */
function openTunnel(proxy: URL, target: string, timeoutMs: number, ca: string | undefined): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const refused = (why: string): Error => Object.assign(new Error(`the proxy ${withoutPassword(proxy)} ${why}`), { code: 'EPROXY' });
    const options = {
      method: 'CONNECT',
      host: hostOf(proxy),
      port: proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : Number(proxy.port),
      path: target,
      headers: { Host: target, ...connectHeaders(proxy) },
      agent: false as const,
      timeout: timeoutMs,
    };
    const req =
      proxy.protocol === 'https:'
        ? httpsRequest({ ...options, ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }) })
        : httpRequest(options);
    req.on('connect', (response, socket) => {
      if (response.statusCode === 200) {
        socket.setTimeout(0);
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(
        refused(
          response.statusCode === 407 ? 'asks for a user and a password' : `refused the tunnel with status ${String(response.statusCode)}`,
        ),
      );
    });
    req.on('response', (response) => {
      response.resume();
      reject(refused(`answered ${String(response.statusCode)} instead of opening a tunnel`));
    });
    req.on('timeout', () => req.destroy(refused(`does not answer within ${String(timeoutMs / 1000)} s`)));
    req.on('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EPROXY'
          ? error
          : Object.assign(refused(`cannot be reached: ${error.message || String(error.code)}`), { cause: error }),
      );
    });
    req.end();
  });
}

type Connected = (error: Error | null, socket: Duplex) => void;

/** The TLS session with the API server inside the tunnel. */
function secured(socket: Duplex, host: string, options: ConnectionOptions): Duplex {
  const { host: _host, port: _port, path: _path, ...tls } = options;
  // With an open socket, `host` is only compared with the certificate. For an IP address there is no server name to send.
  return tlsConnect({ ...tls, ...(tls.servername === undefined && isIP(host) === 0 ? { servername: host } : {}), host, socket });
}

/** A keep-alive agent whose connections go through a proxy's tunnel, which must open in time. */
export function tunnelAgent(proxy: URL, secure: boolean, timeoutMs: number, options: AgentOptions & { ca?: string }): HttpAgent {
  const agent = secure ? new HttpsAgent(options) : new HttpAgent(options);
  // When no socket is returned, Node waits for the callback.
  agent.createConnection = (target: ConnectionOptions, callback?: Connected) => {
    const host = String(target.host);
    openTunnel(proxy, `${isIP(host) === 6 ? `[${host}]` : host}:${String(target.port)}`, timeoutMs, options.ca).then(
      (socket) => callback?.(null, secure ? secured(socket, host, target) : socket),
      (error: unknown) => callback?.(error as Error, undefined as never),
    );
    return undefined;
  };
  return agent;
}
