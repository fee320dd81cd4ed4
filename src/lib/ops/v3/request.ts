// A request of the v3 API, and the table of those that kf answers.

import { V3Error } from '../../v3/errors.ts';
import { insteadOf } from '../../v3/instead.ts';
import type { V3Query } from '../../v3/query.ts';
import type { LinkTo } from '../../v3/resource.ts';
import type { Reader } from './reader.ts';

export interface Asked {
  reader: Reader;
  link: LinkTo;
  query: V3Query;
  /** The part of the path under this name in the pattern. */
  part: (name: string) => string;
  /** The JSON object of the request. @throws V3Error when there is none */
  body: () => Record<string, unknown>;
}

/** An answer with another status than 200, or with headers. */
export class V3Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Record<string, string>;

  constructor(status: number, body?: unknown, headers: Record<string, string> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

export interface V3Route {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** `/v3/apps/:guid` */
  path: string;
  /** The body, or a {@link V3Answer}. */
  answer: (asked: Asked) => Promise<unknown>;
}

export const get = (path: string, answer: V3Route['answer']): V3Route => ({ method: 'GET', path, answer });
export const post = (path: string, answer: V3Route['answer']): V3Route => ({ method: 'POST', path, answer });
export const patch = (path: string, answer: V3Route['answer']): V3Route => ({ method: 'PATCH', path, answer });
export const remove = (path: string, answer: V3Route['answer']): V3Route => ({ method: 'DELETE', path, answer });

/** The parts of a path that fits a pattern, by their names. */
function partsOf(pattern: string, path: string): Map<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  if (wanted.length !== given.length) return undefined;
  const parts = new Map<string, string>();
  for (const [at, word] of wanted.entries()) {
    const there = given[at] ?? '';
    if (word.startsWith(':') && there !== '') parts.set(word.slice(1), decoded(there));
    else if (word !== there) return undefined;
  }
  return parts;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

interface Wanted {
  method: string;
  path: string;
  /** The name of the program as it was started. */
  bin: string;
}

function unknownRequest({ method, path, bin }: Wanted): V3Error {
  const instead = insteadOf(method, path)?.replaceAll(/\bkf (?=[a-z])/g, `${bin} `);
  const use = instead === undefined ? 'docs/curl.md lists the requests that it answers.' : `Use instead: ${instead}.`;
  return new V3Error('unknown-request', `Unknown request: ${bin} curl does not answer ${method} ${path}. ${use}`);
}

/** The route of a request. @throws V3Error 404 that names the command of kf */
export function routeOf(routes: readonly V3Route[], wanted: Wanted): { route: V3Route; part: Asked['part'] } {
  const { method, path } = wanted;
  for (const route of routes) {
    const parts = route.method === method ? partsOf(route.path, path) : undefined;
    if (parts !== undefined) return { route, part: (name) => parts.get(name) ?? '' };
  }
  throw unknownRequest(wanted);
}
