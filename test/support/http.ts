// Requests to apps through the cluster's gateway, as a browser on this machine sends them.

import { request } from 'node:http';

export interface Answer {
  status: number;
  body: string;
  headers: Record<string, string | string[] | undefined>;
}

/** GET with the Host header of `host`, at the gateway's port, of the ring's cluster by default. */
export function get(
  host: string,
  urlPath = '/',
  headers: Record<string, string> = {},
  port = Number(process.env['KF_CLUSTER_HTTP_PORT'] ?? '80'),
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port, path: urlPath, headers: { ...headers, host }, agent: false, timeout: 10_000 },
      (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (text: string) => (body += text));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body, headers: answer.headers }));
        answer.on('error', reject);
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer from ${host}`)));
    outgoing.on('error', reject);
    outgoing.end();
  });
}
