// Users who send requests to apps through a port of a node, one after the other. None of them tries anything again.

import { Agent, request } from 'node:http';

/** An answer other than 200, or an error. */
export interface Failure {
  host: string;
  answer: string;
  /** When the request was sent and when it failed, in milliseconds since the begin. */
  sentMs: number;
  atMs: number;
  /** It was sent on the connection that stays. */
  kept: boolean;
}

export interface NodeLoad {
  sent: number;
  failures: Failure[];
  /** The longest time without a good answer. */
  gapMs: number;
  /** How long the command took. */
  tookMs: number;
}

export interface NodeTarget {
  address: string;
  /** Default: 80. */
  port?: number;
  hosts: readonly string[];
}

function ask({ address, port = 80 }: NodeTarget, host: string, agent: Agent | false): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = request({ host: address, port, headers: { host }, agent, timeout: 10_000 }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(String(answer.statusCode)));
      answer.on('error', (error) => resolve(error.message));
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.on('error', (error) => resolve(error.message));
    outgoing.end();
  });
}

/** The status of one request to the first host on a new connection, or the error. */
export const askNode = (target: NodeTarget): Promise<string> => ask(target, target.hosts[0] ?? '', false);

/** Sends requests to the hosts in turn while a command runs: one user on new connections, and if `kept` another one on a connection that stays. */
export async function loadNode(target: NodeTarget, work: () => Promise<unknown>, { kept = false } = {}): Promise<NodeLoad> {
  const load: NodeLoad = { sent: 0, failures: [], gapMs: 0, tookMs: 0 };
  const keeping = new Agent({ keepAlive: true, maxSockets: 1 });
  const began = performance.now();
  const sinceBegin = (): number => Math.round(performance.now() - began);
  let last = began;
  let ended = false;
  const user = async (agent: Agent | false): Promise<void> => {
    for (let turn = 0; !ended; turn += 1) {
      const host = target.hosts[turn % target.hosts.length] ?? '';
      const sentMs = sinceBegin();
      const answer = await ask(target, host, agent);
      load.sent += 1;
      if (answer !== '200') load.failures.push({ host, answer, sentMs, atMs: sinceBegin(), kept: agent !== false });
      else {
        load.gapMs = Math.max(load.gapMs, performance.now() - last);
        last = performance.now();
      }
    }
  };
  const users = [user(false), ...(kept ? [user(keeping)] : [])];
  try {
    await work();
  } finally {
    ended = true;
    load.tookMs = performance.now() - began;
    await Promise.all(users);
    keeping.destroy();
  }
  return load;
}
