// Routes in a manifest: `[scheme://]host.domain[:port][/path]` (cf-behaviour 4.6).

import type { RoutePlan } from './plan.ts';

const form = /^(?:(https?|tcp):\/\/)?([^:/\s]+)(?::(\d+))?(\/\S*)?$/i;

/** The parts of a route's text; undefined when it is not a route. */
export function parseRoute(text: string): Pick<RoutePlan, 'text' | 'hostname' | 'path' | 'port' | 'protocol'> | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [, scheme = '', hostname = '', port, path] = match;
  if (!/^(?:\*\.)?[a-z0-9](?:[-_.a-z0-9]*[a-z0-9])?$/i.test(hostname) || hostname.includes('..') || !hostname.includes('.'))
    return undefined;
  return {
    text,
    hostname: hostname.toLowerCase(),
    ...(path === undefined || path === '/' ? {} : { path }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(scheme.toLowerCase() === 'tcp' ? { protocol: 'tcp' as const } : {}),
  };
}

/**
 * Finds the domain in a hostname: all of it (no host) if such a domain exists, otherwise the part after the first label. Undefined when there is
 * no such domain.
 */
export function splitHostname(hostname: string, domains: readonly string[]): { host: string; domain: string } | undefined {
  const known = (name: string): string | undefined => domains.find((domain) => domain.toLowerCase() === name.toLowerCase());
  const dot = hostname.indexOf('.');
  const [host, rest] = [hostname.slice(0, dot), hostname.slice(dot + 1)];
  const whole = host === '*' ? undefined : known(hostname);
  if (whole !== undefined) return { host: '', domain: whole };
  const domain = dot < 1 ? undefined : known(rest);
  return domain === undefined ? undefined : { host, domain };
}
