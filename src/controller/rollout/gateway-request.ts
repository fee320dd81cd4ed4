// One request to a gateway, or to an instance itself.

import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { limitInterimAnswers } from '../../lib/interim-answers.ts';
import { generationHeader } from '../../templates/http-route.ts';

interface Question {
  base: string;
  host: string;
  path: string;
  headers: Record<string, string>;
}

export interface Answer {
  status: number;
  /** The generation whose rule answered, if the gateway marks its answers. */
  generation?: string | undefined;
  location?: string | undefined;
}

const one = (header: string | string[] | undefined): string | undefined => (Array.isArray(header) ? header[0] : header);

/** Identifies the request in an app's log. */
const userAgent = 'kf-controller (kf asks once whether the app answers)';

/**
 * Sends one GET; follows no redirect and reads no body. `path` is passed apart from the base URL: developers write it, and a URL parser
 * would read `//host:port/` as another address.
 */
export function ask({ base, host, path, headers: more }: Question, signal: AbortSignal): Promise<Answer> {
  const url = new URL(base);
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const headers = { host, ...more, 'user-agent': userAgent, connection: 'close' };
  return new Promise((resolve, reject) => {
    const request = send(url, { path, headers, signal, agent: false, servername: host, rejectUnauthorized: false }, (response) => {
      // An app may send an endless body, so it is not read and the connection is closed.
      response.destroy();
      const { location } = response.headers;
      resolve({ status: response.statusCode ?? 0, generation: one(response.headers[generationHeader]), location });
    });
    limitInterimAnswers(request);
    request.on('error', reject);
    request.end();
  });
}
