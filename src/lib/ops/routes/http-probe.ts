// Sends one HTTP request to an app's URL from the machine of the CLI, as a browser would.

import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { defined } from '../../defined.ts';
import { limitInterimAnswers } from '../../interim-answers.ts';

export interface GatewayAddress {
  scheme: 'http' | 'https';
  port: number;
  /** The address to connect to when the name does not resolve here (`*.localhost`, or a gateway without DNS). */
  address?: string;
}

export type Reached =
  | { ok: true; status: number; milliseconds: number; location?: string }
  | { ok: false; problem: 'no-name' | 'no-connection' | 'timeout' | 'other'; message: string };

/** `http://host[:port]`, without the scheme's own port. */
export function urlOf(gateway: GatewayAddress, host: string): string {
  const usual = gateway.scheme === 'http' ? 80 : 443;
  return `${gateway.scheme}://${host}${gateway.port === usual ? '' : `:${gateway.port}`}`;
}

function problemOf(error: NodeJS.ErrnoException): 'no-name' | 'no-connection' | 'other' {
  if (error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN') return 'no-name';
  return ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ECONNRESET', 'ETIMEDOUT'].includes(error.code ?? '') ? 'no-connection' : 'other';
}

export interface ProbeOptions {
  headers?: Record<string, string>;
  /**
   * Certificates of the authorities that the client trusts. Without them it trusts every certificate: the request asks only whether the gateway
   * answers, and contains nothing that another server could use.
   */
  trusted?: string[];
}

/**
 * GETs `path` of `host` through the gateway and ignores the body.
 * @returns the status, or which part of the path failed; never throws
 */
export async function reachThroughGateway(
  gateway: GatewayAddress,
  host: string,
  path: string,
  timeoutMs: number,
  { headers = {}, trusted }: ProbeOptions = {},
): Promise<Reached> {
  const started = performance.now();
  const send = gateway.scheme === 'https' ? secureRequest : request;
  return new Promise((resolve) => {
    const outgoing = send(
      {
        host: gateway.address ?? host,
        port: gateway.port,
        path,
        method: 'GET',
        headers: { host, 'user-agent': 'kf (asks whether the URL answers from here)', ...headers },
        servername: host,
        ...(trusted === undefined ? { rejectUnauthorized: false } : { ca: trusted }),
        agent: false,
        timeout: timeoutMs,
      },
      (answer) => {
        // An app may send an endless body.
        answer.destroy();
        const { location } = answer.headers;
        resolve({
          ok: true,
          status: answer.statusCode ?? 0,
          milliseconds: performance.now() - started,
          ...defined({ location }),
        });
      },
    );
    limitInterimAnswers(outgoing);
    outgoing.on('timeout', () => {
      resolve({ ok: false, problem: 'timeout', message: `no answer within ${timeoutMs} ms` });
      outgoing.destroy();
    });
    outgoing.on('error', (error) => resolve({ ok: false, problem: problemOf(error), message: error.message }));
    outgoing.end();
  });
}
