// /healthz, /readyz and /metrics for kubelet and Prometheus.

import { createServer, type Server } from 'node:http';
import { messageOf } from '../../lib/errors.ts';

export interface HealthAnswers {
  /** A reason why the process should be restarted, or undefined. */
  unhealthy: () => string | undefined;
  /** A reason why it is not ready, or undefined. */
  unready: () => string | undefined;
  metrics: () => Promise<string>;
}

/** Listens on all addresses; port 0 takes any free port. */
export async function serveHealth(port: number, answers: HealthAnswers): Promise<Server> {
  const server = createServer((request, response) => {
    const say = (problem: string | undefined): void => {
      response.writeHead(problem === undefined ? 200 : 503, { 'content-type': 'text/plain' });
      response.end(`${problem ?? 'ok'}\n`);
    };
    switch (request.url?.split('?')[0]) {
      case '/healthz':
        say(answers.unhealthy());
        return;
      case '/readyz':
        say(answers.unready());
        return;
      case '/metrics':
        void answers.metrics().then(
          (text) => response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(text),
          (error: unknown) => response.writeHead(500, { 'content-type': 'text/plain' }).end(`${messageOf(error)}\n`),
        );
        return;
      default:
        response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => resolve());
  });
  return server;
}
