// Requests to apps through the cluster's gateway, as a browser on this machine sends them.

import { request, type IncomingMessage } from 'node:http';
import { request as secureRequest } from 'node:https';

export interface Answer {
  status: number;
  body: string;
  headers: Record<string, string | string[] | undefined>;
}

async function answerOf(answer: IncomingMessage): Promise<Answer> {
  let body = '';
  for await (const text of answer.setEncoding('utf8')) body += String(text);
  return { status: answer.statusCode ?? 0, body, headers: answer.headers };
}

/** The port of the ring's cluster for http. */
export const plainPort = (): number => Number(process.env['KF_CLUSTER_HTTP_PORT'] ?? '80');

/** The port of the ring's cluster for https. */
export const securePort = (): number => Number(process.env['KF_CLUSTER_HTTPS_PORT'] ?? '443');

export interface SecureOptions {
  /** Certificates of the authorities that the client trusts, and no others. */
  ca: string | readonly string[];
  headers?: Record<string, string>;
}

/** GET with https at the port of the ring's cluster. @throws Error for a certificate that the client does not trust */
export function getSecurely(host: string, { ca, headers = {} }: SecureOptions, urlPath = '/'): Promise<Answer> {
  const port = securePort();
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      servername: host,
      path: urlPath,
      headers: { ...headers, host },
      agent: false,
      timeout: 10_000,
    };
    const outgoing = secureRequest({ ...options, ca: [...[ca].flat()] }, (answer) => void answerOf(answer).then(resolve, reject));
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer from ${host}`)));
    outgoing.on('error', reject);
    outgoing.end();
  });
}

/** GET with the Host header of `host`, at the gateway's port, of the ring's cluster by default. */
export function get(host: string, urlPath = '/', headers: Record<string, string> = {}, port = plainPort()): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port, path: urlPath, headers: { ...headers, host }, agent: false, timeout: 10_000 },
      (answer) => void answerOf(answer).then(resolve, reject),
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer from ${host}`)));
    outgoing.on('error', reject);
    outgoing.end();
  });
}
