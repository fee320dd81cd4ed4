// A gateway with a tenth of a core, under load: when kf reports that a version serves, no request reaches the previous version.

import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Kf, kubectl, ringEnv } from '../support/kf.ts';
import { currentPodsOf } from '../support/pods.ts';
import { until } from '../support/until.ts';

const app = 'behind-slow-gateway';
const host = `${app}.apps.localhost`;
const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
/** Each instance answers with its pod's name, which contains its generation. */
const program = 'require("http").createServer((_, r) => r.end(require("os").hostname())).listen(process.env.PORT)';
/** Clients at a time; half of them keep their connections. */
const clients = 8;
const deployment = ['-n', 'kf-node', 'deployment/kf-gateway'];
let kf: Kf;

/** Limits the gateway to a share of a core, or removes the limit, and waits until it applies. */
async function limitGateway(cpu: string | null): Promise<void> {
  const patch = { spec: { template: { spec: { containers: [{ name: 'traefik', resources: { limits: { cpu } } }] } } } };
  await kubectl('patch', ...deployment, '-p', JSON.stringify(patch));
  await kubectl('rollout', 'status', ...deployment, '--timeout=180s');
}

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', app, '-o', image, '-m', '64M', '-c', `exec node -e '${program}'`);
  await limitGateway('100m');
  await until('the gateway to serve again', async () => (await ask(new Agent())).pod !== undefined);
});
afterAll(async () => {
  await limitGateway(null);
  await kf.run(['delete', app, '-r', '-f']);
  await kf.remove();
});

interface Asked {
  /** The time at which it was sent. */
  at: number;
  /** The pod that answered; undefined for every other answer, and without an answer. */
  pod?: string;
}

function ask(agent: Agent): Promise<Asked> {
  const at = performance.now();
  return new Promise((resolve) => {
    const port = Number(process.env['KF_CLUSTER_HTTP_PORT'] ?? '80');
    const outgoing = request({ host: '127.0.0.1', port, headers: { host }, agent, timeout: 10_000 }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => (body += text));
      answer.on('end', () => resolve(answer.statusCode === 200 ? { at, pod: body } : { at }));
      answer.on('error', () => resolve({ at }));
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.on('error', () => resolve({ at }));
    outgoing.end();
  });
}

/** Clients that send requests without a pause until `end` is called. */
function startClients(): { asked: Asked[]; end: () => Promise<void> } {
  const asked: Asked[] = [];
  let isOver = false;
  const clientsAtWork = Array.from({ length: clients }, async (_, index) => {
    const agent = new Agent({ keepAlive: index % 2 === 0, maxSockets: 1 });
    while (!isOver) asked.push(await ask(agent));
    agent.destroy();
  });
  return {
    asked,
    end: async () => {
      isOver = true;
      await Promise.all(clientsAtWork);
    },
  };
}

/** The pod of the version that kf reports as serving. */
async function currentPod(): Promise<string | undefined> {
  const { guid } = await kf.json<{ guid: string }>('app', app);
  return (await currentPodsOf(guid))[0]?.metadata.name;
}

describe('requests that are sent after the end of kf', () => {
  const changes: [string, string[]][] = [
    ['restart', ['restart', app]],
    ['push', ['push', app, '-o', image, '-m', '64M', '-c', `exec node -e '${program}' another`]],
  ];
  test.each(changes)('%s reach the version that it started, and no other', async (_name, command) => {
    for (let round = 0; round < 3; round += 1) {
      const load = startClients();
      await kf.ok(...command.map((word) => word.replace('another', `another-${round}`)));
      const ended = performance.now();
      await sleep(3_000);
      await load.end();
      const pod = await currentPod();
      const answered = load.asked.filter((asked) => asked.pod !== undefined);
      const after = answered.filter(({ at }) => at > ended);
      expect(answered.some((asked) => asked.pod !== pod)).toBe(true);
      expect(after.length).toBeGreaterThan(0);
      expect(after.filter((asked) => asked.pod !== pod)).toEqual([]);
    }
  });
});
