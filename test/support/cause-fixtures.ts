// What provokes causes of failures on a real cluster, for the tests and the bench of `kf why`.

import { execFileSync } from 'node:child_process';
import { ringEnv } from './kf.ts';

/** Makes an image index in the node's registry whose only image is for another kind of processor. @returns its reference for the nodes */
export function foreignImage(): string {
  const crane = (...args: string[]): string =>
    execFileSync(ringEnv('KF_CLUSTER_CRANE'), [...args, '--insecure'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const outside = (tag: string): string => `${ringEnv('KF_CLUSTER_REGISTRY')}/kf/sample:${tag}`;
  crane('mutate', outside('1'), '--set-platform', 'linux/s390x', '-t', outside('s390x'));
  crane('index', 'append', '-m', outside('s390x'), '-t', outside('foreign'));
  return `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:foreign`;
}

/** The start command of a server whose queue of connections is full before it takes the first one: it fills it, and then never gets to its events. */
export const fullQueue = `exec node -e '${[
  'const s = require("net").createServer();',
  's.listen({ port: +process.env.PORT, host: "0.0.0.0", backlog: 1 }, () => {',
  'for (let i = 0; i < 8; i++) require("net").connect(+process.env.PORT, "127.0.0.1");',
  'process.nextTick(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)); });',
].join(' ')}'`;
