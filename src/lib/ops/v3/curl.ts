// `curl`: a request of the v3 API is answered from the cluster's objects; one of the Kubernetes API is sent as it is.

import { writeFile } from 'node:fs/promises';
import { STATUS_CODES } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { incorrectUsage } from '../../cf/usage.ts';
import { defined } from '../../defined.ts';
import { KfError, messageOf } from '../../errors.ts';
import type { Session } from '../../session/session.ts';
import { readSmallFile } from '../../small-file.ts';
import { answerV3 } from './answer.ts';

export interface CurlOptions {
  path: string;
  /** Default: GET, or POST with data. */
  method?: string | undefined;
  /** `Name: value` */
  headers?: readonly string[] | undefined;
  /** The body itself, or `@` and the name of a file. */
  data?: string | undefined;
}

export interface CurlAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

const withoutSlash = (text: string): string => (text.endsWith('/') ? text.slice(0, -1) : text);

/** Paths that Kubernetes answers itself. */
const isOfKubernetes = (path: string): boolean => /^\/apis?(\/|$)/.test(path);

async function dataOf(data: string): Promise<string> {
  if (!data.startsWith('@')) return data;
  const file = data.slice(1);
  try {
    return await readSmallFile({ path: file, asGiven: file, what: 'the body of a request' });
  } catch (error) {
    if (error instanceof KfError) throw error;
    throw new KfError('not-found', `The file '${file}' cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** @throws KfError `usage` for a text without a name */
function headersOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value = ''] = /^([-!#$%&'*+.^`|~\w]+):([^\r\n]*)$/.exec(text) ?? [];
      if (name === undefined) throw incorrectUsage(`A header has the form 'NAME: VALUE'; this one is '${text}'.`);
      return [name.toLowerCase(), value.trim()];
    }),
  );
}

/** Path and query. @throws KfError `usage` for the URL of another server */
function addressOf(text: string, server: string): URL {
  const isUrl = /^https?:\/\//i.test(text);
  if (isUrl && text !== server && !text.startsWith(`${server}/`)) {
    throw new KfError('usage', `'${text}' is not a path of the API at ${server}.`, { hints: ['kf curl /v3/apps'] });
  }
  const path = isUrl ? text.slice(server.length) : text;
  // A path is taken as it is, whatever its beginning: '//host/x' does not name a host.
  const url = new URL('http://kf.invalid');
  const [before = '', ...after] = path.split('?');
  url.pathname = `/${before.replace(/^\/+/, '')}`;
  url.search = after.join('?');
  return url;
}

async function askKubernetes(
  { cluster, signal }: Session,
  request: { method: string; path: string; headers: Record<string, string>; body: string | undefined },
): Promise<CurlAnswer> {
  const { body, method, path, headers } = request;
  const typed = body === undefined ? {} : { 'content-type': 'application/json' };
  const answer = await cluster.raw({
    method,
    path,
    signal,
    headers: { accept: 'application/json', ...typed, ...headers },
    ...defined({ body }),
  });
  return { status: answer.status, headers: answer.headers, body: await buffer(answer.body) };
}

/** Sends or answers a request. No status is an error. @throws KfError `usage` for a wrong request, `unreachable` without an answer */
export async function curl(session: Session, options: CurlOptions): Promise<CurlAnswer> {
  const headers = headersOf(options.headers ?? []);
  const server = withoutSlash(session.cluster.identity.server);
  const url = addressOf(options.path, server);
  const body = options.data === undefined ? undefined : await dataOf(options.data);
  const method = (options.method ?? (body === undefined ? 'GET' : 'POST')).toUpperCase();
  if (isOfKubernetes(url.pathname)) {
    return askKubernetes(session, { method, path: `${url.pathname}${url.search}`, headers, body });
  }
  const path = url.pathname === '/' ? '/' : withoutSlash(url.pathname);
  const answer = await answerV3(session, { method, path, query: url.searchParams, body }, server);
  const text = Buffer.from(answer.body === undefined ? '' : JSON.stringify(answer.body, null, 2));
  const type = { 'content-type': 'application/json; charset=utf-8' };
  return {
    status: answer.status,
    headers: { ...answer.headers, ...(answer.body === undefined ? {} : type), 'content-length': String(text.length) },
    body: text,
  };
}

/** The status line and the headers, as `-i` shows them. */
export function headOf({ status, headers }: CurlAnswer): string {
  const name = (text: string): string => text.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
  const lines = Object.entries(headers).map(([key, value]) => `${name(key)}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trim(), ...lines, '', ''].join('\r\n');
}

/** @throws KfError `failed` when the file cannot be written */
export async function saveAnswer(file: string, content: Buffer): Promise<void> {
  try {
    await writeFile(file, content);
  } catch (error) {
    throw new KfError('failed', `The answer cannot be written to '${file}': ${messageOf(error)}.`, { cause: error });
  }
}
